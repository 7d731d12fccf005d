"""Two commits, cell by cell: which cells got slower, which cannot be said, which are not there.

Only like is compared with like: the key holds testbed, device model, kernel, case, variant and the
contract with its version, and the workload (reference and case) must be the same.

*Pooling.* Each run of a side is summarised by the mean of the logarithms of its passes'
interquartile means; runs weigh the same. Of a cell that ended differently in several runs, a
contender is given its worst end and a baseline its best, so that a second try hides no failure;
what a later run shows to be the machine's does not count (perfci.decision.standing).

*Pairs.* Where both sides have runs that were measured together, these alone count: the logarithm
of each pass's ratio is one reading, in which what the process and the hour did has cancelled. So
few passes that a gate would decide nothing take no other run's place.

*Scale.* The passes of one run cannot see what differs from run to run, and few passes of a pair may
agree by chance. How far they lie apart without a reason is what a study of the testbed against
itself has measured (perfci.decision.noise); for a cell without one it is assumed:
:data:`ASSUMED_RUN_SPREAD`. Where each side of a pass was a process, in an environment of its own,
both spread as passes do, and their ratio by the root of two more. An interval is never narrower
than that allows, and wider where several runs, or the passes of a pair, disagree by more.

*Verdict.* Regression and improvement need both: significance among all the cells compared, after
Benjamini and Hochberg, and an interval wholly beyond the threshold. Thresholds are symmetric in
the logarithm: beyond +5 % is above a ratio of 1.05 or below 1/1.05. Of a cell whose code is the
same, in the same environment, only readings that were taken together tell anything.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from perfci import units
from perfci.decision import stats
from perfci.decision.code import is_same_code, is_same_software
from perfci.decision.pairs import (
    FIRST_LOOK,
    Pair,
    count_right,
    measured_together,
    read_runs,
    sort_out,
    without_change,
)
from perfci.decision.standing import describe_superseded, part_superseded
from perfci.history.model import (
    Cell,
    Comparison,
    Environment,
    RunSummary,
    SeriesKey,
    Verdict,
    is_anchor,
)
from perfci.history.order import is_whole

ASSUMED_RUN_SPREAD = {"cold": 0.01, "hot": 0.01}
"""Assumed relative standard deviation from run to run, by contract: as large as what was measured
from process to process behind a stream blocker (0.9 % of 10 µs)."""

ASSUMED_RUN_SPREAD_ELSEWHERE = 0.02
"""The same for every other timer, which sees the host: twice that."""

ASSUMED_MACHINE_SPREAD = {"host": 0.15}
"""The same, by contract, where runs come from several machines of a testbed: as far as three of
them read PyTorch's own ways apart (5 to 16 %, docs/h200.md)."""

SAME_CODE_APART = "the same code, measured apart: it may be the machine; perfci gate takes turns"
"""Why a cell that moved has no verdict of its code."""

_ASSUMED_DEGREES = 10.0
"""How many degrees of freedom an assumption is trusted with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """How far readings of the same code lie apart: pass from pass, and one pass's two sides."""

    unpaired: stats.Spread
    paired: stats.Spread
    is_studied: bool = True


Floors = Mapping[SeriesKey, Floor]
"""The floor of each cell that was studied."""


@dataclass(frozen=True, slots=True)
class Side:
    """All runs of one commit that are to be compared, with their cells.

    Raises ValueError where the runs are of several commits (a dirty tree is another commit than
    the one it started from) or a cell belongs to none of the runs.
    """

    runs: Sequence[RunSummary]
    cells: Sequence[Cell]

    def __post_init__(self) -> None:
        commits = {(run.commit.sha, run.commit.dirty) for run in self.runs}
        if len(commits) > 1:
            raise ValueError(f"a side is one commit, not {len(commits)}")
        strangers = {cell.run_id for cell in self.cells} - {run.run_id for run in self.runs}
        if strangers:
            raise ValueError(f"cells of runs that are not of this side: {sorted(strangers)}")

    def cells_by_key(self) -> dict[SeriesKey, list[Cell]]:
        """The cells of each series, one a run."""
        environments = {run.run_id: run.environment for run in self.runs}
        cells: dict[SeriesKey, list[Cell]] = {}
        for cell in self.cells:
            cells.setdefault(key_of(cell, environments[cell.run_id]), []).append(cell)
        return cells

    def machines(self) -> dict[str, tuple[str, str | None]]:
        """What each run was measured on: the host's name and the GPU."""
        return {
            run.run_id: (run.environment.host, run.environment.device.uuid) for run in self.runs
        }

    def pairs(self) -> dict[str, str]:
        """The pair of each run that has one."""
        return {run.run_id: run.pair for run in self.runs if run.pair}


def key_of(cell: Cell, environment: Environment) -> SeriesKey:
    """The series that a cell of a run in an environment belongs to."""
    return SeriesKey(
        testbed=environment.testbed,
        device_model=environment.device.model,
        kernel=cell.kernel,
        case=cell.case,
        variant=cell.variant,
        contract="" if cell.contract is None else cell.contract.label,
    )


