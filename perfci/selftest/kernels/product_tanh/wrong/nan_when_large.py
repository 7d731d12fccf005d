"""Planted: tanh by way of an exponential that overflows for large sums."""

import torch
from torch import Tensor


def run(x: Tensor, w: Tensor) -> Tensor:
    """Multiply, and squash as the formula says."""
    grown = torch.exp(2.0 * (x @ w))
    return (grown - 1.0) / (grown + 1.0)
