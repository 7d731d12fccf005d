"""The cell that recorded runs of two commits flag: which one to bisect where none is named."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from perfci.anchors.machine import without_anchors
from perfci.decision.compare import Floors, Side, compare
from perfci.decision.verdict import sort_worst_first
from perfci.errors import MissingError, UsageError
from perfci.history.model import Cell, Comparison, Verdict
from perfci.history.stores import Store
from perfci.runs import runs_at
from perfci.suggest import did_you_mean

NAME_IT = "name the cell with --kernel, --variant and --case"
_FLAGGED = (Verdict.INCORRECT, Verdict.REGRESSION, Verdict.MISSING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is known of the cell that is meant; None of what is not."""

    kernel: str | None
    variant: str | None
    case: str | None
    timer: str | None

    @property
    def is_whole(self) -> bool:
        """Whether it names a cell; a timer is not needed to."""
        return None not in (self.kernel, self.variant, self.case)


def find_flagged(
    store: Store,
    where: Path,
    ends: tuple[str, str],
    wanted: Wanted,
    *,
    testbed: str,
    threshold: float,
    floors: Floors,
) -> list[Comparison]:
    """The cells that are wrong, slower or missing at the second commit, the worst first.

    Raises MissingError where one of the commits is not recorded on the testbed, UsageError where
    no such cell is flagged.
    """
    try:
        before, after = (_side(store, where, each, testbed) for each in ends)
    except MissingError as error:
        raise MissingError(f"{NAME_IT}: {error}") from None
    compared = compare(before, after, threshold=threshold, floors=floors)
    flagged = [
        each
        for each in sort_worst_first(compared)
        if each.verdict in _FLAGGED and _is_wanted(each, wanted)
    ]
    if not flagged:
        _refuse_unknown([*before.cells, *after.cells], wanted)
        raise UsageError(
            f"no cell{_name_wanted(wanted)} is recorded as worse at {ends[1][:10]} than at "
            f"{ends[0][:10]} on testbed '{testbed}': {NAME_IT}"
        )
    return flagged


def _refuse_unknown(cells: Sequence[Cell], wanted: Wanted) -> None:
    """UsageError where a name is wanted that no cell has."""
    for what in ("kernel", "variant", "case"):
        name, known = getattr(wanted, what), {str(getattr(each, what)) for each in cells}
        if name is not None and name not in known:
            raise UsageError(
                f"no {what} '{name}' is recorded at either end {did_you_mean(name, known)}"
            )


def _name_wanted(wanted: Wanted) -> str:
    """What was asked for, as it is named on the command line; empty where nothing was."""
    names = {each.name: getattr(wanted, each.name) for each in fields(wanted)}
    asked = [f"--{what} {name}" for what, name in names.items() if name is not None]
    return f" of {' '.join(asked)}" if asked else ""


def _side(store: Store, where: Path, sha: str, testbed: str) -> Side:
    runs = runs_at(store, where, sha, testbed=testbed)
    cells = store.cells(run_ids=[run.run_id for run in runs])
    return without_anchors(Side(runs=runs, cells=cells))


def _is_wanted(comparison: Comparison, wanted: Wanted) -> bool:
    key = comparison.key
    timer = key.contract.partition("/")[0]
    pairs = (
        (wanted.kernel, key.kernel),
        (wanted.variant, key.variant),
        (wanted.case, key.case),
        (wanted.timer, timer),
    )
    return all(name in (None, known) for name, known in pairs)
