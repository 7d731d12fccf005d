"""What verdicts amount to: which is worst, and what a script is told of them."""

from collections.abc import Iterable, Sequence

from perfci.errors import ExitCode
from perfci.history.model import Comparison, Measurement, SeriesKey, Verdict, is_anchor

WORST_FIRST = (
    Verdict.INCORRECT,
    Verdict.REGRESSION,
    Verdict.MISSING,
    Verdict.INCOMPARABLE,
    Verdict.KNOWN_INCORRECT,
    Verdict.INCONCLUSIVE,
    Verdict.NEW,
    Verdict.IMPROVEMENT,
    Verdict.UNCHANGED,
)

_EXIT_CODES = {
    Verdict.INCORRECT: ExitCode.REGRESSION_OR_INCORRECT,
    Verdict.REGRESSION: ExitCode.REGRESSION_OR_INCORRECT,
    Verdict.MISSING: ExitCode.MISSING_CELLS,
    Verdict.INCOMPARABLE: ExitCode.INCOMPARABLE,
}


def sort_worst_first(comparisons: Iterable[Comparison]) -> list[Comparison]:
    """Order by verdict, then the largest slow-down first, then by key."""
    return sorted(comparisons, key=rank)


def rank(comparison: Comparison) -> tuple[int, float, SeriesKey]:
    """What comparisons are sorted by, the worst first."""
    place = WORST_FIRST.index(comparison.verdict)
    return place, -(comparison.ratio or 0.0), comparison.key


def exit_code(comparisons: Sequence[Comparison], *, fail_on_inconclusive: bool = False) -> ExitCode:
    """Return the exit code of the worst comparison.

    A comparison of nothing is no success: without any, cells are missing.
    """
    if not comparisons:
        return ExitCode.MISSING_CELLS
    codes = dict(_EXIT_CODES)
    if fail_on_inconclusive:
        codes[Verdict.INCONCLUSIVE] = ExitCode.INCONCLUSIVE
    worst = min(
        (each.verdict for each in comparisons if each.verdict in codes),
        key=WORST_FIRST.index,
        default=None,
    )
    return ExitCode.FINE if worst is None else codes[worst]


def run_exit_code(measurements: Iterable[Measurement]) -> ExitCode:
    """Return the exit code of a run: whether any cell failed. An anchor is none of the code's."""
    failed = any(each.status.is_failure for each in measurements if not is_anchor(each.kernel))
    return ExitCode.REGRESSION_OR_INCORRECT if failed else ExitCode.FINE
