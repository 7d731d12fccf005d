"""Streams of which the mean is nearly the same in this process as in the next one.

What a kernel costs from event to event depends on its stream, anew in every process: streams lay
0.05 µs apart for an empty kernel of 3 µs, and 0.15 for one of 11 (standard deviations, one H200,
2026-11-30). Of five processes one stream gave 0.03 and 0.18 µs between them, sixteen 0.013 and 0.06
and sixty-four 0.007 and 0.027. Some that were created in a row are alike, so that many more are
created than are used.
"""

from functools import cache

import torch

from perfci.gpu.driver import Streams

_STREAMS = 72
_CREATED_FOR_EACH = 10

Stream = torch.cuda.Stream


@cache
def scattered_streams(device: str) -> tuple[Stream, ...]:
    """Streams of this process, of which one in so many that are created is used.

    Raises DriverError.
    """
    create = Streams().create
    created = [create() for _ in range(_STREAMS * _CREATED_FOR_EACH)]
    return tuple(
        torch.cuda.ExternalStream(each, device=device) for each in created[::_CREATED_FOR_EACH]
    )
