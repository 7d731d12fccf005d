"""Planted: returns a tensor that computes nothing until it is looked at."""

import torch
from torch import Tensor


class _Lazy(Tensor):
    pass


def run(x: Tensor, w: Tensor) -> Tensor:
    """Return what passes for a tensor."""
    return torch.tanh(x @ w).as_subclass(_Lazy)
