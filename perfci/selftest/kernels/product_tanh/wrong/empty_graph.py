# perfci: devices = ["cuda"]
"""Planted: does nothing while it is captured, so that the graph is empty."""

import torch
from torch import Tensor

_LAST: dict[int, Tensor] = {}


def run(x: Tensor, w: Tensor) -> Tensor:
    """Multiply, unless a graph is being captured."""
    if not torch.cuda.is_current_stream_capturing():
        _LAST[x.data_ptr()] = torch.tanh(x @ w)
    return _LAST[x.data_ptr()]
