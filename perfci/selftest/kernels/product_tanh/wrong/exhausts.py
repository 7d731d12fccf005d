# perfci: max = { rows = 1 }
"""Planted: takes all memory there is."""

import torch
from torch import Tensor

_KEPT: list[Tensor] = []


def run(x: Tensor, w: Tensor) -> Tensor:
    """Take memory until there is no more."""
    while True:
        _KEPT.append(torch.ones(1 << 26, dtype=x.dtype, device=x.device))
