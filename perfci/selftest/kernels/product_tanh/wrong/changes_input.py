"""Planted: right, but x is scaled afterwards."""

import torch
from torch import Tensor


def run(x: Tensor, w: Tensor) -> Tensor:
    """Multiply, squash, and leave x another."""
    out = torch.tanh(x @ w)
    x.mul_(2.0)
    return out
