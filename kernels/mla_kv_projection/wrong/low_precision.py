"""Wrong: multiplies in bfloat16 and returns float32."""

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
    """Project with eight bits of precision."""
    batch, sequence, model = hidden.shape
    low = [each.bfloat16() for each in (w_down, w_up_k, w_up_v)]
    latent = hidden.reshape(batch * sequence, model).bfloat16() @ low[0]
    keys = (latent @ low[1]).view(batch, sequence, kv_heads, head_dim)
    values = (latent @ low[2]).view(batch, sequence, kv_heads, head_dim)
    return torch.stack((keys, values), dim=2).to(hidden.dtype)
