"""Wrong: a dimension too many, which a careless comparison broadcasts away."""

import torch
from torch import Tensor


def run(q: Tensor, kv_latent: Tensor, w_up_k: Tensor, w_up_v: Tensor) -> Tensor:
    """Attend and add a leading dimension."""
    keys = torch.einsum("bsr,rhd->bshd", kv_latent, w_up_k)
    values = torch.einsum("bsr,rhd->bshd", kv_latent, w_up_v)
    logits = torch.einsum("bthd,bshd->bhts", q, keys) * q.shape[3] ** -0.5
    future = torch.ones(q.shape[1], q.shape[1], dtype=torch.bool, device=q.device).triu(1)
    weights = torch.softmax(logits.masked_fill(future, float("-inf")), dim=-1)
    return torch.einsum("bhts,bshd->bthd", weights, values).unsqueeze(0)
