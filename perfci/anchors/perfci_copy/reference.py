"""A copy: each element read once and written once."""

import torch
from torch import Tensor


def make_inputs(
    *,
    rows: int,
    columns: int,
    dtype: torch.dtype,
    device: torch.device | str,
    generator: torch.Generator,
) -> dict[str, Tensor]:
    """Make x (rows, columns) as a sum of a drawn column and a drawn row.

    No two elements are alike, and yet only rows + columns numbers are drawn: on a CPU, drawing
    them all would take longer than measuring.
    """
    column = torch.randn(rows, 1, dtype=dtype, device=device, generator=generator)
    row = torch.randn(1, columns, dtype=dtype, device=device, generator=generator)
    return {"x": column + row}


def reference(x: Tensor) -> Tensor:
    """Copy x."""
    return x.clone()


def bytes_moved(*, rows: int, columns: int, dtype: torch.dtype) -> int:
    """Count the bytes read and the bytes written."""
    return 2 * rows * columns * dtype.itemsize


def flops() -> int:
    """Count nothing: a copy computes nothing."""
    return 0
