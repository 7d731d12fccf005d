# perfci: peer = true
# perfci: tf32 = true
# perfci: devices = ["cuda"]
"""The eager attention with its products in TF32: 10 bits of mantissa in, float32 sums.

Faster where the products are large, far less exact than float32. Whether TF32 is allowed is a
setting of the process, so it is set for the call and put back.
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
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        return _attend(q, kv_latent, w_up_k, w_up_v)
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before


def _attend(q: Tensor, kv_latent: Tensor, w_up_k: Tensor, w_up_v: Tensor) -> Tensor:
    sequence, head_dim = q.shape[1], q.shape[3]
    keys = torch.einsum("bsr,rhd->bshd", kv_latent, w_up_k)
    values = torch.einsum("bsr,rhd->bshd", kv_latent, w_up_v)
    logits = torch.einsum("bthd,bshd->bhts", q, keys) * head_dim**-0.5
    future = torch.ones(sequence, sequence, dtype=torch.bool, device=q.device).triu(1)
    weights = torch.softmax(logits.masked_fill(future, float("-inf")), dim=-1)
    return torch.einsum("bhts,bshd->bthd", weights, values)
