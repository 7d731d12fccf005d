"""One launch at a time with the L2 flushed: what a kernel costs whose data is not in cache.

The stream is kept busy first, so that the events bracket the kernel and not the host's launch.
Before each launch more than twice the L2, at least 256 MiB, is written. That drives out all but
what a kernel has asked the L2 to keep, which is given up before the stream gets work. The driver
does so at once and not in a stream's turn: of a kernel that asks so, launches are handed over one
at a time.
"""

import contextlib
from itertools import cycle

import torch

from perfci.gpu.driver import DriverError, Persistence
from perfci.timers import Reader, Workload
from perfci.timers.cuda_stream import Blocker, timed

_BATCH_SAMPLES = 20
# Cheap enough for the tick of 32 ns, 0.3 % of a kernel of 10 µs, to average out.
_MINIMUM_SAMPLES = 200
_LEAST_FLUSH_BYTES = 256 * 2**20


def open_reader(workload: Workload) -> Reader:
    """What reads latencies of one call, by events that tick in 32 ns."""
    turns = cycle(workload.calls)
    flush = _flush_buffer(workload.device)
    blocker = Blocker()
    persistence = Persistence()

    def sample() -> tuple[torch.cuda.Event, torch.cuda.Event]:
        flush.zero_()
        return timed(next(turns))

    def call() -> None:
        next(turns)()
        torch.cuda.synchronize()

    def read_together(count: int) -> list[float]:
        _give_up_kept(persistence)
        return blocker.read(lambda: [sample() for _ in range(count)])

    def read() -> list[float]:
        if not workload.keeps_in_l2:
            return read_together(_BATCH_SAMPLES)
        return [each for _ in range(_BATCH_SAMPLES) for each in read_together(1)]

    return Reader(call=call, read=read, minimum_samples=_MINIMUM_SAMPLES)


def _give_up_kept(persistence: Persistence) -> None:
    """Let the L2 keep nothing; a device that cannot keep anything cannot give it up either."""
    with contextlib.suppress(DriverError):
        persistence.end()


def _flush_buffer(device: str) -> torch.Tensor:
    l2_bytes = torch.cuda.get_device_properties(device).L2_cache_size
    size = max(2 * l2_bytes, _LEAST_FLUSH_BYTES)
    return torch.empty(size, dtype=torch.uint8, device=device)