def compare(
    baseline: Side,
    contender: Side,
    *,
    threshold: float = 0.05,
    alpha: float = 0.05,
    floors: Floors | None = None,
) -> list[Comparison]:
    """Compare every cell that either side has, in the order of the keys.

    ``floors`` are those of the cells that were studied. ``threshold`` is the relative change that
    matters, ``alpha`` the rate of false discoveries and one minus the level of the intervals.
    Cells that were skipped on purpose, and cells that are only checked and passed, are left out.
    Raises ValueError for a threshold or alpha that means nothing.
    """
    if not (0.0 < threshold < math.inf and 0.0 < alpha < 1.0):
        raise ValueError(f"threshold {threshold} or alpha {alpha} is out of range")
    standing, superseded = part_superseded(contender.cells_by_key(), contender.runs)
    timed, untimed = sort_out(baseline.cells_by_key(), standing)
    comparisons = [_say_left_out(each, baseline, contender) for each in untimed]
    pairs = {**baseline.pairs(), **contender.pairs()}
    machines = {**baseline.machines(), **contender.machines()}
    known = {each.key: _floor(each, machines, floors or {}) for each in timed}
    moved = _compare_timed(timed, pairs, known, threshold, alpha)
    environments = {run.run_id: run.environment for run in (*baseline.runs, *contender.runs)}
    comparisons += [
        _unless_same_code(each, pair, environments) for each, pair in zip(moved, timed, strict=True)
    ]
    told = [_say_superseded(each, superseded.get(each.key, ())) for each in comparisons]
    return sorted(told, key=lambda each: each.key)


def count_checked(baseline: Side, contender: Side) -> int:
    """How many cells are only checked, and right: of these nothing is compared."""
    standing, _ = part_superseded(contender.cells_by_key(), contender.runs)
    return count_right(baseline.cells_by_key(), standing)


def find_compared(baseline: Side, contender: Side) -> tuple[list[Cell], list[Cell]]:
    """The cells of each side of which the latencies are compared."""
    standing, _ = part_superseded(contender.cells_by_key(), contender.runs)
    timed, _ = sort_out(baseline.cells_by_key(), standing)
    pairs = {**baseline.pairs(), **contender.pairs()}
    chosen = [_together(each, pairs)[0] for each in timed]
    return (
        [cell for pair in chosen for cell in pair.baseline],
        [cell for pair in chosen for cell in pair.contender],
    )


def least_change(change: stats.Estimate, *, threshold: float, alpha: float, family: int) -> float:
    """The logarithm of the ratio from which on a cell with this variance is called slower.

    It is the only one to have changed of a ``family`` of so many, which is the strictest case.
    """
    beyond = math.log1p(threshold) + stats.half_width(change, alpha)
    return max(beyond, stats.half_width(change, alpha / family))


def _say_left_out(comparison: Comparison, baseline: Side, contender: Side) -> Comparison:
    """Of a cell that a side lacks, of which there is but what a gate or a bisection has measured.

    These leave out what runs the same code, and what was not asked for: nothing is missing.
    """
    lacking = {Verdict.NEW: ("baseline", baseline), Verdict.MISSING: ("contender", contender)}
    if comparison.verdict not in lacking:
        return comparison
    name, side = lacking[comparison.verdict]
    if not side.runs or any(map(is_whole, side.runs)) or comparison.key in side.cells_by_key():
        return comparison
    reason = f"of the {name} there is no run but a gate's or a bisection's, without this cell"
    return replace(comparison, verdict=Verdict.INCONCLUSIVE, reason=reason)


def _say_superseded(comparison: Comparison, rows: Sequence[Cell]) -> Comparison:
    """Say of a contender's cell what of it no longer counts."""
    if not rows:
        return comparison
    reasons = (comparison.reason, describe_superseded(rows))
    return replace(comparison, reason="; ".join(each for each in reasons if each))


def _compare_timed(
    cells: Sequence[Pair],
    pairs: Mapping[str, str],
    floors: Floors,
    threshold: float,
    alpha: float,
) -> list[Comparison]:
    together = [_together(each, pairs) for each in cells]
    changes = [_change(pair, ratios, floors[pair.key]) for pair, ratios in together]
    adjusted = stats.adjust([stats.p_value(change) for change in changes])
    comparisons = []
    for (pair, ratios), change, p_value in zip(together, changes, adjusted, strict=True):
        half = stats.half_width(change, alpha)
        low, high = change.mean - half, change.mean + half
        beyond = math.log1p(threshold)
        verdict, reason = _decide(low, high, beyond, significant=p_value <= alpha)
        visible = least_change(change, threshold=threshold, alpha=alpha, family=len(cells))
        comparison = replace(
            without_change(pair, verdict, reason),
            ratio=to_ratio(change.mean),
            interval=(to_ratio(low), to_ratio(high)),
            smallest_visible_change=to_ratio(visible) - 1.0,
            paired_passes=sum(map(len, ratios)),
            is_studied=floors[pair.key].is_studied,
        )
        comparisons.append(_without_haste(comparison))
    return comparisons


