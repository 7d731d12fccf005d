"""A gate's decision: passes that held both sides, until each cell is decided or they end. Pure.

A gate measures both sides in the same passes, 6 at first, then 12, 24 and 48 (:data:`LOOKS`),
and looks at all of them after each rung::

    for look, passes in enumerate(LOOKS):
        ...  # measure until there are so many passes
        comparisons = judge(baseline, contender, look=look, thresholds=…, floors=…)
        if is_decided(comparisons):
            break

*Estimate.* A pass gives a cell one reading, the logarithm of the ratio of both sides' interquartile
means. The estimate is their mean without the highest and the lowest fifth, so that what disturbs
one pass does not decide.

*Scale.* No less than what a study of the testbed saw (perfci.decision.noise), what its passes show
beyond it with degrees of freedom of their own; and what a day has done to all cells of a timer,
raises the scale of each. Signs must agree as well, as far as a sign test alone asks for this look.

*Alarm*, which is a regression or an improvement, needs all three:

- significant among all cells (Benjamini–Hochberg) at what this look may spend of alpha;
- an interval wholly beyond the threshold, or beyond the spread of a pass where that is larger;
- confirmed: the passes after the first look at which the mean lay there, six at least, put it there
  by themselves. They know nothing of what raised the suspicion, so that one cell of hundreds that
  chance had picked is hardly ever picked again. Hence there is no alarm at the first look, and
  where one stands unconfirmed after the last rung, 24 passes more are measured.

*Unchanged* is a cell whose interval lies inside its threshold, which noise does not widen.
All else is *inconclusive*.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from perfci import units
from perfci.decision.compare import (
    Floor,
    Floors,
    Side,
    are_processes,
    assumed_floor,
    floor_of_processes,
    to_ratio,
)
from perfci.decision.pairs import Pair, measured_together, sort_out, without_change
from perfci.decision.rule import (
    FEWEST_FRESH,
    LOOKS,
    Family,
    Moments,
    Ruling,
    join,
    moments,
    no_moments,
    rule,
)
from perfci.history.model import Comparison, SeriesKey, Verdict

__all__ = ["LOOKS", "Thresholds", "is_decided", "judge", "undecided"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """The relative change that matters, by (kernel, case), else by kernel, else ``default``.

    Raises ValueError for one that is no positive number.
    """

    default: float = 0.05
    kernels: Mapping[str, float] = field(default_factory=dict)
    cases: Mapping[tuple[str, str], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for each in (self.default, *self.kernels.values(), *self.cases.values()):
            if not 0.0 < each < math.inf:
                raise ValueError(f"threshold {each} is out of range")

    def of(self, key: SeriesKey) -> float:
        """The relative change of this cell that matters."""
        of_kernel = self.kernels.get(key.kernel, self.default)
        return self.cases.get((key.kernel, key.case), of_kernel)


@dataclass(frozen=True, slots=True)
class _Timed:
    """A cell that can be compared, the logarithms of its passes' ratios in order, its floor."""

    pair: Pair
    ratios: np.ndarray
    floor: Floor


def judge(
    baseline: Side,
    contender: Side,
    *,
    look: int,
    thresholds: Thresholds,
    floors: Floors,
    alpha: float = 0.05,
    family: int | None = None,
) -> list[Comparison]:
    """Judge every cell that either side has, after a look (0 is the first), by order of the keys.

    All passes up to this look's are used, of runs that share a pair, by the order in which the runs
    were started. A cell may have fewer, as one that was decided before and measured no more.
    ``floors`` are those of the cells that were studied, ``alpha`` is the rate of false discoveries
    of the whole ladder and one minus the level of the intervals, ``family`` counts all cells that
    are compared where these are not all. Cells that were skipped on purpose, or are only checked
    and passed, are left out. Raises ValueError for a look or an alpha that there is not.
    """
    if not (0 <= look < len(LOOKS) and 0.0 < alpha < 1.0):
        raise ValueError(f"look {look} or alpha {alpha} is out of range")
    timed: list[_Timed] = []
    pairs, comparisons = sort_out(baseline.cells_by_key(), contender.cells_by_key())
    for pair in pairs:
        together, ratios = _in_order(pair, baseline, contender)
        if ratios.size < 2:
            comparisons.append(_without_passes(pair))
        else:
            floor = floors.get(pair.key) or assumed_floor(pair.key.contract)
            if are_processes(pair.baseline, pair.contender):
                floor = floor_of_processes(floor)
            timed.append(_Timed(together, ratios[: LOOKS[look]], floor))
    if timed:
        comparisons += _judge_timed(timed, look, thresholds, alpha, family or 0)
    return sorted(comparisons, key=lambda each: each.key)


