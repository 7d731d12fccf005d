"""Planted: leaves the work to another thread or stream, and does not wait for it."""

import threading
import time

import torch
from torch import Tensor

_LATE_S = 0.05
_LATE_CYCLES = 20_000_000


def run(x: Tensor, w: Tensor) -> Tensor:
    """Return an output that is written later."""
    out = torch.full((x.shape[0], w.shape[1]), 2.0, dtype=x.dtype, device=x.device)
    if x.is_cuda:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            torch.cuda._sleep(_LATE_CYCLES)  # noqa: SLF001
            torch.tanh(x @ w, out=out)
        return out

    def work() -> None:
        time.sleep(_LATE_S)
        torch.tanh(x @ w, out=out)

    threading.Thread(target=work).start()
    return out
