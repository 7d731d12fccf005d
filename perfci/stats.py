"""The arithmetic of comparisons: pooled runs, a t interval, a family of tests. No I/O, no records.

Readings are natural logarithms of latencies, so that a difference is a ratio. The replicate is the
pass (a fresh process), and passes of one run share what the run's hour did to them: a run is a
cluster.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr, stdtrit

_TRIMMED_SHARE = 0.2
_TRIMMED_VARIANCE = 1.15
"""The variance of a mean without a fifth at each end, of normal readings, in units of that of the
plain mean."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """A standard deviation (> 0), and the degrees of freedom with which it is known."""

    value: float
    degrees: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A mean with the variance of that mean and the degrees of freedom behind the variance."""

    mean: float
    variance: float
    degrees: float


def location(run: Sequence[float]) -> float:
    """The mean of a run's passes less the highest and the lowest fifth (none of fewer than five).

    One pass that was disturbed, on a machine with other work, must not carry the whole run away.
    """
    return float(np.mean(_kept(run)))


def pool(runs: Sequence[Sequence[float]], *, run_spread: Spread) -> Estimate:
    """Estimate the mean of several runs, each the readings of its passes.

    Every run weighs the same, however many passes it has, and counts by its ``location``. The
    variance is the larger of two: what the spread of the passes and ``run_spread``, that between
    runs, let one expect, and what the means of several runs show.
    """
    parts = [(run_spread.value**2 / len(runs), run_spread.degrees)]
    within = _within(runs)
    if within is not None:
        parts.append((within.variance, within.degrees))
    return _at_least_what_is_shown(runs, *_combine(parts))


def pool_pairs(pairs: Sequence[Sequence[float]], *, floor: Spread) -> Estimate:
    """Estimate the mean of differences, those of each pair of runs by pass.

    Both sides of a difference were read in one process and hour, which cancel, so that no spread
    between runs is added. The passes' own spread counts, but for no less than ``floor``: that few
    passes agree by chance makes nothing more certain.
    """
    least = _TRIMMED_VARIANCE * floor.value**2 * sum(1.0 / len(pair) for pair in pairs)
    expected = (least / len(pairs) ** 2, floor.degrees)
    within = _within(pairs)
    if within is not None and within.variance >= expected[0]:
        expected = (within.variance, within.degrees)
    return _at_least_what_is_shown(pairs, *expected)


def subtract(contender: Estimate, baseline: Estimate) -> Estimate:
    """Estimate contender minus baseline; the degrees of freedom are Welch's."""
    parts = [(each.variance, each.degrees) for each in (contender, baseline)]
    variance, degrees = _combine(parts)
    return Estimate(mean=contender.mean - baseline.mean, variance=variance, degrees=degrees)


def half_width(estimate: Estimate, alpha: float) -> float:
    """Half of the confidence interval at level 1 − ``alpha``."""
    return float(stdtrit(estimate.degrees, 1.0 - alpha / 2.0)) * math.sqrt(estimate.variance)


def p_value(estimate: Estimate) -> float:
    """Two-sided p-value of the hypothesis that the mean is 0."""
    statistic = abs(estimate.mean) / math.sqrt(estimate.variance)
    return 2.0 * float(stdtr(estimate.degrees, -statistic))


def adjust(p_values: Sequence[float]) -> list[float]:
    """Adjust a family of p-values after Benjamini and Hochberg, in the order given."""
    if not p_values:
        return []
    count = len(p_values)
    order = np.argsort(p_values)[::-1]
    scaled = np.asarray(p_values)[order] * count / np.arange(count, 0, -1)
    adjusted = np.empty(count)
    adjusted[order] = np.minimum(1.0, np.minimum.accumulate(scaled))
    return [float(each) for each in adjusted]


def _at_least_what_is_shown(
    runs: Sequence[Sequence[float]], variance: float, degrees: float
) -> Estimate:
    """The mean of several runs with a variance, or the one that their own means show."""
    means = [location(run) for run in runs]
    mean = float(np.mean(means))
    if len(runs) > 1:
        shown = float(np.var(means, ddof=1)) / len(runs)
        if shown >= variance:
            return Estimate(mean=mean, variance=shown, degrees=len(runs) - 1.0)
    return Estimate(mean=mean, variance=variance, degrees=degrees)


def _within(runs: Sequence[Sequence[float]]) -> Estimate | None:
    """What the spread of the passes within runs makes of the variance; None where all have one."""
    kept = [len(_kept(run)) for run in runs]
    degrees = sum(kept) - len(runs)
    if degrees <= 0:
        return None
    # Yuen: of a trimmed mean it is the winsorised squares that tell the variance.
    squares = sum(float(np.var(_winsorised(run))) * len(run) for run in runs)
    weight = sum(1.0 / count for count in kept) / len(runs) ** 2
    return Estimate(mean=0.0, variance=squares / degrees * weight, degrees=float(degrees))


def _kept(run: Sequence[float]) -> np.ndarray:
    """The readings in order, less a fifth at each end."""
    cut = int(_TRIMMED_SHARE * len(run))
    return np.sort(np.asarray(run, dtype=np.float64))[cut : len(run) - cut]


def _winsorised(run: Sequence[float]) -> np.ndarray:
    """The readings, those of the cut fifths moved to the ends of what is kept."""
    kept = _kept(run)
    return np.clip(np.asarray(run, dtype=np.float64), kept[0], kept[-1])


def _combine(parts: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Add variances; the degrees of freedom of the sum are Satterthwaite's."""
    variance = sum(part for part, _ in parts)
    return variance, variance**2 / sum(part**2 / degrees for part, degrees in parts)
