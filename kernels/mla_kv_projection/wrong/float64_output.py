"""Wrong: computes and returns float64, which is more exact and not what was asked for."""

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
    """Project in float64."""
    batch, sequence, model = hidden.shape
    latent = hidden.reshape(batch * sequence, model).double() @ w_down.double()
    keys = (latent @ w_up_k.double()).view(batch, sequence, kv_heads, head_dim)
    values = (latent @ w_up_v.double()).view(batch, sequence, kv_heads, head_dim)
    return torch.stack((keys, values), dim=2)