def _without_haste(comparison: Comparison) -> Comparison:
    """No verdict, and no figure of a change, from fewer paired passes than a gate looks at."""
    passes = comparison.paired_passes
    if not 0 < passes < FIRST_LOOK:
        return comparison
    counted = units.count_things(passes, "paired pass", "paired passes")
    return replace(
        comparison,
        verdict=Verdict.INCONCLUSIVE,
        reason=f"{counted}: fewer than {FIRST_LOOK} decide nothing",
        ratio=None,
        interval=None,
        smallest_visible_change=None,
    )


def _unless_same_code(
    comparison: Comparison, pair: Pair, environments: Mapping[str, Environment]
) -> Comparison:
    """No verdict of the code where it is the same, and the sides were not measured together.

    What moved is then what the machine did meanwhile, which is what anchors are there to show.
    """
    is_moved = comparison.verdict in (Verdict.REGRESSION, Verdict.IMPROVEMENT)
    if not is_moved or comparison.paired_passes or is_anchor(comparison.key.kernel):
        return comparison
    first, *others = (*pair.baseline, *pair.contender)
    used = [environments[each.run_id] for each in (first, *others)]
    if not (is_same_software(used) and all(is_same_code(first, each) for each in others)):
        return comparison
    return replace(
        comparison,
        verdict=Verdict.INCONCLUSIVE,
        reason=SAME_CODE_APART,
        smallest_visible_change=None,
    )


def _together(pair: Pair, pairs: Mapping[str, str]) -> tuple[Pair, Sequence[Sequence[float]]]:
    """What of a cell was measured together; all of it where that is little and both have more."""
    chosen, ratios = measured_together(pair, pairs)
    both_have_more = len(chosen.baseline) < len(pair.baseline) and len(chosen.contender) < len(
        pair.contender
    )
    if both_have_more and sum(map(len, ratios)) < FIRST_LOOK:
        return pair, []
    return chosen, ratios


def _decide(low: float, high: float, beyond: float, *, significant: bool) -> tuple[Verdict, str]:
    if -beyond <= low and high <= beyond:
        return Verdict.UNCHANGED, ""
    if -beyond <= high and low <= beyond:
        return Verdict.INCONCLUSIVE, "the interval reaches across the threshold"
    if not significant:
        return Verdict.INCONCLUSIVE, "not significant among so many cells"
    return (Verdict.REGRESSION if low > beyond else Verdict.IMPROVEMENT), ""


def assumed_floor(contract: str, *, one_machine: bool = True) -> Floor:
    """The floor of a cell that was not studied, by its contract's label."""
    timer = contract.partition("/")[0]
    value = ASSUMED_RUN_SPREAD.get(timer, ASSUMED_RUN_SPREAD_ELSEWHERE)
    apart = value if one_machine else ASSUMED_MACHINE_SPREAD.get(timer, value)
    return Floor(
        unpaired=stats.Spread(value=apart, degrees=_ASSUMED_DEGREES),
        paired=stats.Spread(value=value, degrees=_ASSUMED_DEGREES),
        is_studied=False,
    )


def are_processes(baseline: Sequence[Cell], contender: Sequence[Cell]) -> bool:
    """Whether the sides of a cell, where they were measured together, were processes."""
    one, other = ({each.own_environment for each in side} for side in (baseline, contender))
    return one != other


def floor_of_processes(floor: Floor) -> Floor:
    """The floor where each side of a pass is a process by itself."""
    value = math.sqrt(2.0) * floor.unpaired.value
    return replace(floor, paired=replace(floor.unpaired, value=value))


def _floor(pair: Pair, machines: Mapping[str, tuple[str, str | None]], floors: Floors) -> Floor:
    """The floor of a cell: as studied, else as assumed of one machine or of several."""
    used = {machines[cell.run_id] for cell in (*pair.baseline, *pair.contender)}
    floor = floors.get(pair.key) or assumed_floor(pair.key.contract, one_machine=len(used) == 1)
    return floor_of_processes(floor) if are_processes(pair.baseline, pair.contender) else floor


def _change(pair: Pair, ratios: Sequence[Sequence[float]], floor: Floor) -> stats.Estimate:
    if ratios:
        return stats.pool_pairs(ratios, floor=floor.paired)
    after, before = (
        [[math.log(mean_ns) for mean_ns in run] for run in read_runs(cells)]
        for cells in (pair.contender, pair.baseline)
    )
    spread = floor.unpaired
    return stats.subtract(
        stats.pool(after, run_spread=spread), stats.pool(before, run_spread=spread)
    )


def to_ratio(logarithm: float) -> float:
    """The ratio with this logarithm.

    Passes that disagree wildly allow any ratio: a huge one, since JSON has no infinity.
    """
    return math.exp(min(logarithm, 700.0))
