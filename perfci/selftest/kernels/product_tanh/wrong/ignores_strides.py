"""Planted: reads x as if it were contiguous."""

import torch
from torch import Tensor


def run(x: Tensor, w: Tensor) -> Tensor:
    """Multiply what lies where x begins."""
    return torch.tanh(x.as_strided(x.shape, (x.shape[1], 1)) @ w)
