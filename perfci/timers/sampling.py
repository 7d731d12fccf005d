"""What all timers share: when a kernel is warm, and when there are enough samples.

The clock is bound when this module is imported, before any kernel is loaded.
"""

import math
from collections.abc import Callable, Sequence
from time import perf_counter_ns

import numpy as np

from perfci.history.model import Stop

Read = Callable[[], Sequence[float]]
"""Reads a few samples more, in nanoseconds."""

TARGET = 0.005
MINIMUM_SAMPLES = 50
SCARCE_SAMPLES = 5
WARM_UP_CALLS = 20
WARM_UP_NS = 25_000_000
_WINDOW = 20
_AGREEMENT = 0.05
_WARM_UP_SHARE = 0.5
_NORMAL_975 = 1.96
_STALLED = 0.9
_NS_PER_S = 1e9


def warm_up(
    call: Callable[[], object],
    read: Read,
    *,
    budget_s: float,
    clock_ns: Callable[[], int] = perf_counter_ns,
) -> None:
    """Call and read until latency holds: two windows whose quartiles agree within 5 %.

    At least 20 calls and 25 ms; at most half the budget, since a kernel that never holds still
    is for the passes to show. ``call`` returns when its work is done: a queue of launches would
    outlast the budget by far.
    """
    start_ns = clock_ns()
    limit_ns = start_ns + budget_s * _WARM_UP_SHARE * _NS_PER_S
    calls = 0
    while calls < WARM_UP_CALLS or clock_ns() - start_ns < WARM_UP_NS:
        call()
        calls += 1
        if clock_ns() > limit_ns:
            return
    windows: list[list[float]] = [[]]
    while clock_ns() < limit_ns:
        windows[-1].extend(read())
        if len(windows[-1]) < _WINDOW:
            continue
        if len(windows) > 1 and _agree(windows[-2], windows[-1]):
            return
        windows.append([])


def collect(
    read: Read,
    *,
    budget_s: float,
    minimum: int = MINIMUM_SAMPLES,
    clock_ns: Callable[[], int] = perf_counter_ns,
) -> tuple[list[float], Stop]:
    """Samples until the median is known to 0.5 %, at least ``minimum``, within the budget.

    A budget that is too short for so many yields what it yields, five at the least.
    """
    samples: list[float] = []
    limit_ns = clock_ns() + budget_s * _NS_PER_S
    next_look, last_width = minimum, math.inf
    while True:
        samples.extend(read())
        if len(samples) >= next_look:
            width = median_half_width(samples)
            if width <= TARGET:
                return samples, Stop.CONVERGED
            if width > last_width * _STALLED and len(samples) >= 4 * minimum:
                return samples, Stop.STABILISED
            next_look, last_width = 2 * len(samples), width
        if clock_ns() > limit_ns and len(samples) >= SCARCE_SAMPLES:
            enough = len(samples) >= minimum and median_half_width(samples) <= TARGET
            return samples, Stop.CONVERGED if enough else Stop.OUT_OF_TIME


def median_half_width(samples: Sequence[float]) -> float:
    """Half the width of the median's 95 % interval, relative to the median, by ranks."""
    ordered = np.sort(np.asarray(samples, dtype=np.float64))
    count = len(ordered)
    reach = _NORMAL_975 * math.sqrt(count) / 2
    low = max(0, math.floor(count / 2 - reach))
    high = min(count - 1, math.ceil(count / 2 + reach))
    return float((ordered[high] - ordered[low]) / 2 / np.median(ordered))


def _agree(first: Sequence[float], second: Sequence[float]) -> bool:
    a, b = np.percentile(first, (25, 50, 75)), np.percentile(second, (25, 50, 75))
    return bool(np.all(np.abs(a - b) <= _AGREEMENT * b))
