"""Wrong: a dimension too many, which a careless comparison broadcasts away."""

import torch
from torch import Tensor


def run(
    hidden: Tensor,
    w_down: Tensor,
    w_up_k: Tensor,
    w_up_v: Tensor,
    kv_heads: int,
    head_dim: int,
) -> Tensor:
    """Project, stack and add a leading dimension."""
    batch, sequence, model = hidden.shape
    latent = hidden.reshape(batch * sequence, model) @ w_down
    keys = (latent @ w_up_k).view(batch, sequence, kv_heads, head_dim)
    values = (latent @ w_up_v).view(batch, sequence, kv_heads, head_dim)
    return torch.stack((keys, values), dim=2).unsqueeze(0)
