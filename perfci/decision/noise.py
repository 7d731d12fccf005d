"""How far a testbed lies from itself: from two runs of the same code, measured together. Pure.

Such two runs are a *study*: both sides are the same build, each pass holds both, and whatever lies
between them is noise. What it was is the floor of later decisions (perfci.decision.compare): the
spread from pass to pass of runs that are measured apart, and that of a pass's ratios of a pair.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perfci.decision import stats
from perfci.decision.compare import Floor, key_of, least_change
from perfci.decision.pairs import FIRST_LOOK, log_ratios
from perfci.history.latency import TRIMMED_VARIANCE
from perfci.history.model import Cell, RunSummary, SeriesKey, is_anchor

LADDER = (FIRST_LOOK, 12, 24, 48)
"""How many passes a decision may take."""

POWER = 0.95
FEWEST_PASSES = 3
ENOUGH_PASSES = 12
"""Of so many, some of which are trimmed away, a spread is known to about a quarter."""

MOST_STUDIES = 5
_LEAST_SPREAD = 1e-6
_DRAWS = 400

Study = tuple[RunSummary, RunSummary]
"""The two runs, in the order in which they were recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellNoise:
    """The noise of one cell: its floor, and the least slow-down that each rung would call.

    ``passes`` is how many had both sides.
    """

    key: SeriesKey
    latency_ns: float
    passes: int
    floor: Floor
    visible: tuple[float, ...]


def find_studies(runs: Iterable[RunSummary]) -> list[Study]:
    """The newest studies of each testbed, newest first, among runs that are newest first."""
    halves: dict[tuple[str, str], list[RunSummary]] = {}
    for run in runs:
        if run.is_study and run.pair:
            halves.setdefault((run.environment.testbed, run.pair), []).append(run)
    found: dict[str, list[Study]] = {}
    for (testbed, _), group in halves.items():
        if len(group) == 2:
            first, second = sorted(group, key=lambda run: (run.attempt, run.run_id))
            found.setdefault(testbed, []).append((first, second))
    return [study for studies in found.values() for study in studies[:MOST_STUDIES]]


def find_floors(studies: Iterable[Study], cells: Iterable[Cell]) -> dict[SeriesKey, Floor]:
    """The floor of each cell by the newest of the studies that has it; these are newest first."""
    by_run: dict[str, list[Cell]] = {}
    for cell in cells:
        by_run.setdefault(cell.run_id, []).append(cell)
    floors: dict[SeriesKey, Floor] = {}
    for study in studies:
        for key, (first, second) in _pair_up(study, by_run).items():
            floor = measure_floor(first, second)
            if floor is not None:
                floors.setdefault(key, floor)
    return floors


def describe_noise(
    study: Study, cells: Sequence[Cell], *, threshold: float, alpha: float = 0.05
) -> list[CellNoise]:
    """The noise of each cell of a study, and what a ladder of paired passes would see.

    The family is all cells of the study that were timed; the anchors, which are compared by
    themselves, are one of their own.
    """
    by_run: dict[str, list[Cell]] = {}
    for cell in cells:
        by_run.setdefault(cell.run_id, []).append(cell)
    measured = [
        (key, first, log_ratios(first, second), floor)
        for key, (first, second) in _pair_up(study, by_run).items()
        if (floor := measure_floor(first, second)) is not None
    ]
    anchors = sum(is_anchor(key.kernel) for key, *_ in measured)
    return [
        CellNoise(
            key=key,
            latency_ns=first.latency.typical_ns if first.latency else math.nan,
            passes=len(ratios),
            floor=floor,
            visible=tuple(
                visible_change(
                    ratios,
                    floor.paired,
                    passes=passes,
                    threshold=threshold,
                    alpha=alpha,
                    family=anchors if is_anchor(key.kernel) else len(measured) - anchors,
                )
                for passes in LADDER
            ),
        )
        for key, first, ratios, floor in measured
    ]


def measure_floor(first: Cell, second: Cell) -> Floor | None:
    """The spreads of one cell, as standard deviations of logarithms; None from too few passes.

    The paired one is that of passes which nothing disturbed (stats.trimmed_spread).
    """
    ratios = log_ratios(first, second)
    if len(ratios) < FEWEST_PASSES or first.latency is None or second.latency is None:
        return None
    variances = [
        float(np.var(np.log(each.pass_means_ns), ddof=1))
        for each in (first.latency, second.latency)
    ]
    paired, degrees = stats.trimmed_spread(np.array(ratios))
    return Floor(
        # Both sides were in the same processes: they are no more passes than one of them.
        unpaired=_spread(math.sqrt(sum(variances) / 2), len(ratios) - 1.0),
        # Ratios are judged by a mean that leaves out the passes that lie furthest apart.
        paired=_spread(float(paired), degrees),
    )


def visible_change(
    ratios: Sequence[float],
    floor: stats.Spread,
    *,
    passes: int,
    threshold: float,
    alpha: float,
    family: int,
) -> float:
    """The relative slow-down that so many paired passes call in 95 % of draws.

    By the rule of perfci.decision.compare, of passes drawn from those whose logarithms of ratios
    are given.
    """
    centred = np.array(ratios) - stats.location(ratios)
    drawn = np.random.default_rng(passes).choice(centred, (_DRAWS, passes))
    means, shown, own = stats.trimmed(drawn)
    least = TRIMMED_VARIANCE * floor.value**2 / passes
    variances, degrees = stats.at_least((least, floor.degrees), (shown, own))
    needed = [
        least_change(
            stats.Estimate(mean=mean, variance=variance, degrees=freedom),
            threshold=threshold,
            alpha=alpha,
            family=family,
        )
        - mean
        for mean, variance, freedom in zip(means, variances, degrees, strict=True)
    ]
    return math.expm1(float(np.quantile(needed, POWER)))


def _spread(value: float, degrees: float) -> stats.Spread:
    return stats.Spread(value=max(value, _LEAST_SPREAD), degrees=degrees)


def _pair_up(
    study: Study, by_run: Mapping[str, Sequence[Cell]]
) -> dict[SeriesKey, tuple[Cell, Cell]]:
    """The cells that both runs of a study have a latency of, in recorded order."""
    first, second = (
        {
            key_of(cell, run.environment): cell
            for cell in by_run.get(run.run_id, ())
            if cell.latency is not None
        }
        for run in study
    )
    return {key: (cell, second[key]) for key, cell in first.items() if key in second}
