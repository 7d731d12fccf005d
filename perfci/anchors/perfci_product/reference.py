"""The product of two square matrices."""

import torch
from torch import Tensor


def make_inputs(
    *,
    size: int,
    dtype: torch.dtype,
    device: torch.device | str,
    generator: torch.Generator,
) -> dict[str, Tensor]:
    """Draw standard-normal a and b, both (size, size)."""

    def normal() -> Tensor:
        return torch.randn(size, size, dtype=dtype, device=device, generator=generator)

    return {"a": normal(), "b": normal()}


def reference(a: Tensor, b: Tensor) -> Tensor:
    """Multiply."""
    return a @ b


def bytes_moved(*, size: int, dtype: torch.dtype) -> int:
    """Count each matrix once."""
    return 3 * size * size * dtype.itemsize


def flops(*, size: int) -> int:
    """Count two operations a multiply-add."""
    return 2 * size**3
