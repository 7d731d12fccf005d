"""Honest: allocates more than its output in each call."""

import torch
from torch import Tensor


def run(x: Tensor, w: Tensor) -> Tensor:
    """Multiply by way of a padded copy of x."""
    padded = torch.zeros(x.shape[0] + 5, x.shape[1] + 3, dtype=x.dtype, device=x.device)
    padded[: x.shape[0], : x.shape[1]] = x
    return torch.tanh(padded[: x.shape[0], : x.shape[1]] @ w)
