# perfci: devices = ["cuda"]
# perfci: compiles = true
"""Honest: a Triton kernel, one program a tile, float32 throughout."""

import torch
import triton
import triton.language as tl
from torch import Tensor

_TILE = 16


@triton.jit
def _multiply(
    x,
    w,
    out,
    rows,
    depth,
    columns,
    x_row,
    x_column,
    w_row,
    w_column,
    TILE: tl.constexpr,
):
    i = tl.program_id(0) * TILE + tl.arange(0, TILE)
    j = tl.program_id(1) * TILE + tl.arange(0, TILE)
    total = tl.zeros((TILE, TILE), dtype=tl.float32)
    for k in range(depth):
        left = tl.load(x + i * x_row + k * x_column, mask=i < rows, other=0.0)
        right = tl.load(w + k * w_row + j * w_column, mask=j < columns, other=0.0)
        total += left[:, None] * right[None, :]
    # tanh by way of an exponential that cannot overflow.
    shrunk = tl.exp(-2.0 * tl.abs(total))
    size = (1.0 - shrunk) / (1.0 + shrunk)
    inside = (i < rows)[:, None] & (j < columns)[None, :]
    at = i[:, None] * columns + j[None, :]
    tl.store(out + at, tl.where(total < 0.0, -size, size), mask=inside)


def run(x: Tensor, w: Tensor) -> Tensor:
    """Multiply and squash."""
    (rows, depth), columns = x.shape, w.shape[1]
    out = torch.empty(rows, columns, dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(rows, _TILE), triton.cdiv(columns, _TILE))
    _multiply[grid](x, w, out, rows, depth, columns, *x.stride(), *w.stride(), TILE=_TILE)
    return out
