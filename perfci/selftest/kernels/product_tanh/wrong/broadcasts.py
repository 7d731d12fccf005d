"""Planted: returns one row, which would broadcast."""

import torch
from torch import Tensor


def run(x: Tensor, w: Tensor) -> Tensor:
    """Multiply the first row alone, without its dimension."""
    return torch.tanh(x[0] @ w)
