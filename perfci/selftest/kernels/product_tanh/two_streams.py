# perfci: devices = ["cuda"]
"""Honest: half of the rows on a stream of its own, which is forked and joined as it should be."""

import torch
from torch import Tensor

_SIDE: list[torch.cuda.Stream] = []


def run(x: Tensor, w: Tensor) -> Tensor:
    """Multiply the halves side by side."""
    if not _SIDE:
        _SIDE.append(torch.cuda.Stream())
    side, half = _SIDE[0], x.shape[0] // 2
    out = torch.empty(x.shape[0], w.shape[1], dtype=x.dtype, device=x.device)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.tanh(x[:half] @ w, out=out[:half])
    torch.tanh(x[half:] @ w, out=out[half:])
    torch.cuda.current_stream().wait_stream(side)
    return out
