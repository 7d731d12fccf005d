"""Two commits, cell by cell: which cells got slower, which cannot be said, which are not there.

Only like is compared with like: the key holds testbed, device model, kernel, case, variant and the
contract with its version, and the workload (reference and case) must be the same.

*Pooling.* Each run of a side is summarised by the mean of the logarithms of its passes'
interquartile means; runs weigh the same. Of a cell that ended differently in several runs, a
contender is given its worst end and a baseline its best, so that a second try hides no failure.

*Pairs.* Where both sides have runs that were measured together, these alone count: the logarithm
of each pass's ratio is one reading, in which what the process and the hour did has cancelled.

*Scale.* The passes of one run cannot see what differs from run to run, and few passes of a pair may
agree by chance. How far they lie apart without a reason is what a study of the testbed against
itself has measured (perfci.noise); for a cell without one it is assumed:
:data:`ASSUMED_RUN_SPREAD`. An interval is never narrower than that allows, and wider where several
runs, or the passes of a pair, disagree by more.

*Verdict.* Regression and improvement need both: significance among all the cells compared, after
Benjamini and Hochberg, and an interval wholly beyond the threshold. Thresholds are symmetric in
the logarithm: beyond +5 % is above a ratio of 1.05 or below 1/1.05.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from perfci import stats
from perfci.history.model import (
    Cell,
    Comparison,
    Environment,
    RunSummary,
    SeriesKey,
    Status,
    Verdict,
)

ASSUMED_RUN_SPREAD = {"cold": 0.01, "hot": 0.01}
"""Assumed relative standard deviation from run to run, by contract: as large as what was measured
from process to process behind a stream blocker (0.9 % of 10 µs)."""

ASSUMED_RUN_SPREAD_ELSEWHERE = 0.02
"""The same for every other timer, which sees the host: twice that."""

ASSUMED_MACHINE_SPREAD = {"host": 0.15}
"""The same, by contract, where runs come from several machines of a testbed: as far as three of
them read PyTorch's own ways apart (5 to 16 %, docs/h200.md)."""

_ASSUMED_DEGREES = 10.0
"""How many degrees of freedom an assumption is trusted with."""

_BEST_FIRST = (
    Status.PASSED,
    Status.SKIPPED,
    Status.MISSING,
    Status.BUILD_FAILED,
    Status.TIMEOUT,
    Status.INVALID_TIMING,
    Status.RUNTIME_ERROR,
    Status.NONDETERMINISTIC,
    Status.WRONG_VALUES,
    Status.WRONG_DTYPE,
    Status.WRONG_SHAPE,
)


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


@dataclass(frozen=True, slots=True)
class _Pair:
    """One cell on both sides; a side that has nothing of it is empty."""

    key: SeriesKey
    baseline: Sequence[Cell]
    contender: Sequence[Cell]


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
    before, after = baseline.cells_by_key(), contender.cells_by_key()
    comparisons: list[Comparison] = []
    timed: list[_Pair] = []
    for key in sorted(before.keys() | after.keys()):
        pair = _Pair(key, before.get(key, ()), after.get(key, ()))
        if _needs_no_mention(pair):
            continue
        obstacle = _find_obstacle(pair, before.keys(), after.keys())
        if obstacle is None:
            timed.append(pair)
        else:
            comparisons.append(_compare_untimed(pair, *obstacle))
    pairs = {**baseline.pairs(), **contender.pairs()}
    machines = {**baseline.machines(), **contender.machines()}
    known = {each.key: _floor(each, machines, floors or {}) for each in timed}
    comparisons += _compare_timed(timed, pairs, known, threshold, alpha)
    return sorted(comparisons, key=lambda each: each.key)


def _needs_no_mention(pair: _Pair) -> bool:
    if all(cell.status is Status.SKIPPED for cell in (*pair.baseline, *pair.contender)):
        return True
    checked_only = bool(pair.contender) and pair.contender[0].contract is None
    return checked_only and _worst(pair.contender).status is Status.PASSED


