"""Honest: returns a view whose memory is laid out column by column."""

import torch
from torch import Tensor


def run(x: Tensor, w: Tensor) -> Tensor:
    """Multiply the transposed matrices and return the transposed product."""
    return torch.tanh(w.t() @ x.t()).t()
