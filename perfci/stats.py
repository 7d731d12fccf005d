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

ASSUMED_DEGREES = 10.0
"""How many degrees of freedom the assumed spread between runs is trusted with."""

_TRIMMED_SHARE = 0.2


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


def pool(runs: Sequence[Sequence[float]], *, run_spread: float) -> Estimate:
    """Estimate the mean of several runs, each the readings of its passes.

    Every run weighs the same, however many passes it has, and counts by its ``location``. The
    variance is the larger of two: what
    the spread of the passes and ``run_spread`` (the assumed standard deviation between runs, > 0)
    let one expect, and what the means of several runs show.
    """
    means = [location(run) for run in runs]
    expected = _expected(runs, run_spread)
    mean = float(np.mean(means))
    if len(runs) > 1:
        shown = float(np.var(means, ddof=1)) / len(runs)
        if shown >= expected.variance:
            return Estimate(mean=mean, variance=shown, degrees=len(runs) - 1.0)
    return Estimate(mean=mean, variance=expected.variance, degrees=expected.degrees)


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


def _expected(runs: Sequence[Sequence[float]], run_spread: float) -> Estimate:
    parts = [(run_spread**2 / len(runs), ASSUMED_DEGREES)]
    kept = [len(_kept(run)) for run in runs]
    degrees = sum(kept) - len(runs)
    if degrees > 0:
        # Yuen: of a trimmed mean it is the winsorised squares that tell the variance.
        squares = sum(float(np.var(_winsorised(run))) * len(run) for run in runs)
        weight = sum(1.0 / count for count in kept) / len(runs) ** 2
        parts.append((squares / degrees * weight, float(degrees)))
    variance, combined = _combine(parts)
    return Estimate(mean=0.0, variance=variance, degrees=combined)


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
