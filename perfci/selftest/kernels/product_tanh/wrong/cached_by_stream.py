# perfci: devices = ["cuda"]
"""Planted: right on the default stream; on others a copy of what it has computed there before."""

import torch
from torch import Tensor

_CACHE: dict[tuple[int, int], Tensor] = {}


def run(x: Tensor, w: Tensor) -> Tensor:
    """Multiply, or copy what the same address gave on the same stream."""
    stream = torch.cuda.current_stream().cuda_stream
    if stream == 0 or torch.cuda.is_current_stream_capturing():
        return torch.tanh(x @ w)
    key = (stream, x.data_ptr())
    if key not in _CACHE:
        _CACHE[key] = torch.tanh(x @ w)
    return _CACHE[key].clone()
