"""tanh(x @ w): sums, whose order matters, and a function that overflows if done carelessly."""

import torch
from torch import Tensor


def make_inputs(
    *,
    rows: int,
    depth: int,
    columns: int,
    dtype: torch.dtype,
    device: torch.device | str,
    generator: torch.Generator,
) -> dict[str, Tensor]:
    """Draw x (rows, depth) and w (depth, columns) such that the sums have unit variance."""
    x = torch.randn(rows, depth, dtype=dtype, device=device, generator=generator)
    w = torch.randn(depth, columns, dtype=dtype, device=device, generator=generator)
    return {"x": x, "w": w * depth**-0.5}


def reference(x: Tensor, w: Tensor) -> Tensor:
    """Multiply, then squash; the output is (rows, columns)."""
    return torch.tanh(x @ w)


def magnitude(x: Tensor, w: Tensor) -> Tensor:
    """Sum the magnitudes of the terms, through tanh's slope, and of the output itself."""
    x, w = x.double(), w.double()
    output = torch.tanh(x @ w)
    return (1.0 - output.square()) * (x.abs() @ w.abs()) + output.abs()


def depth(*, depth: int) -> int:
    """Count the roundings that one term can meet: a sum over depth."""
    return depth


def bytes_moved(*, rows: int, depth: int, columns: int, dtype: torch.dtype) -> int:
    """Count inputs and output once."""
    return (rows * depth + depth * columns + rows * columns) * dtype.itemsize


def flops(*, rows: int, depth: int, columns: int) -> int:
    """Count two operations a multiply-add."""
    return 2 * rows * depth * columns
