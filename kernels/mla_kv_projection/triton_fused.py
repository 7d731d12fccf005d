# perfci: devices = ["cuda"]
# perfci: compiles = true
# perfci: max = { rank = 128 }
"""Both products of 16 tokens in one Triton program; the latent stays in registers.

Hidden and w_down go by in blocks of the model's width, then the up-projections in blocks of
columns; sums are float32, without TF32. Traffic: the weights once a program, hidden and the output
once. Limits: rank 128, since blocks of the weights hold all of it, and contiguous float32 inputs.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

TOKENS, DEPTH, COLUMNS = 16, 32, 64
LARGEST_RANK = 128
SIZES = {
    "hidden": ("batch", "sequence", "model"),
    "w_down": ("model", "rank"),
    "w_up_k": ("rank", "width"),
    "w_up_v": ("rank", "width"),
}


@triton.jit
def _project(
    hidden,
    w_down,
    w_up_k,
    w_up_v,
    out,
    tokens,
    model,
    rank,
    width,
    TOKENS: tl.constexpr,
    DEPTH: tl.constexpr,
    RANK: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    token = tl.program_id(0).to(tl.int64) * TOKENS + tl.arange(0, TOKENS)[:, None]
    r = tl.arange(0, RANK).to(tl.int64)  # times a width, it may not fit into 32 bits
    latent = tl.zeros((TOKENS, RANK), dtype=tl.float32)
    for start in range(0, model, DEPTH):
        m = start + tl.arange(0, DEPTH).to(tl.int64)
        x = tl.load(hidden + token * model + m, mask=(token < tokens) & (m < model), other=0.0)
        down_mask = (m[:, None] < model) & (r < rank)
        down = tl.load(w_down + m[:, None] * rank + r, mask=down_mask, other=0.0)
        latent = tl.dot(x, down, latent, input_precision="ieee")
    for start in range(0, width, COLUMNS):
        column = start + tl.arange(0, COLUMNS)
        up_mask = (r[:, None] < rank) & (column < width)
        up_offset = r[:, None] * width + column
        up_k = tl.load(w_up_k + up_offset, mask=up_mask, other=0.0)
        up_v = tl.load(w_up_v + up_offset, mask=up_mask, other=0.0)
        row = out + token * 2 * width + column
        written = (token < tokens) & (column < width)
        tl.store(row, tl.dot(latent, up_k, input_precision="ieee"), mask=written)
        tl.store(row + width, tl.dot(latent, up_v, input_precision="ieee"), mask=written)


def _read_sizes(inputs: dict[str, Tensor], **sizes: int) -> dict[str, int]:
    """The sizes by name, more than those given; ValueError for tensors that will not do."""
    for name, tensor in inputs.items():
        if tensor.dtype != torch.float32:
            raise ValueError(f"{name} must be float32")
        if tensor.dim() != len(SIZES[name]):
            raise ValueError(f"{name} has {tensor.dim()} dimensions, must have {len(SIZES[name])}")
        for dimension, (key, size) in enumerate(zip(SIZES[name], tensor.shape, strict=True)):
            if sizes.setdefault(key, size) != size:
                must = f"in dimension {dimension}, must have {sizes[key]}"
                raise ValueError(f"{name} has size {size} {must}")
        if not tensor.is_contiguous():
            raise ValueError(f"{name} must be contiguous")
    return sizes


def _check_devices(inputs: dict[str, Tensor]) -> None:
    """ValueError for what is not on the current GPU, on which Triton launches."""
    for name, tensor in inputs.items():
        if not tensor.is_cuda:
            raise ValueError(f"{name} is on {tensor.device}, this variant takes tensors on cuda")
        if tensor.get_device() != (current := torch.cuda.current_device()):
            must = f"the current device is cuda:{current}; change it"
            raise ValueError(f"{name} is on {tensor.device}, {must}")


def run(
    hidden: Tensor,
    w_down: Tensor,
    w_up_k: Tensor,
    w_up_v: Tensor,
    kv_heads: int,
    head_dim: int,
) -> Tensor:
    """Project and stack; the output is (batch, sequence, 2, kv_heads, head_dim)."""
    for name, count in {"kv_heads": kv_heads, "head_dim": head_dim}.items():
        if not isinstance(count, int):
            raise TypeError(f"{name} is {count}, must be an integer")
        if count < 0:
            raise ValueError(f"{name} is {count}, must not be negative")
    inputs = {"hidden": hidden, "w_down": w_down, "w_up_k": w_up_k, "w_up_v": w_up_v}
    rank = _read_sizes(inputs, width=kv_heads * head_dim)["rank"]
    if rank > LARGEST_RANK:
        raise ValueError(f"rank is {rank}, at most {LARGEST_RANK}")
    _check_devices(inputs)
    batch, sequence, model = hidden.shape
    tokens, width = batch * sequence, kv_heads * head_dim
    out = torch.empty(
        (batch, sequence, 2, kv_heads, head_dim), dtype=hidden.dtype, device=hidden.device
    )
    if tokens > 0 and width > 0:
        _project[(triton.cdiv(tokens, TOKENS),)](
            hidden,
            w_down,
            w_up_k,
            w_up_v,
            out,
            tokens,
            model,
            rank,
            width,
            TOKENS=TOKENS,
            DEPTH=DEPTH,
            RANK=max(16, triton.next_power_of_2(rank)),
            COLUMNS=COLUMNS,
        )
    return out
