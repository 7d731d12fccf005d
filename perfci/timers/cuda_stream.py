"""What the CUDA timers share: a busy stream, so that no launch waits for the host."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter_ns
from typing import NamedTuple

import torch

from perfci.timers import InvalidTimingError

MOST_DISAGREEMENTS = 5
"""How often in a row the second clock may contradict the events."""

_CYCLES_PER_NS = 2.0
_LONGEST_BLOCK_NS = 800_000_000.0
_GROWTH = 2.0
_SHRINKING = 0.75
_HEADROOM = 1.5
_CLOCK_SLACK_NS = 500_000
_CLOCK_SHARE = 0.05
_LEFT_SLACK_NS = 50_000

Event = torch.cuda.Event
Pair = tuple[Event, Event]


class HandOver(NamedTuple):
    """Puts work on a stream, the current one if None, and events around what is to be timed."""

    put: Callable[[], Sequence[Pair]]
    stream: torch.cuda.Stream | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _HandedOver:
    """Work that is done: its events, and whether all was handed over before the first of them.

    ``host_ns`` is how long handing over took, ``taken_ns`` how long all of it, ``left_ns`` how long
    the device went on after the last event.
    """

    pairs: Sequence[Pair]
    in_time: bool
    host_ns: float
    taken_ns: float
    left_ns: float


class Blocker:
    """Keeps a stream busy while the host hands over work, and knows whether it did.

    All that the device does in a reading is timed by the host as well: a second clock, which must
    not contradict the events. ``shortest_ns`` is how long it blocks at the least.
    """

    def __init__(self, *, shortest_ns: float = 200_000.0) -> None:
        self._shortest_ns = self._block_ns = shortest_ns
        self._contradicted = self._outlasted = 0

    def read(self, *hand_overs: HandOver) -> list[float]:
        """The times between pairs of events that are handed over to blocked streams, in ns.

        One after the other, each when the device has done what came before. Where the host was not
        in time for one, none counts: those that it was in time for would be a choice. Raises
        InvalidTimingError where it never is: work that waits for the device cannot be handed over
        behind a blocker; and where the host's clock contradicts the events again and again.
        """
        longest_ns = _LONGEST_BLOCK_NS / len(hand_overs)
        while True:
            begin = Event(enable_timing=True)
            start_ns = perf_counter_ns()
            begin.record()
            done: list[_HandedOver] = []
            for each in hand_overs:
                done.append(self._done(each))
                if not done[-1].in_time:
                    break
            whole_ns = float(perf_counter_ns() - start_ns)
            host_ns = median(each.host_ns for each in done if each.pairs)
            if done[-1].in_time:
                pairs = [pair for each in done for pair in each.pairs]
                self._compare_clocks(begin.elapsed_time(pairs[-1][1]) * 1e6, whole_ns)
                self._look_for_more(done)
                # Not longer than is needed: the first call took long for what it loaded. But only
                # little by little, since all is read again whenever a host is held up longer.
                enough_ns = max(_HEADROOM * host_ns, _SHRINKING * self._block_ns)
                self._block_ns = max(self._shortest_ns, min(self._block_ns, enough_ns))
                return _between(pairs)
            if self._block_ns >= longest_ns:
                raise InvalidTimingError(
                    "waits for the device or takes too long to launch, so that it cannot be "
                    "timed behind a busy stream"
                )
            self._block_ns = min(longest_ns, _GROWTH * max(self._block_ns, host_ns))

    def _done(self, hand_over: HandOver) -> _HandedOver:
        start_ns = perf_counter_ns()
        # In cycles of the SM's clock, of which a GPU makes about two in a nanosecond at most.
        with torch.cuda.stream(hand_over.stream):
            torch.cuda._sleep(int(self._block_ns * _CYCLES_PER_NS))  # noqa: SLF001
            pairs = hand_over.put()
        in_time = not any(start.query() for start, _ in pairs[:1])
        handed_over_ns = perf_counter_ns()
        for _, end in pairs[-1:]:
            end.synchronize()
        last_ns = perf_counter_ns()
        torch.cuda.synchronize()
        end_ns = perf_counter_ns()
        return _HandedOver(
            pairs=pairs,
            in_time=in_time,
            host_ns=float(handed_over_ns - start_ns),
            taken_ns=float(end_ns - start_ns),
            left_ns=float(end_ns - last_ns),
        )

    def _compare_clocks(self, events_ns: float, host_ns: float) -> None:
        """InvalidTimingError where the events and the host never agree how long it all took.

        Now and then it may be the host's fault, which an operating system can keep from its work.
        """
        apart_ns = abs(host_ns - events_ns)
        agree = apart_ns <= max(_CLOCK_SLACK_NS, _CLOCK_SHARE * host_ns)
        self._contradicted = 0 if agree else self._contradicted + 1
        if self._contradicted == MOST_DISAGREEMENTS:
            raise InvalidTimingError(
                f"the events say that {events_ns / 1e6:.3g} ms went by and the host's clock "
                f"{host_ns / 1e6:.3g} ms: neither is believed"
            )

    def _look_for_more(self, done: Sequence[_HandedOver]) -> None:
        """InvalidTimingError where the device goes on, again and again, after the last event.

        Of each reading, since what a call leaves to another stream is done when the next begins;
        but for a tenth, which may be the host's fault.
        """
        judged = [each for each in done if each.pairs]
        left_ns = _largest_but_a_tenth([each.left_ns for each in judged])
        taken_ns = math.fsum(each.taken_ns for each in judged) / len(judged)
        nothing_left = left_ns <= _LEFT_SLACK_NS + _CLOCK_SHARE * taken_ns
        self._outlasted = 0 if nothing_left else self._outlasted + 1
        if self._outlasted == MOST_DISAGREEMENTS:
            raise InvalidTimingError(
                f"the device goes on for {left_ns / 1e3:.3g} µs when the last event has come: "
                "the events do not tell how long it takes"
            )


def _largest_but_a_tenth(figures: Sequence[float]) -> float:
    return sorted(figures)[len(figures) - 1 - len(figures) // 10]


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
