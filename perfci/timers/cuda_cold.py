"""One launch at a time with the L2 flushed: what a kernel costs whose data is not in cache.

The stream is kept busy first, so that the events bracket the kernel and not the host's launch.
Before each launch more than twice the L2, at least 256 MiB, is written.
"""

from itertools import cycle

import torch

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

    def sample() -> tuple[torch.cuda.Event, torch.cuda.Event]:
        flush.zero_()
        return timed(next(turns))

    def call() -> None:
        next(turns)()
        torch.cuda.synchronize()

    def read() -> list[float]:
        return blocker.read(lambda: [sample() for _ in range(_BATCH_SAMPLES)])

    return Reader(call=call, read=read, minimum_samples=_MINIMUM_SAMPLES)


def _flush_buffer(device: str) -> torch.Tensor:
    l2_bytes = torch.cuda.get_device_properties(device).L2_cache_size
    size = max(2 * l2_bytes, _LEAST_FLUSH_BYTES)
    return torch.empty(size, dtype=torch.uint8, device=device)