def _find_obstacle(
    pair: _Pair, baseline_keys: Iterable[SeriesKey], contender_keys: Iterable[SeriesKey]
) -> tuple[Verdict, str] | None:
    """Say why the latencies of a pair cannot be compared; None where they can."""
    if not pair.contender:
        return _look_elsewhere(pair.key, contender_keys, Verdict.MISSING, "no contender")
    worst = _worst(pair.contender)
    if worst.status is not Status.PASSED:
        return _blame(worst, pair.baseline)
    if not pair.baseline:
        return _look_elsewhere(pair.key, baseline_keys, Verdict.NEW, "no baseline")
    best = min(pair.baseline, key=_rank)
    if best.status is not Status.PASSED:
        return Verdict.NEW, f"no baseline: {_describe(best)}"
    if len({cell.workload_digest for cell in _passed(pair)}) > 1:
        return Verdict.INCOMPARABLE, "the reference or the case changed"
    return _find_unusable_passes(pair)


def _blame(worst: Cell, baseline: Sequence[Cell]) -> tuple[Verdict, str]:
    if not worst.status.is_incorrect:
        return Verdict.MISSING, _describe(worst)
    if baseline and min(baseline, key=_rank).status.is_incorrect:
        return Verdict.KNOWN_INCORRECT, f"{_describe(worst)} (so was the baseline)"
    return Verdict.INCORRECT, _describe(worst)


def _find_unusable_passes(pair: _Pair) -> tuple[Verdict, str] | None:
    for name, cells in (("baseline", pair.baseline), ("contender", pair.contender)):
        means_ns = [each for run in _read_runs(cells) for each in run]
        if not all(0.0 < each < math.inf for each in means_ns):
            return Verdict.MISSING, f"the {name} has a latency that is not a positive number"
        if len(means_ns) < 2:
            return Verdict.INCONCLUSIVE, f"needs at least 2 passes, the {name} has {len(means_ns)}"
    return None


def _look_elsewhere(
    key: SeriesKey, keys: Iterable[SeriesKey], verdict: Verdict, lack: str
) -> tuple[Verdict, str]:
    """Say what a side lacks and name the nearest thing that it has: only the key keeps them apart.

    Another version of the timer makes the sides incomparable; another testbed is no measurement.
    """
    cell = (key.kernel, key.case, key.variant)
    near = sorted(each for each in keys if (each.kernel, each.case, each.variant) == cell)
    timer = key.contract.partition("/")[0]
    for each in near:
        if each.contract == key.contract:
            return verdict, f"{lack}: measured on {each.testbed} ({each.device_model}) there"
    for each in near:
        if each.contract.partition("/")[0] == timer:
            other = f"timed by {each.contract} there, which is not compared with {key.contract}"
            return Verdict.INCOMPARABLE, f"{lack}: {other}"
    return verdict, lack


def _compare_untimed(pair: _Pair, verdict: Verdict, reason: str) -> Comparison:
    return Comparison(
        key=pair.key,
        verdict=verdict,
        reason=reason,
        baseline_ns=_typical_ns(pair.baseline),
        contender_ns=_typical_ns(pair.contender),
    )


def least_change(change: stats.Estimate, *, threshold: float, alpha: float, family: int) -> float:
    """The logarithm of the ratio from which on a cell with this variance is called slower.

    It is the only one to have changed of a ``family`` of so many, which is the strictest case.
    """
    beyond = math.log1p(threshold) + stats.half_width(change, alpha)
    return max(beyond, stats.half_width(change, alpha / family))


def _compare_timed(
    cells: Sequence[_Pair],
    pairs: Mapping[str, str],
    floors: Floors,
    threshold: float,
    alpha: float,
) -> list[Comparison]:
    together = [_measured_together(each, pairs) for each in cells]
    changes = [_change(pair, ratios, floors[pair.key]) for pair, ratios in together]
    adjusted = stats.adjust([stats.p_value(change) for change in changes])
    comparisons = []
    for (pair, ratios), change, p_value in zip(together, changes, adjusted, strict=True):
        half = stats.half_width(change, alpha)
        low, high = change.mean - half, change.mean + half
        beyond = math.log1p(threshold)
        verdict, reason = _decide(low, high, beyond, significant=p_value <= alpha)
        visible = least_change(change, threshold=threshold, alpha=alpha, family=len(cells))
        comparisons.append(
            Comparison(
                key=pair.key,
                verdict=verdict,
                reason=reason,
                baseline_ns=_typical_ns(pair.baseline),
                contender_ns=_typical_ns(pair.contender),
                ratio=_to_ratio(change.mean),
                interval=(_to_ratio(low), _to_ratio(high)),
                smallest_visible_change=_to_ratio(visible) - 1.0,
                paired_passes=sum(map(len, ratios)),
                is_studied=floors[pair.key].is_studied,
            )
        )
    return comparisons


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


