"""What the CUDA timers share: a busy stream, so that no launch waits for the host."""

from collections.abc import Callable, Sequence
from time import perf_counter_ns

import torch

from perfci.timers import InvalidTimingError

_CYCLES_PER_NS = 2.0
_LONGEST_BLOCK_NS = 400_000_000.0
_HEADROOM = 2.0
_CLOCK_SLACK_NS = 500_000
_CLOCK_SHARE = 0.05
_MOST_DISAGREEMENTS = 5

Event = torch.cuda.Event
Pair = tuple[Event, Event]


class Blocker:
    """Keeps the current stream busy while the host hands over work, and knows whether it did.

    All that the stream does in a reading is timed by the host as well: a second clock, which must
    not contradict the events. ``shortest_ns`` is how long it blocks at the least.
    """

    def __init__(self, *, shortest_ns: float = 200_000.0) -> None:
        self._shortest_ns = self._block_ns = shortest_ns
        self._disagreements = 0

    def read(self, hand_over: Callable[[], Sequence[Pair]], *, times: int = 1) -> list[float]:
        """The times between pairs of events that ``hand_over`` puts on the blocked stream, in ns.

        So many ``times``, each when the device has done what came before. Raises
        InvalidTimingError where the host is never done in time: work that waits for the device
        cannot be handed over behind a blocker; and where the host's clock contradicts the events
        again and again.
        """
        begin = Event(enable_timing=True)
        start_ns = perf_counter_ns()
        begin.record()
        pairs: list[Pair] = []
        for _ in range(times):
            pairs += self._handed_over(hand_over)
        whole_ns = perf_counter_ns() - start_ns
        self._compare_clocks(begin.elapsed_time(pairs[-1][1]) * 1e6, float(whole_ns))
        return _between(pairs)

    def _handed_over(self, hand_over: Callable[[], Sequence[Pair]]) -> Sequence[Pair]:
        """Pairs of events that have happened, handed over before the first of them did."""
        while True:
            start_ns = perf_counter_ns()
            # In cycles of the SM's clock, of which a GPU makes about two in a nanosecond at most.
            torch.cuda._sleep(int(self._block_ns * _CYCLES_PER_NS))  # noqa: SLF001
            pairs = hand_over()
            in_time = not pairs[0][0].query()
            host_ns = float(perf_counter_ns() - start_ns)
            torch.cuda.synchronize()
            if in_time:
                # Not longer than is needed: the first call took long for what it loaded.
                needed_ns = _HEADROOM * host_ns
                self._block_ns = max(self._shortest_ns, min(self._block_ns, needed_ns))
                return pairs
            if self._block_ns >= _LONGEST_BLOCK_NS:
                raise InvalidTimingError(
                    "waits for the device or takes too long to launch, so that it cannot be "
                    "timed behind a busy stream"
                )
            self._block_ns = min(_LONGEST_BLOCK_NS, _HEADROOM * max(self._block_ns, host_ns))

    def _compare_clocks(self, events_ns: float, host_ns: float) -> None:
        """InvalidTimingError where the events and the host never agree how long it all took.

        Once may be the host's fault, which an operating system can keep from its work.
        """
        apart_ns = abs(host_ns - events_ns)
        if apart_ns <= max(_CLOCK_SLACK_NS, _CLOCK_SHARE * host_ns):
            self._disagreements = 0
            return
        self._disagreements += 1
        if self._disagreements == _MOST_DISAGREEMENTS:
            raise InvalidTimingError(
                f"the events say that {events_ns / 1e6:.3g} ms went by and the host's clock "
                f"{host_ns / 1e6:.3g} ms: neither is believed"
            )


def _between(pairs: Sequence[Pair]) -> list[float]:
    times_ns = [start.elapsed_time(end) * 1e6 for start, end in pairs]
    if not all(each > 0.0 for each in times_ns):
        raise InvalidTimingError("takes no time between two events: nothing was launched")
    return times_ns


def timed(call: Callable[[], object]) -> Pair:
    """Put a call on the current stream between two events."""
    start, end = Event(enable_timing=True), Event(enable_timing=True)
    start.record()
    call()
    end.record()
    return start, end
