"""Planted: returns zeros."""

from torch import Tensor


def run(x: Tensor, w: Tensor) -> Tensor:
    """Return zeros of the right shape."""
    return x.new_zeros(x.shape[0], w.shape[1])
