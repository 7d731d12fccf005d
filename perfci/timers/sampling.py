"""What all timers share: when a kernel is warm, when there are enough samples, and who is next.

One reader is read until its figures hold. Several, such as two sides of one cell, take turns in
short blocks, so that what the machine does to one it does to the other. The clock is bound when
this module is imported, before any kernel is loaded.
"""

import math
import random
from collections.abc import Callable, Sequence
from time import perf_counter_ns

import numpy as np

from perfci.collector import uncollected
from perfci.history.latency import interquartile_mean
from perfci.history.model import Contract, Stop
from perfci.outcome import Timing
from perfci.timers import Reader

SCARCE_SAMPLES = 5
WARM_UP_CALLS = 20
WARM_UP_NS = 25_000_000
_WINDOW = 20
_AGREEMENT = 0.05
_WARM_UP_SHARE = 0.5
_NORMAL_975 = 1.96
_STALLED = 0.9
_STALLED_SAMPLES = 200
_MOST_SAMPLES = 3200
_NS_PER_S = 1e9


def measure(
    reader: Reader,
    *,
    contract: Contract,
    budget_s: float,
    clock_ns: Callable[[], int] = perf_counter_ns,
) -> Timing:
    """Warm up one reader and read it within a budget. Raises InvalidTimingError."""
    (timing,) = measure_in_turns([reader], contract=contract, budget_s=budget_s, clock_ns=clock_ns)
    return timing


def measure_in_turns(
    readers: Sequence[Reader],
    *,
    contract: Contract,
    budget_s: float,
    clock_ns: Callable[[], int] = perf_counter_ns,
) -> list[Timing]:
    """Warm up readers, then read them in turns; each adds ``budget_s`` to what all may take.

    All are read the same number of times. Raises InvalidTimingError.
    """
    with uncollected():
        for index, reader in enumerate(readers):
            # The first has warmed the device for the others.
            least_ns = 0 if index else WARM_UP_NS
            warm_up(reader, budget_s=budget_s, least_ns=least_ns, clock_ns=clock_ns)
        collected = collect(readers, budget_s=budget_s, clock_ns=clock_ns)
    return [
        Timing(
            contract=contract,
            samples_ns=tuple(samples_ns),
            loops=reader.loops,
            stop=stop,
            note=reader.note,
        )
        for reader, (samples_ns, stop) in zip(readers, collected, strict=True)
    ]


def warm_up(
    reader: Reader,
    *,
    budget_s: float,
    least_ns: int = WARM_UP_NS,
    clock_ns: Callable[[], int] = perf_counter_ns,
) -> None:
    """Call and read until latency holds: two windows whose quartiles agree within 5 %.

    At least 20 calls and ``least_ns``; at most half the budget, since a kernel that never holds
    still is for the passes to show. A reader's call returns when its work is done: a queue of
    launches would outlast the budget by far.
    """
    start_ns = clock_ns()
    limit_ns = start_ns + budget_s * _WARM_UP_SHARE * _NS_PER_S
    calls = 0
    while calls < WARM_UP_CALLS or clock_ns() - start_ns < least_ns:
        reader.call()
        calls += 1
        if clock_ns() > limit_ns:
            return
    windows: list[list[float]] = [[]]
    while clock_ns() < limit_ns:
        windows[-1].extend(reader.read())
        if len(windows[-1]) < _WINDOW:
            continue
        if len(windows) > 1 and _agree(windows[-2], windows[-1]):
            return
        windows.append([])


def collect(
    readers: Sequence[Reader],
    *,
    budget_s: float,
    clock_ns: Callable[[], int] = perf_counter_ns,
) -> list[tuple[list[float], Stop]]:
    """Samples of each reader until each is known as closely as it should be, within the budget.

    Each is read for its least number of samples. A budget that is too short for so many yields
    what it yields, five at the least. Several take turns forth and back, each round beginning at
    an end that is chosen for it, so that neither a drift nor the place in a round favours one; a
    call comes before each block of those, since the other has left the caches as it needs them.
    """
    series = [Series(reader) for reader in readers]
    limit_ns = clock_ns() + len(readers) * budget_s * _NS_PER_S
    while True:
        for each in _round(series):
            if len(series) > 1:
                each.reader.call()
            each.samples.extend(each.reader.read())
        if all(each.is_enough() for each in series):
            break
        if clock_ns() > limit_ns and all(len(each.samples) >= SCARCE_SAMPLES for each in series):
            break
    return [(each.samples, each.stop or each.stop_now()) for each in series]


class Series:
    """The samples of one reader so far, and why they are enough once they are."""

    def __init__(self, reader: Reader) -> None:
        reader.begin()
        self.reader = reader
        self.samples: list[float] = []
        self.stop: Stop | None = None
        self._next_look, self._last_width = reader.minimum_samples, math.inf

    def is_enough(self) -> bool:
        """Look at the samples where there are so many more that it is worth while."""
        if self.stop is None and len(self.samples) >= self._next_look:
            width = relative_half_width(self.samples)
            if width <= self.reader.target:
                self.stop = Stop.CONVERGED
            elif self._is_stalled(width):
                self.stop = Stop.STABILISED
            self._next_look, self._last_width = 2 * len(self.samples), width
        return self.stop is not None

    def stop_now(self) -> Stop:
        """What to call the samples that there are when time is up."""
        enough = len(self.samples) >= self.reader.minimum_samples
        known = enough and relative_half_width(self.samples) <= self.reader.target
        return Stop.CONVERGED if known else Stop.OUT_OF_TIME

    def _is_stalled(self, width: float) -> bool:
        """Whether more samples do not help, or too many would be needed."""
        count = len(self.samples)
        needed = count * (width / self.reader.target) ** 2
        helps_little = width > self._last_width * _STALLED or needed > _MOST_SAMPLES
        return count >= _STALLED_SAMPLES and helps_little


def _round(series: Sequence[Series]) -> Sequence[Series]:
    """Who is read in one round: of two sides A, B, B, A or B, A, A, B."""
    if len(series) == 1:
        return series
    order = list(series)
    if random.random() < 0.5:  # noqa: S311 — no secret
        order.reverse()
    return [*order, *reversed(order)]


def relative_half_width(samples: Sequence[float]) -> float:
    """Half the width of the interquartile mean's 95 % interval, relative to that mean.

    By the spread of the samples whose outer quarters are drawn in to the quartiles: Tukey and
    McLaughlin's standard error of a trimmed mean, as if each sample were drawn by itself: what a
    batch has in common it does not know of. A median's interval would move in steps of the GPU's
    clock, 0.4 % of a short kernel.
    """
    ordered = np.sort(np.asarray(samples, dtype=np.float64))
    count = len(ordered)
    outer = count // 4
    drawn_in = np.clip(ordered, ordered[outer], ordered[count - 1 - outer])
    kept_share = 1 - 2 * outer / count
    spread = float(np.std(drawn_in)) * math.sqrt(count / max(1, count - 1))
    return _NORMAL_975 * spread / (kept_share * math.sqrt(count)) / interquartile_mean(samples)


def _agree(first: Sequence[float], second: Sequence[float]) -> bool:
    a, b = np.percentile(first, (25, 50, 75)), np.percentile(second, (25, 50, 75))
    return bool(np.all(np.abs(a - b) <= _AGREEMENT * b))
