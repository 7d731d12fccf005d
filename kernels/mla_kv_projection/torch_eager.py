# perfci: peer = true
# perfci: dtypes = ["float32", "bfloat16", "float16"]
"""Plain PyTorch: three matrix products and a copy that stacks.

The latent, the keys and the values go through memory once more than they must: written by a
product, read by the next step. TF32 is whatever the process has set; perfci sets it off.
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
    latent = hidden.reshape(batch * sequence, model).mm(w_down)
    keys = latent.mm(w_up_k).view(batch, sequence, kv_heads, head_dim)
    values = latent.mm(w_up_v).view(batch, sequence, kv_heads, head_dim)
    return torch.stack((keys, values), dim=2)
