# perfci: peer = true
# perfci: tf32 = true
# perfci: devices = ["cuda"]
"""The eager projection with its products in TF32: 10 bits of mantissa in, float32 sums.

Faster where the products are large, some twenty times less exact than float32. Whether TF32 is
allowed is a setting of the process, so it is set for the call and put back.
"""

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
    """Project and stack; the output is (batch, sequence, 2, kv_heads, head_dim)."""
    batch, sequence, model = hidden.shape
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        latent = hidden.reshape(batch * sequence, model).mm(w_down)
        keys = latent.mm(w_up_k).view(batch, sequence, kv_heads, head_dim)
        values = latent.mm(w_up_v).view(batch, sequence, kv_heads, head_dim)
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before
    return torch.stack((keys, values), dim=2)
