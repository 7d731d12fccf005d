"""Wrong: values stand in the keys' slot and keys in the values'."""

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
    """Project and stack in the wrong order."""
    batch, sequence, model = hidden.shape
    latent = hidden.reshape(batch * sequence, model) @ w_down
    keys = (latent @ w_up_k).view(batch, sequence, kv_heads, head_dim)
    values = (latent @ w_up_v).view(batch, sequence, kv_heads, head_dim)
    return torch.stack((values, keys), dim=2)
