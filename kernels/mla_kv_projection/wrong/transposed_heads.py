"""Wrong: head_dim runs before kv_heads in memory, so that all but square heads are shuffled."""

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
    """Project and read each row as (head_dim, kv_heads)."""
    batch, sequence, model = hidden.shape
    latent = hidden.reshape(batch * sequence, model) @ w_down
    up = torch.stack((latent @ w_up_k, latent @ w_up_v), dim=1)
    shuffled = up.view(batch, sequence, 2, head_dim, kv_heads)
    return shuffled.transpose(-1, -2).contiguous()
