# perfci: peer = true
# perfci: dtypes = ["float32", "bfloat16", "float16"]
"""Plain PyTorch: two products for keys and values, one for the logits, mask, softmax, one more.

Each step goes through memory; the logits, (batch, heads, sequence, sequence), go five times.
"""

import torch
from torch import Tensor


def _check_sizes(q: Tensor, kv_latent: Tensor, w_up_k: Tensor, w_up_v: Tensor) -> None:
    """Refuse what PyTorch would broadcast or reshape without a word."""
    up = (*kv_latent.shape[2:], *q.shape[2:])
    for name, sizes, needed in (
        ("kv_latent", kv_latent.shape[:2], q.shape[:2]),
        ("w_up_k", w_up_k.shape, up),
        ("w_up_v", w_up_v.shape, up),
    ):
        if sizes != needed:
            raise ValueError(f"{name} has sizes {tuple(sizes)}, must have {tuple(needed)}")


def run(q: Tensor, kv_latent: Tensor, w_up_k: Tensor, w_up_v: Tensor) -> Tensor:
    """Attend; the output has the shape of q."""
    _check_sizes(q, kv_latent, w_up_k, w_up_v)
    sequence, head_dim = q.shape[1], q.shape[3]
    keys = torch.einsum("bsr,rhd->bshd", kv_latent, w_up_k)
    values = torch.einsum("bsr,rhd->bshd", kv_latent, w_up_v)
    logits = torch.einsum("bthd,bshd->bhts", q, keys) * head_dim**-0.5
    future = torch.ones(sequence, sequence, dtype=torch.bool, device=q.device).triu(1)
    weights = torch.softmax(logits.masked_fill(future, float("-inf")), dim=-1)
    return torch.einsum("bhts,bshd->bthd", weights, values)
