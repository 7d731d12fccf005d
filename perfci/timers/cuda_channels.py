"""Streams on which a launch takes as long in this process as in the next one.

What a kernel costs from event to event depends on its stream: those that were created one after
the other share a place from which the GPU fetches their launches, and of two such places one is
slower by 0.14 µs a launch. Which of them a stream has is drawn anew in every process. On one
stream an empty kernel differed by 0.1 µs between processes, in the mean over the quickest quarter
of 32 by 0.025 µs (two H200, 18 processes each, 2026-11-30).
"""

import random
from collections.abc import Callable, Sequence
from functools import cache
from statistics import fmean

import torch

from perfci.history.summary import interquartile_mean
from perfci.timers.cuda_stream import Blocker, Event, timed

_STREAMS = 32
_KEPT = 8
_ROUNDS = 2
_LAUNCHES = 20
_LEAST_FLUSH_BYTES = 256 * 2**20

Stream = torch.cuda.Stream


class Flush:
    """Writes more than the L2 holds, so that nothing else is left in it."""

    def __init__(self, device: str) -> None:
        l2_bytes = torch.cuda.get_device_properties(device).L2_cache_size
        size = max(2 * l2_bytes, _LEAST_FLUSH_BYTES)
        self._written = torch.empty(size, dtype=torch.uint8, device=device)

    def __call__(self) -> None:
        """Write it all, on the current stream."""
        self._written.zero_()


def read_cold(
    blocker: Blocker, stream: Stream, flush: Flush, calls: Sequence[Callable[[], object]]
) -> list[float]:
    """What each call takes on a stream behind a flush of its own, in nanoseconds.

    Whatever the device has to do is done first. Raises InvalidTimingError.
    """

    def flushed(call: Callable[[], object]) -> tuple[Event, Event]:
        flush()
        return timed(call)

    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        return blocker.read(lambda: [flushed(call) for call in calls])


@cache
def quick_streams(device: str) -> tuple[Stream, ...]:
    """The streams of this process on which an empty kernel is quickest, the quickest first."""
    streams = [Stream(device) for _ in range(_STREAMS)]
    blocker, flush = Blocker(), Flush(device)
    calls = [lambda: torch.cuda._sleep(0)] * _LAUNCHES  # noqa: SLF001 — an empty kernel
    read_cold(blocker, streams[0], flush, calls)  # what comes first takes its time
    readings_ns: dict[Stream, list[float]] = {each: [] for each in streams}
    for _ in range(_ROUNDS):
        for stream in random.sample(streams, _STREAMS):
            readings_ns[stream].append(interquartile_mean(read_cold(blocker, stream, flush, calls)))
    quickest = sorted(streams, key=lambda each: fmean(readings_ns[each]))
    return tuple(quickest[:_KEPT])
