"""Wrong: masks the weights instead of the logits, so that they no longer add up to one."""

import torch
from torch import Tensor


def run(q: Tensor, kv_latent: Tensor, w_up_k: Tensor, w_up_v: Tensor) -> Tensor:
    """Attend with the mask applied too late."""
    keys = torch.einsum("bsr,rhd->bshd", kv_latent, w_up_k)
    values = torch.einsum("bsr,rhd->bshd", kv_latent, w_up_v)
    logits = torch.einsum("bthd,bshd->bhts", q, keys) * q.shape[3] ** -0.5
    weights = torch.softmax(logits, dim=-1).tril()
    return torch.einsum("bhts,bshd->bthd", weights, values)
