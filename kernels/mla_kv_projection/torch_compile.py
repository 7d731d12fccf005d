# perfci: peer = true
# perfci: compiles = true
# perfci: dtypes = ["float32", "bfloat16"]
"""The eager projection as torch.compile makes it: one graph a shape, no fall-back to eager.

The copy that stacks is fused; the latent still goes through memory between the products.
On a GPU the products are autotuned, without CUDA graphs: they would return the same memory from
each call.
"""

import functools
from collections.abc import Callable

import torch
from torch import Tensor
from torch._dynamo import config as dynamo

# Beyond its limit dynamo silently runs the function uncompiled: room for every case, and an error.
dynamo.recompile_limit = 256
dynamo.fail_on_recompile_limit_hit = True


def _project(
    hidden: Tensor,
    w_down: Tensor,
    w_up_k: Tensor,
    w_up_v: Tensor,
    kv_heads: int,
    head_dim: int,
) -> Tensor:
    batch, sequence, model = hidden.shape
    latent = hidden.reshape(batch * sequence, model).mm(w_down)
    keys = latent.mm(w_up_k).view(batch, sequence, kv_heads, head_dim)
    values = latent.mm(w_up_v).view(batch, sequence, kv_heads, head_dim)
    return torch.stack((keys, values), dim=2)


@functools.cache
def _compiled(device_type: str) -> Callable[..., Tensor]:
    mode = "max-autotune-no-cudagraphs" if device_type == "cuda" else "default"
    return torch.compile(_project, dynamic=False, fullgraph=True, mode=mode)


def run(
    hidden: Tensor,
    w_down: Tensor,
    w_up_k: Tensor,
    w_up_v: Tensor,
    kv_heads: int,
    head_dim: int,
) -> Tensor:
    """Project and stack; the output is (batch, sequence, 2, kv_heads, head_dim)."""
    project = _compiled(hidden.device.type)
    return project(hidden, w_down, w_up_k, w_up_v, kv_heads, head_dim)
