"""One cell on both sides: what keeps its latencies from being compared, and what was paired. Pure.

Of a cell that ended differently in several runs, a contender is given its worst end and a baseline
its best, so that a second try hides no failure.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from perfci.history.latency import LatencySummary, PassSpan, span_of
from perfci.history.model import Cell, Comparison, SeriesKey, Status, Verdict
from perfci.quarantine import is_shared

FIRST_LOOK = 6
"""How many paired passes a gate looks at first; of fewer it says nothing."""

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


@dataclass(frozen=True, slots=True)
class Pair:
    """One cell on both sides; a side that has nothing of it is empty."""

    key: SeriesKey
    baseline: Sequence[Cell]
    contender: Sequence[Cell]


def sort_out(
    before: Mapping[SeriesKey, Sequence[Cell]], after: Mapping[SeriesKey, Sequence[Cell]]
) -> tuple[list[Pair], list[Comparison]]:
    """The cells whose latencies can be compared, and what is to be said of the others.

    Both are in the order of the keys. Cells that were skipped on purpose, and cells that are only
    checked and passed, are in neither.
    """
    timed: list[Pair] = []
    untimed: list[Comparison] = []
    for pair in _match(before, after):
        if _is_skipped(pair) or _is_right(pair):
            continue
        obstacle = _find_obstacle(pair, before.keys(), after.keys())
        if obstacle is None:
            timed.append(pair)
        else:
            untimed.append(without_change(pair, *obstacle))
    return timed, untimed


def count_right(
    before: Mapping[SeriesKey, Sequence[Cell]], after: Mapping[SeriesKey, Sequence[Cell]]
) -> int:
    """How many cells are only checked and passed: all that ``sort_out`` leaves out but skipped."""
    return sum(_is_right(pair) and not _is_skipped(pair) for pair in _match(before, after))


def _match(
    before: Mapping[SeriesKey, Sequence[Cell]], after: Mapping[SeriesKey, Sequence[Cell]]
) -> Iterator[Pair]:
    for key in sorted(before.keys() | after.keys()):
        yield Pair(key, before.get(key, ()), after.get(key, ()))


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


def measured_together(
    pair: Pair, pairs: Mapping[str, str]
) -> tuple[Pair, Sequence[Sequence[float]]]:
    """What of a cell was measured together, and its ratios; all of it where nothing was.

    ``pairs`` says of a run which pair it is of.
    """
    before = {pairs[cell.run_id]: cell for cell in pair.baseline if cell.run_id in pairs}
    matched = [
        (baseline, contender, ratios)
        for contender in pair.contender
        if (baseline := before.get(pairs.get(contender.run_id, "")))
        and (ratios := log_ratios(baseline, contender))
    ]
    if sum(len(ratios) for _, _, ratios in matched) < 2:
        return pair, []
    chosen = Pair(pair.key, [each[0] for each in matched], [each[1] for each in matched])
    return chosen, [each[2] for each in matched]


def typical_ns(cells: Sequence[Cell]) -> float | None:
    """The geometric mean over runs of each run's latency; None without any."""
    latencies = _latencies(cells)
    means_ns = [mean_ns for each in latencies for mean_ns in each.pass_means_ns]
    if not all(0.0 < each < math.inf for each in means_ns) or not latencies:
        return None
    logarithms = [math.log(each.typical_ns) for each in latencies]
    return math.exp(math.fsum(logarithms) / len(logarithms))


def without_change(pair: Pair, verdict: Verdict, reason: str) -> Comparison:
    """A comparison of what each side has by itself: its latency, and its passes."""
    return Comparison(
        key=pair.key,
        verdict=verdict,
        reason=reason,
        baseline_ns=typical_ns(pair.baseline),
        baseline_passes=_find_span(pair.baseline),
        contender_ns=typical_ns(pair.contender),
        contender_passes=_find_span(pair.contender),
    )


def read_runs(cells: Sequence[Cell]) -> list[tuple[float, ...]]:
    """The interquartile means of each run's passes, in nanoseconds, of runs that have any."""
    return [each.pass_means_ns for each in _latencies(cells)]


def _find_span(cells: Sequence[Cell]) -> PassSpan | None:
    """Between what the passes of all runs lie around their latency; None where there is none."""
    latency_ns = typical_ns(cells)
    if latency_ns is None:
        return None
    return span_of(latency_ns, [mean_ns for run in read_runs(cells) for mean_ns in run])


def _latencies(cells: Sequence[Cell]) -> list[LatencySummary]:
    found = [cell.latency for cell in cells if cell.status is Status.PASSED]
    return [each for each in found if each is not None]


def _is_skipped(pair: Pair) -> bool:
    return all(cell.status is Status.SKIPPED for cell in (*pair.baseline, *pair.contender))


def _is_right(pair: Pair) -> bool:
    """Whether a cell is only checked, and the contender passed."""
    checked_only = bool(pair.contender) and pair.contender[0].contract is None
    return checked_only and _worst(pair.contender).status is Status.PASSED


def _find_obstacle(
    pair: Pair, baseline_keys: Iterable[SeriesKey], contender_keys: Iterable[SeriesKey]
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
        return Verdict.NEW, f"no baseline: {describe_end(best)}"
    if len({cell.workload_digest for cell in _passed(pair)}) > 1:
        return Verdict.INCOMPARABLE, "the reference or the case changed"
    return _find_unusable_passes(pair)


def _blame(worst: Cell, baseline: Sequence[Cell]) -> tuple[Verdict, str]:
    if not worst.status.is_incorrect:
        return Verdict.MISSING, describe_end(worst)
    if baseline and min(baseline, key=_rank).status.is_incorrect:
        return Verdict.KNOWN_INCORRECT, f"{describe_end(worst)} (so was the baseline)"
    return Verdict.INCORRECT, describe_end(worst)


def _find_unusable_passes(pair: Pair) -> tuple[Verdict, str] | None:
    for name, cells in (("baseline", pair.baseline), ("contender", pair.contender)):
        if any(is_shared(cell) for cell in cells):
            reason = f"the {name} was measured while another process was on the GPU"
            return Verdict.INCONCLUSIVE, reason
        means_ns = [each for run in read_runs(cells) for each in run]
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


def _passed(pair: Pair) -> list[Cell]:
    return [cell for cell in (*pair.baseline, *pair.contender) if cell.status is Status.PASSED]


def _worst(cells: Sequence[Cell]) -> Cell:
    return max(cells, key=_rank)


def _rank(cell: Cell) -> int:
    return _BEST_FIRST.index(cell.status)


def describe_end(cell: Cell) -> str:
    """Say how a cell ended, and why: ``wrong values: off by 3``."""
    words = cell.status.value.replace("_", " ")
    first_line = next(iter(cell.message.strip().splitlines()), "")
    return f"{words}: {first_line}" if first_line else words
