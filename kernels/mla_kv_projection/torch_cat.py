# perfci: peer = true
# perfci: dtypes = ["float32", "bfloat16", "float16"]
"""Two matrix products: the up-projections are concatenated, so one product makes K and V.

A row of that product is the token's keys, then its values: the stacked output without a copy of it.
The concatenation is done in each call, as is fair where the weights are given apart. The latent
still goes through memory. TF32 is whatever the process has set; perfci sets it off.
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
    """Project; the output is (batch, sequence, 2, kv_heads, head_dim)."""
    batch, sequence, model = hidden.shape
    latent = hidden.reshape(batch * sequence, model).mm(w_down)
    if w_up_k.shape != w_up_v.shape:  # together they might have as many columns as they should
        raise ValueError(f"w_up_v has sizes {tuple(w_up_v.shape)}, must have {tuple(w_up_k.shape)}")
    keys_and_values = latent.mm(torch.cat((w_up_k, w_up_v), dim=1))
    return keys_and_values.view(batch, sequence, 2, kv_heads, head_dim)
