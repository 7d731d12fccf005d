# perfci: peer = true
# perfci: compiles = true
# perfci: dtypes = ["float32", "bfloat16"]
"""The eager attention as torch.compile makes it: one graph a shape, no fall-back to eager.

Scale, mask and softmax are fused; keys, values and logits still go through memory.
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


def _attend(q: Tensor, kv_latent: Tensor, w_up_k: Tensor, w_up_v: Tensor) -> Tensor:
    sequence, head_dim = q.shape[1], q.shape[3]
    keys = torch.einsum("bsr,rhd->bshd", kv_latent, w_up_k)
    values = torch.einsum("bsr,rhd->bshd", kv_latent, w_up_v)
    logits = torch.einsum("bthd,bshd->bhts", q, keys) * head_dim**-0.5
    future = torch.ones(sequence, sequence, dtype=torch.bool, device=q.device).triu(1)
    weights = torch.softmax(logits.masked_fill(future, float("-inf")), dim=-1)
    return torch.einsum("bhts,bshd->bthd", weights, values)


@functools.cache
def _compiled(device_type: str) -> Callable[..., Tensor]:
    mode = "max-autotune-no-cudagraphs" if device_type == "cuda" else "default"
    return torch.compile(_attend, dynamic=False, fullgraph=True, mode=mode)


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
    return _compiled(q.device.type)(q, kv_latent, w_up_k, w_up_v)
