"""The one estimate of a latency: what passes read, what their run says, how well it is known.

A pass, one fresh process, reads the interquartile mean of its samples. A run's latency is the
geometric mean of what its passes read, without the highest and the lowest fifth: each pass weighs
the same, however many samples it had time for, and one that was disturbed does not carry the run
away. The interval is Yuen's t interval for such a mean. All that shows, compares or judges
a latency goes by these: every screen, perfci.decision and the floors of perfci.anchors. Pure.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

TRIMMED_SHARE = 0.2
TRIMMED_VARIANCE = 1.15
"""The variance of a mean without a fifth at each end, of normal readings, in units of that of the
plain mean."""

LEVEL = 0.95
FAR = 1.5
"""A pass is far from a latency where one of the two is more than so many times the other."""

_BISECTIONS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class PassSpan:
    """Between what the passes behind a latency lie: how many, how many far from it, their ends."""

    count: int
    far: int
    lowest_ns: float
    highest_ns: float

    @property
    def is_beyond_trimming(self) -> bool:
        """Whether more lie far off than a trimmed mean leaves out at either end."""
        return self.far > int(TRIMMED_SHARE * self.count)


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencySummary:
    """The latency of one measurement, in nanoseconds, by its passes that are not in quarantine.

    ``typical_ns`` is the estimate and ``interval_ns`` its 95 % interval, None from a single pass.
    ``pass_means_ns`` holds each pass's interquartile mean, in pass order; ``sample_count`` counts
    the samples behind them.
    """

    typical_ns: float
    interval_ns: tuple[float, float] | None
    pass_means_ns: tuple[float, ...]
    sample_count: int

    @property
    def half_width(self) -> float | None:
        """How far the interval reaches above the latency, in units of it."""
        return None if self.interval_ns is None else self.interval_ns[1] / self.typical_ns - 1.0

    @property
    def span(self) -> PassSpan:
        """Between what its passes lie; those that are far from it the figure does not speak for."""
        return span_of(self.typical_ns, self.pass_means_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trimmed:
    """The mean of readings less the highest and the lowest fifth, and what its variance comes from.

    ``kept`` readings are left, of ``count``. ``squares`` are the winsorised ones, those of all
    readings with the cut ones moved to the ends of what is kept: of a trimmed mean these tell the
    variance (Yuen).
    """

    mean: float
    squares: float
    kept: int
    count: int

    @property
    def degrees(self) -> int:
        """The degrees of freedom with which variance and spread are known."""
        return self.kept - 1

    @property
    def variance(self) -> float:
        """The variance of the mean; there must be two readings at least."""
        return self.squares / self.degrees / self.kept

    @property
    def spread(self) -> float:
        """The standard deviation of normal readings whose trimmed mean has this variance."""
        cost = TRIMMED_VARIANCE if self.kept < self.count else 1.0
        return math.sqrt(self.variance * self.count / cost)


def span_of(typical_ns: float, pass_means_ns: Sequence[float]) -> PassSpan:
    """Between what passes lie, and how many of them far from a latency. ValueError without any."""
    low_ns, high_ns = typical_ns / FAR, typical_ns * FAR
    return PassSpan(
        count=len(pass_means_ns),
        far=sum(not low_ns <= each <= high_ns for each in pass_means_ns),
        lowest_ns=min(pass_means_ns),
        highest_ns=max(pass_means_ns),
    )


def interquartile_mean(samples_ns: Sequence[float]) -> float:
    """The mean of the middle half of the samples, in nanoseconds.

    A quarter of the samples is trimmed at each end. Where a quarter is no whole number, the sample
    that it cuts counts by the fraction that is left, so one sample is its own mean.

    Raises ValueError where there are no samples.
    """
    count = len(samples_ns)
    if count == 0:
        raise ValueError("an interquartile mean needs at least one sample")
    edges = np.arange(count + 1).clip(count / 4, 3 * count / 4)
    return math.fsum(np.diff(edges) * np.sort(samples_ns)) / (count / 2)


def latency_of(pass_means_ns: Sequence[float], *, sample_count: int) -> LatencySummary:
    """Estimate a latency from what its passes read.

    Of readings that are no positive numbers, which no clock makes and only a file can hold, there
    are no logarithms: the mean is then of themselves, and there is no interval. Raises ValueError
    where there are no passes.
    """
    if not pass_means_ns:
        raise ValueError("a latency needs at least one pass")
    interval_ns = None
    if all(0.0 < each < math.inf for each in pass_means_ns):
        # In units of one of them, so that of equal ones the mean is that very number.
        unit_ns = min(pass_means_ns)
        logarithms = [math.log(each / unit_ns) for each in pass_means_ns]
        mean, half = trim(logarithms).mean, half_width(logarithms)
        typical_ns = unit_ns * math.exp(mean)
        if half < math.inf:
            interval_ns = typical_ns * math.exp(-half), typical_ns * _exp(half)
    else:
        typical_ns = trim(pass_means_ns).mean
    return LatencySummary(
        typical_ns=typical_ns,
        interval_ns=interval_ns,
        pass_means_ns=tuple(pass_means_ns),
        sample_count=sample_count,
    )


def trim(readings: Sequence[float]) -> Trimmed:
    """The trimmed mean of readings, of which none is cut where there are fewer than five.

    Raises ValueError where there are none.
    """
    if not readings:
        raise ValueError("a mean needs at least one reading")
    count = len(readings)
    cut = int(TRIMMED_SHARE * count)
    kept = sorted(readings)[cut : count - cut]
    mean = math.fsum(kept) / len(kept)
    winsorised = [kept[0]] * cut + kept + [kept[-1]] * cut
    centre = math.fsum(winsorised) / count
    squares = math.fsum((each - centre) ** 2 for each in winsorised)
    return Trimmed(mean=mean, squares=squares, kept=len(kept), count=count)


def half_width(logarithms: Sequence[float]) -> float:
    """Half of the 95 % interval of the mean of logarithms; infinite from less than two."""
    if len(logarithms) < 2:
        return math.inf
    trimmed = trim(logarithms)
    return student(trimmed.degrees) * math.sqrt(trimmed.variance)


@lru_cache
def student(degrees: int) -> float:
    """Student's t that half of a 95 % interval is: scipy's ``stdtrit(degrees, 0.975)``.

    By the finite sums for whole degrees of freedom, since a run into a file does without scipy.
    """
    low, high = 0.0, math.pi / 2.0
    for _ in range(_BISECTIONS):
        angle = (low + high) / 2.0
        low, high = (angle, high) if _share_within(angle, degrees) < LEVEL else (low, angle)
    return math.tan(low) * math.sqrt(degrees)


def _share_within(angle: float, degrees: int) -> float:
    """How much of Student's distribution lies within ±√degrees · tan(angle)."""
    first = degrees % 2
    term, total = (math.cos(angle), 0.0) if first else (1.0, 0.0)
    for step in range(2 + first, degrees + 1, 2):
        total += term
        term *= math.cos(angle) ** 2 * (step - 1) / step
    if first:
        return 2.0 / math.pi * (angle + math.sin(angle) * total)
    return math.sin(angle) * total


def _exp(logarithm: float) -> float:
    """The number with this logarithm; a huge one of what is beyond all sense."""
    return math.exp(min(logarithm, 300.0))
