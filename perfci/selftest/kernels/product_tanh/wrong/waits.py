# perfci: devices = ["cuda"]
"""Planted: waits for the device, so that it cannot be timed behind a busy stream."""

import torch
from torch import Tensor


def run(x: Tensor, w: Tensor) -> Tensor:
    """Multiply and wait."""
    out = torch.tanh(x @ w)
    torch.cuda.synchronize()
    return out
