# perfci: peer = true
# perfci: dtypes = ["float32", "bfloat16", "float16"]
"""Plain PyTorch: two products for keys and values, one for the logits, mask, softmax, one more.

Each step goes through memory; the logits, (batch, heads, sequence, sequence), go five times.
"""

import torch
from torch import Tensor


def run(q: Tensor, kv_latent: Tensor, w_up_k: Tensor, w_up_v: Tensor) -> Tensor:
    """Attend; the output has the shape of q."""
    sequence, head_dim = q.shape[1], q.shape[3]
    keys = torch.einsum("bsr,rhd->bshd", kv_latent, w_up_k)
    values = torch.einsum("bsr,rhd->bshd", kv_latent, w_up_v)
    logits = torch.einsum("bthd,bshd->bhts", q, keys) * head_dim**-0.5
    future = torch.ones(sequence, sequence, dtype=torch.bool, device=q.device).triu(1)
    weights = torch.softmax(logits.masked_fill(future, float("-inf")), dim=-1)
    return torch.einsum("bhts,bshd->bthd", weights, values)
