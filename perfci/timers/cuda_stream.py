"""What the CUDA timers share: a busy stream, so that no launch waits for the host."""

import time
from collections.abc import Callable, Sequence

import torch

from perfci.timers import InvalidTimingError

_CYCLES_PER_NS = 2.0
_SHORTEST_BLOCK_NS = 200_000
_LONGEST_BLOCK_NS = 400_000_000
_HEADROOM = 2.0


class Blocker:
    """Keeps the current stream busy while the host hands over work, and knows whether it did."""

    def __init__(self) -> None:
        self._block_ns = float(_SHORTEST_BLOCK_NS)

    def read(
        self, hand_over: Callable[[], Sequence[tuple[torch.cuda.Event, torch.cuda.Event]]]
    ) -> list[float]:
        """The times between pairs of events that ``hand_over`` puts on the blocked stream, in ns.

        Blocks longer where the host was not done in time. Raises InvalidTimingError where it
        never is: work that waits for the device cannot be handed over behind a blocker.
        """
        while True:
            start_ns = time.perf_counter_ns()
            # In cycles of the SM's clock, of which a GPU makes about two in a nanosecond at most.
            torch.cuda._sleep(int(self._block_ns * _CYCLES_PER_NS))  # noqa: SLF001
            unblocked = torch.cuda.Event()
            unblocked.record()
            pairs = hand_over()
            in_time = not unblocked.query()
            host_ns = time.perf_counter_ns() - start_ns
            torch.cuda.synchronize()
            if in_time:
                # Not longer than is needed: the first call took long for what it loaded.
                needed_ns = _HEADROOM * host_ns
                self._block_ns = max(_SHORTEST_BLOCK_NS, min(self._block_ns, needed_ns))
                return _between(pairs)
            if self._block_ns >= _LONGEST_BLOCK_NS:
                raise InvalidTimingError(
                    "waits for the device or takes too long to launch, so that it cannot be "
                    "timed behind a busy stream"
                )
            self._block_ns = min(
                float(_LONGEST_BLOCK_NS), _HEADROOM * max(self._block_ns, float(host_ns))
            )


def _between(pairs: Sequence[tuple[torch.cuda.Event, torch.cuda.Event]]) -> list[float]:
    times_ns = [start.elapsed_time(end) * 1e6 for start, end in pairs]
    if not all(each > 0.0 for each in times_ns):
        raise InvalidTimingError("takes no time between two events: nothing was launched")
    return times_ns


def timed(call: Callable[[], object]) -> tuple[torch.cuda.Event, torch.cuda.Event]:
    """Put a call on the current stream between two events."""
    start = torch.cuda.Event(enable_timing=True)
    end = torch.cuda.Event(enable_timing=True)
    start.record()
    call()
    end.record()
    return start, end