def undecided(comparisons: Sequence[Comparison]) -> list[SeriesKey]:
    """The cells that further passes may decide."""
    return [each.key for each in comparisons if each.waits]


def is_decided(comparisons: Sequence[Comparison]) -> bool:
    """Whether no cell is left that further passes may decide."""
    return not undecided(comparisons)


def _in_order(pair: Pair, baseline: Side, contender: Side) -> tuple[Pair, np.ndarray]:
    together, ratios = measured_together(pair, {**baseline.pairs(), **contender.pairs()})
    started = {run.run_id: run.started_at for run in contender.runs}
    runs = zip(together.contender, ratios, strict=False)
    ordered = sorted(runs, key=lambda each: started[each[0].run_id])
    return together, np.array([ratio for _, run in ordered for ratio in run])


def _without_passes(pair: Pair) -> Comparison:
    reason = "the sides were not measured in the same passes"
    return without_change(pair, Verdict.INCONCLUSIVE, reason)


def _judge_timed(
    cells: Sequence[_Timed], look: int, thresholds: Thresholds, alpha: float, family: int
) -> list[Comparison]:
    known = _family(cells, thresholds, family)
    ruling = rule(
        [
            np.array([moments(each.ratios[:passes]).mean for each in cells])
            for passes in LOOKS[:look]
        ],
        [join([_after(each.ratios, passes) for each in cells]) for passes in LOOKS[:look]],
        join([moments(each.ratios[np.newaxis]) for each in cells]),
        known,
        alpha,
    )
    return [_comparison(each, index, ruling, known) for index, each in enumerate(cells)]


def _family(cells: Sequence[_Timed], thresholds: Thresholds, size: int) -> Family:
    timers = sorted({each.pair.key.contract for each in cells})
    return Family(
        spread=np.array([each.floor.paired.value for each in cells]),
        degrees=np.array([each.floor.paired.degrees for each in cells]),
        matters=np.log1p([thresholds.of(each.pair.key) for each in cells]),
        kind=np.array([timers.index(each.pair.key.contract) for each in cells]),
        size=max(size, len(cells)),
    )


def _after(ratios: np.ndarray, passes: int) -> Moments:
    fresh = ratios[np.newaxis, passes:]
    return moments(fresh) if fresh.size >= FEWEST_FRESH else no_moments()


def _comparison(cell: _Timed, index: int, ruling: Ruling, family: Family) -> Comparison:
    mean, half = float(ruling.mean[index]), float(ruling.half[index])
    is_suspected = _is_suspected(index, ruling, family)
    verdict, reason = _verdict(index, ruling, family, passes=cell.ratios.size)
    return replace(
        without_change(cell.pair, verdict, reason),
        ratio=to_ratio(mean),
        interval=(to_ratio(mean - half), to_ratio(mean + half)),
        smallest_visible_change=(
            None if is_suspected else to_ratio(float(ruling.visible[index])) - 1.0
        ),
        paired_passes=cell.ratios.size,
        is_studied=cell.floor.is_studied,
        waits=bool(ruling.waits[index]),
    )


def _is_suspected(index: int, ruling: Ruling, family: Family) -> bool:
    """Whether a cell has all that an alarm needs but the confirmation."""
    clear = abs(ruling.mean[index]) - ruling.half[index] > family.beyond[index]
    called = ruling.slower[index] or ruling.faster[index]
    return bool(clear and ruling.significant[index] and not called)


def _verdict(index: int, ruling: Ruling, family: Family, *, passes: int) -> tuple[Verdict, str]:
    decided = {
        Verdict.REGRESSION: ruling.slower,
        Verdict.IMPROVEMENT: ruling.faster,
        Verdict.UNCHANGED: ruling.unchanged,
    }
    for verdict, cells in decided.items():
        if cells[index]:
            return verdict, ""
    return Verdict.INCONCLUSIVE, _reason(index, ruling, family, passes=passes)


def _reason(index: int, ruling: Ruling, family: Family, *, passes: int) -> str:
    nearest = abs(ruling.mean[index]) - ruling.half[index]
    if nearest <= family.matters[index]:
        return "the interval reaches across the threshold"
    if nearest <= family.beyond[index]:
        return "the interval reaches into the noise of this cell"
    if not ruling.significant[index]:
        return "not significant among so many cells"
    more = next((look - passes for look in LOOKS if look > passes), 0)
    if more == 0:
        return "suspected, and further passes did not confirm it"
    # Of a look that the budget did not reach there are fewer passes than it asks for.
    awaited = units.count_things(more, "more pass decides", "more passes decide")
    return f"suspected, not confirmed: {awaited}"
