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

from perfci.history.latency import TRIMMED_SHARE, TRIMMED_VARIANCE, trim


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


def trimmed(readings: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """The means of readings along the last axis less the highest and the lowest fifth of each.

    With the variances of these means, as the readings show them (Yuen's), and the degrees of
    freedom behind each variance. There must be two readings at least.
    """
    means, squares, kept = _trim(readings)
    return means, squares / (kept - 1.0) / kept, kept - 1.0


def trimmed_spread(readings: np.ndarray) -> tuple[np.ndarray, float]:
    """How far readings along the last axis lie apart, by what that does to their trimmed mean.

    It is the standard deviation of normal readings whose mean, trimmed likewise, would have the
    variance that is shown; with the degrees of freedom of that.
    """
    count = readings.shape[-1]
    _, variances, degrees = trimmed(readings)
    cost = TRIMMED_VARIANCE if degrees < count - 1.0 else 1.0
    return np.sqrt(variances * count / cost), degrees


def at_least(
    floor: tuple[np.ndarray | float, np.ndarray | float],
    shown: tuple[np.ndarray | float, np.ndarray | float],
) -> tuple[np.ndarray, np.ndarray]:
    """The larger of two variances, each given with its degrees of freedom: a floor's, and shown.

    What is shown beyond the floor is known with degrees of freedom of its own; those of the sum are
    Satterthwaite's.
    """
    least, least_degrees = floor
    excess = np.maximum(shown[0] - least, 0.0)
    variance = np.asarray(least + excess)
    return variance, variance**2 / (least**2 / least_degrees + excess**2 / shown[1])


def location(run: Sequence[float]) -> float:
    """The mean of a run's passes less the highest and the lowest fifth (none of fewer than five).

    One pass that was disturbed, on a machine with other work, must not carry the whole run away.
    """
    return trim(run).mean


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
    passes agree by chance makes nothing more certain. What they show beyond it is known with their
    own degrees of freedom, the floor with its own.
    """
    weight = sum(1.0 / len(pair) for pair in pairs) / len(pairs) ** 2
    within = _within(pairs)
    variance, degrees = at_least(
        (TRIMMED_VARIANCE * floor.value**2 * weight, floor.degrees),
        (0.0, 1.0) if within is None else (within.variance, within.degrees),
    )
    return _at_least_what_is_shown(pairs, float(variance), float(degrees))


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
    return [float(each) for each in adjust_rows(np.asarray(p_values, dtype=np.float64))]


def adjust_rows(p_values: np.ndarray, *, family: int | None = None) -> np.ndarray:
    """The same along the last axis: each row is a family.

    ``family`` is its size where more belong to it than are there; those are taken to be 1.
    """
    count = p_values.shape[-1]
    order = np.flip(np.argsort(p_values, axis=-1), axis=-1)
    scaled = np.take_along_axis(p_values, order, axis=-1)
    scaled = scaled * max(count, family or 0) / np.arange(count, 0, -1)
    adjusted: np.ndarray = np.empty_like(scaled)
    running = np.minimum(1.0, np.minimum.accumulate(scaled, axis=-1))
    np.put_along_axis(adjusted, order, running, axis=-1)
    return adjusted


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
    trimmed_runs = [trim(run) for run in runs]
    degrees = sum(each.degrees for each in trimmed_runs)
    if degrees <= 0:
        return None
    squares = math.fsum(each.squares for each in trimmed_runs)
    weight = sum(1.0 / each.kept for each in trimmed_runs) / len(runs) ** 2
    return Estimate(mean=0.0, variance=squares / degrees * weight, degrees=float(degrees))


def _trim(readings: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """What perfci.history.latency.trim does, along the last axis: means, squares, count kept."""
    count = readings.shape[-1]
    cut = int(TRIMMED_SHARE * count)
    ordered = np.sort(readings, axis=-1)
    kept = ordered[..., cut : count - cut]
    winsorised = np.clip(ordered, kept[..., :1], kept[..., -1:])
    return kept.mean(axis=-1), np.var(winsorised, axis=-1) * count, count - 2 * cut


def _combine(parts: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Add variances; the degrees of freedom of the sum are Satterthwaite's."""
    variance = sum(part for part, _ in parts)
    return variance, variance**2 / sum(part**2 / degrees for part, degrees in parts)
