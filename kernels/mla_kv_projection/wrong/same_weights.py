"""Wrong: keys and values are both made with w_up_k."""

import torch
from torch import Tensor


def run(
    hidden: Tensor,
    w_down: Tensor,
    w_up_k: Tensor,
    w_up_v: Tensor,  # noqa: ARG001
    kv_heads: int,
    head_dim: int,
) -> Tensor:
    """Project twice with the same weight."""
    batch, sequence, model = hidden.shape
    latent = hidden.reshape(batch * sequence, model) @ w_down
    keys = (latent @ w_up_k).view(batch, sequence, kv_heads, head_dim)
    return torch.stack((keys, keys), dim=2)
