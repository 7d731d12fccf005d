"""One launch at a time with the L2 flushed: what a kernel costs whose data is not in cache.

The stream is kept busy first, so that the events bracket the kernel and not the host's launch.
Before each launch more than twice the L2, at least 256 MiB, is written. That drives out all but
what a kernel has asked the L2 to keep, which is given up before the stream gets work. The driver
does so at once and not in a stream's turn: of a kernel that asks so, launches are handed over one
at a time. Batches take turns on several streams, so that what lies in one of them averages out.
"""

import contextlib
from itertools import cycle

import torch

from perfci.gpu.driver import DriverError, Persistence
from perfci.timers import Reader, Workload
from perfci.timers.cuda_channels import Stream, scattered_streams
from perfci.timers.cuda_stream import Blocker, timed

_BATCH_SAMPLES = 20
_TARGET = 0.003
"""The ratio of two sides that are known so closely is known to 0.22 % (one standard deviation)."""
_LEAST_FLUSH_BYTES = 256 * 2**20
_STREAMS_BYTES = 2**30
"""What calls may keep in memory for the next ones: PyTorch does so for each stream by itself."""


def open_reader(workload: Workload) -> Reader:
    """What reads latencies of one call, by events that tick in 32 ns."""
    turns = cycle(workload.calls)
    streams = _streams_for(workload)
    left = cycle(streams)
    flush = _flush_buffer(workload.device)
    blocker = Blocker()
    persistence = Persistence()

    def sample() -> tuple[torch.cuda.Event, torch.cuda.Event]:
        flush.zero_()
        return timed(next(turns))

    def call() -> None:
        next(turns)()
        torch.cuda.synchronize()

    def begin() -> None:
        nonlocal left
        left = cycle(streams)

    def read_together(count: int) -> list[float]:
        _give_up_kept(persistence)
        torch.cuda.synchronize()  # a stream does not wait for what others have to do
        with torch.cuda.stream(next(left)):
            return blocker.read(lambda: [sample() for _ in range(count)])

    def read() -> list[float]:
        if not workload.keeps_in_l2:
            return read_together(_BATCH_SAMPLES)
        return [each for _ in range(_BATCH_SAMPLES) for each in read_together(1)]

    return Reader(call=call, begin=begin, read=read, target=_TARGET)


def _streams_for(workload: Workload) -> tuple[Stream, ...]:
    """Streams that have run the workload once, and so have the memory that it takes."""
    fitting = max(1, _STREAMS_BYTES // max(1, workload.set_bytes))
    streams = scattered_streams(workload.device)[:fitting]
    torch.cuda.synchronize()
    for stream, call in zip(streams, cycle(workload.calls), strict=False):
        with torch.cuda.stream(stream):
            call()
    torch.cuda.synchronize()
    return streams


def _give_up_kept(persistence: Persistence) -> None:
    """Let the L2 keep nothing; a device that cannot keep anything cannot give it up either."""
    with contextlib.suppress(DriverError):
        persistence.end()


def _flush_buffer(device: str) -> torch.Tensor:
    l2_bytes = torch.cuda.get_device_properties(device).L2_cache_size
    size = max(2 * l2_bytes, _LEAST_FLUSH_BYTES)
    return torch.empty(size, dtype=torch.uint8, device=device)