def _floor(pair: _Pair, machines: Mapping[str, tuple[str, str | None]], floors: Floors) -> Floor:
    """The floor of a cell: as studied, else as assumed of one machine or of several."""
    used = {machines[cell.run_id] for cell in (*pair.baseline, *pair.contender)}
    return floors.get(pair.key) or assumed_floor(pair.key.contract, one_machine=len(used) == 1)


def log_ratios(baseline: Cell, contender: Cell) -> list[float]:
    """The logarithm of each pass's ratio, of two cells that were measured together.

    Empty where they do not have the same passes, as where one of them was not timed.
    """
    if baseline.latency is None or contender.latency is None:
        return []
    before_ns, after_ns = baseline.latency.pass_means_ns, contender.latency.pass_means_ns
    if len(before_ns) != len(after_ns):
        return []
    return [math.log(b / a) for a, b in zip(before_ns, after_ns, strict=True)]


def _measured_together(
    pair: _Pair, pairs: Mapping[str, str]
) -> tuple[_Pair, Sequence[Sequence[float]]]:
    """What of a cell was measured together, and its ratios; all of it where nothing was."""
    before = {pairs[cell.run_id]: cell for cell in pair.baseline if cell.run_id in pairs}
    matched = [
        (baseline, contender, ratios)
        for contender in pair.contender
        if (baseline := before.get(pairs.get(contender.run_id, "")))
        and (ratios := log_ratios(baseline, contender))
    ]
    if sum(len(ratios) for _, _, ratios in matched) < 2:
        return pair, []
    chosen = _Pair(pair.key, [each[0] for each in matched], [each[1] for each in matched])
    return chosen, [each[2] for each in matched]


def _change(pair: _Pair, ratios: Sequence[Sequence[float]], floor: Floor) -> stats.Estimate:
    if ratios:
        return stats.pool_pairs(ratios, floor=floor.paired)
    after, before = (
        [[math.log(mean_ns) for mean_ns in run] for run in _read_runs(cells)]
        for cells in (pair.contender, pair.baseline)
    )
    spread = floor.unpaired
    return stats.subtract(
        stats.pool(after, run_spread=spread), stats.pool(before, run_spread=spread)
    )


def _typical_ns(cells: Sequence[Cell]) -> float | None:
    """The geometric mean over runs of each run's location; None without any."""
    runs = _read_runs(cells)
    if not all(0.0 < mean_ns < math.inf for run in runs for mean_ns in run) or not runs:
        return None
    locations = [stats.location([math.log(each) for each in run]) for run in runs]
    return math.exp(math.fsum(locations) / len(locations))


def _to_ratio(logarithm: float) -> float:
    """Passes that disagree wildly allow any ratio: a huge one, since JSON has no infinity."""
    return math.exp(min(logarithm, 700.0))


def _read_runs(cells: Sequence[Cell]) -> list[tuple[float, ...]]:
    latencies = [cell.latency for cell in cells if cell.status is Status.PASSED]
    return [each.pass_means_ns for each in latencies if each is not None and each.pass_means_ns]


def _passed(pair: _Pair) -> list[Cell]:
    return [cell for cell in (*pair.baseline, *pair.contender) if cell.status is Status.PASSED]


def _worst(cells: Sequence[Cell]) -> Cell:
    return max(cells, key=_rank)


def _rank(cell: Cell) -> int:
    return _BEST_FIRST.index(cell.status)


def _describe(cell: Cell) -> str:
    words = cell.status.value.replace("_", " ")
    first_line = next(iter(cell.message.strip().splitlines()), "")
    return f"{words}: {first_line}" if first_line else words
