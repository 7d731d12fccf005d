"""Nothing: what a launch costs by itself."""

import torch
from torch import Tensor


def make_inputs(
    *,
    dtype: torch.dtype,
    device: torch.device | str,
    generator: torch.Generator,  # noqa: ARG001
) -> dict[str, Tensor]:
    """Make an x without elements, which only says where the output is to be."""
    return {"x": torch.empty(0, dtype=dtype, device=device)}


def reference(x: Tensor) -> Tensor:
    """Give back as many elements as there are: none."""
    return x.clone()


def bytes_moved() -> int:
    """Count nothing."""
    return 0


def flops() -> int:
    """Count nothing."""
    return 0
