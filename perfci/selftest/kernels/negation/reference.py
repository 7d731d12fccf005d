"""-x: nothing but memory, and so the place for what goes wrong with very many elements."""

import torch
from torch import Tensor


def make_inputs(
    *,
    count: int,
    dtype: torch.dtype,
    device: torch.device | str,
    generator: torch.Generator,
) -> dict[str, Tensor]:
    """Draw x (count)."""
    return {"x": torch.randn(count, dtype=dtype, device=device, generator=generator)}


def reference(x: Tensor) -> Tensor:
    """Negate."""
    return -x


def bytes_moved(*, count: int, dtype: torch.dtype) -> int:
    """Count each element read and written once."""
    return 2 * count * dtype.itemsize


def flops(*, count: int) -> int:
    """Count one operation an element."""
    return count
