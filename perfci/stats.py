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


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A mean with the variance of that mean and the degrees of freedom behind the variance."""

    mean: float
    variance: float
    degrees: float


def pool(runs: Sequence[Sequence[float]], *, run_spread: float) -> Estimate:
    """Estimate the mean of several runs, each the readings of its passes.

    Every run weighs the same, however many passes it has. The variance is the larger of two: what
    the spread of the passes and ``run_spread`` (the assumed standard deviation between runs, > 0)
    let one expect, and what the means of several runs show.
    """
    means = [float(np.mean(run)) for run in runs]
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
    degrees = sum(len(run) for run in runs) - len(runs)
    if degrees > 0:
        squares = sum(float(np.var(run)) * len(run) for run in runs)
        weight = sum(1.0 / len(run) for run in runs) / len(runs) ** 2
        parts.append((squares / degrees * weight, float(degrees)))
    variance, combined = _combine(parts)
    return Estimate(mean=0.0, variance=variance, degrees=combined)


def _combine(parts: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Add variances; the degrees of freedom of the sum are Satterthwaite's."""
    variance = sum(part for part, _ in parts)
    return variance, variance**2 / sum(part**2 / degrees for part, degrees in parts)
