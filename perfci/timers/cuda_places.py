"""Streams of which the mean is nearly the same in this process as in the next one.

What a kernel costs from event to event depends on its stream. The GPU fetches a stream's launches
from a place in memory that it shares with some forty others which were created before or after it,
and some places cost 0.1 µs a launch more than others. Which they are is drawn anew in every
process. Ninety-six streams, every sixth of which is read on, lie in about four places (one H200,
nine processes, 2026-11-30).
"""

from functools import cache

import torch

from perfci.gpu.driver import Streams

_STREAMS = 16
_CREATED_FOR_EACH = 6

Stream = torch.cuda.Stream


@cache
def scattered_streams(device: str) -> tuple[Stream, ...]:
    """Streams of this process in several places: many more are created than are used.

    Raises DriverError.
    """
    create = Streams().create
    created = [create() for _ in range(_STREAMS * _CREATED_FOR_EACH)]
    return tuple(
        torch.cuda.ExternalStream(each, device=device) for each in created[::_CREATED_FOR_EACH]
    )
