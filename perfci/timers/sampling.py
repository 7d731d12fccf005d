"""What all timers share: when a kernel is warm, and when there are enough samples."""

import math
import time
from collections.abc import Callable, Sequence

import numpy as np

from perfci.history.model import Stop

Read = Callable[[], Sequence[float]]
"""Reads a few samples more, in nanoseconds."""

TARGET = 0.005
MINIMUM_SAMPLES = 50
SCARCE_SAMPLES = 5
WARM_UP_CALLS = 20
WARM_UP_S = 0.025
_WINDOW = 20
_AGREEMENT = 0.05
_WARM_UP_SHARE = 0.5
_NORMAL_975 = 1.96
_STALLED = 0.9


def warm_up(call: Callable[[], object], read: Read, *, budget_s: float) -> None:
    """Call and read until latency holds: two windows whose quartiles agree within 5 %.

    At least 20 calls and 25 ms; at most half the budget, since a kernel that never holds still
    is for the passes to show. ``call`` returns when its work is done: a queue of launches would
    outlast the budget by far.
    """
    start_s = time.perf_counter()
    limit_s = start_s + budget_s * _WARM_UP_SHARE
    calls = 0
    while calls < WARM_UP_CALLS or time.perf_counter() - start_s < WARM_UP_S:
        call()
        calls += 1
        if time.perf_counter() > limit_s:
            return
    windows: list[list[float]] = [[]]
    while time.perf_counter() < limit_s:
        windows[-1].extend(read())
        if len(windows[-1]) < _WINDOW:
            continue
        if len(windows) > 1 and _agree(windows[-2], windows[-1]):
            return
        windows.append([])


def collect(
    read: Read, *, budget_s: float, minimum: int = MINIMUM_SAMPLES
) -> tuple[list[float], Stop]:
    """Samples until the median is known to 0.5 %, at least ``minimum``, within the budget.

    A budget that is too short for so many yields what it yields, five at the least.
    """
    samples: list[float] = []
    limit_s = time.perf_counter() + budget_s
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
        if time.perf_counter() > limit_s and len(samples) >= SCARCE_SAMPLES:
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
