"""What of a commit's runs stands, where a later one shows a failure to be the machine's. Pure.

Of several runs a contender has its worst end, so that a second try hides no failure: wrong once is
wrong, and a crash, a hang or a timing that cannot be may be the code's own and come back. But a
machine may lack memory, or what a build takes, and the very same tree has neither failure where it
has it. Such a row is superseded by a later whole run in which the cell passed, and it is said.
"""

from collections.abc import Mapping, Sequence

from perfci.decision.pairs import describe_end
from perfci.history.model import Cell, RunSummary, SeriesKey, Status
from perfci.history.order import is_whole

_OF_THE_MACHINE = (Status.BUILD_FAILED, Status.MISSING)
"""*Missing* is a row of a cell that was only kept from being timed, beside a side that failed."""

_SHORTAGE = "out of memory"
"""What perfci says of memory that ran out, or that it takes to have run out."""

Cells = Mapping[SeriesKey, Sequence[Cell]]


def part_superseded(cells: Cells, runs: Sequence[RunSummary]) -> tuple[Cells, Cells]:
    """The rows of each cell that stand, and those that a later run supersedes, of cells with any.

    ``runs`` are those of all rows.
    """
    by_id = {run.run_id: run for run in runs}
    superseded = {
        key: gone for key, rows in cells.items() if (gone := _find_superseded(rows, by_id))
    }
    standing = {
        key: [row for row in rows if row not in superseded.get(key, ())]
        for key, rows in cells.items()
    }
    return standing, superseded


def describe_superseded(rows: Sequence[Cell]) -> str:
    """Say what no longer counts: ``failed before, not since: out of memory (run 2026…)``."""
    ends = dict.fromkeys(f"{describe_end(row)} (run {row.run_id})" for row in rows)
    return f"failed before, not since: {', '.join(ends)}"


def _find_superseded(rows: Sequence[Cell], runs: Mapping[str, RunSummary]) -> list[Cell]:
    passed = [
        runs[row.run_id].started_at
        for row in rows
        if row.status is Status.PASSED and is_whole(runs[row.run_id])
    ]
    return [
        row
        for row in rows
        if _may_be_the_machine(row)
        and any(started_at > runs[row.run_id].started_at for started_at in passed)
    ]


def _may_be_the_machine(row: Cell) -> bool:
    is_shortage = row.status is Status.RUNTIME_ERROR and _SHORTAGE in row.message
    return is_shortage or row.status in _OF_THE_MACHINE
