"""Wrong: keeps the latent in bfloat16 between the two products."""

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
    """Project in full precision through a latent of eight bits."""
    batch, sequence, model = hidden.shape
    exact = hidden.reshape(batch * sequence, model) @ w_down
    latent = exact.bfloat16().to(hidden.dtype)
    keys = (latent @ w_up_k).view(batch, sequence, kv_heads, head_dim)
    values = (latent @ w_up_v).view(batch, sequence, kv_heads, head_dim)
    return torch.stack((keys, values), dim=2)
