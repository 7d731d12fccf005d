"""Wrong: every query sees every position."""

import torch
from torch import Tensor


def run(q: Tensor, kv_latent: Tensor, w_up_k: Tensor, w_up_v: Tensor) -> Tensor:
    """Attend without a causal mask."""
    keys = torch.einsum("bsr,rhd->bshd", kv_latent, w_up_k)
    values = torch.einsum("bsr,rhd->bshd", kv_latent, w_up_v)
    logits = torch.einsum("bthd,bshd->bhts", q, keys) * q.shape[3] ** -0.5
    weights = torch.softmax(logits, dim=-1)
    return torch.einsum("bhts,bshd->bthd", weights, values)
