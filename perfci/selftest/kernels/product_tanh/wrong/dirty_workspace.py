"""Planted: sums go to a workspace that only the first call at a shape finds clean."""

import torch
from torch import Tensor

_WORKSPACES: dict[tuple[int, int], Tensor] = {}


def run(x: Tensor, w: Tensor) -> Tensor:
    """Add the product to what is there, and squash."""
    shape = (x.shape[0], w.shape[1])
    if shape not in _WORKSPACES:
        _WORKSPACES[shape] = x.new_zeros(shape)
    return torch.tanh(_WORKSPACES[shape].add_(x @ w))
