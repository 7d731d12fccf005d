"""The newest commit of a testbed beside the one measured before it: what the overview shows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from perfci.compare import Side, compare
from perfci.dashboard.lines import ERROR, YARDSTICK
from perfci.history.model import Cell, Comparison, RunSummary, Status


class Place(NamedTuple):
    """Where a cell stands in a table; ``contract`` is a label, empty if only checked."""

    kernel: str
    variant: str
    case: str
    contract: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A variant of a kernel: its cells by place, None where one is missing now."""

    variant: str
    cells: dict[Place, Cell | None]

    @property
    def passed_count(self) -> int:
        """How many cells passed their check."""
        return sum(
            cell is not None and cell.status is Status.PASSED for cell in self.cells.values()
        )

    @property
    def skipped_count(self) -> int:
        """How many cells the variant declares impossible."""
        return sum(
            cell is not None and cell.status is Status.SKIPPED for cell in self.cells.values()
        )

    @property
    def worst_error(self) -> Cell | None:
        """The cell whose error is the largest in units of the yardstick's; None without any."""
        cells = [cell for cell in self.cells.values() if cell is not None and cell.metric(ERROR)]
        return max(cells, key=_error_ratio, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The runs of one testbed at its newest commit and at the measured commit before it.

    ``runs`` and ``previous`` are newest first; ``previous`` is empty where there is no earlier
    commit. ``tables`` holds each kernel's rows. ``newer`` is a later run that is not on the line.
    """

    testbed: str
    runs: tuple[RunSummary, ...]
    previous: tuple[RunSummary, ...]
    tables: dict[str, tuple[Row, ...]]
    comparisons: dict[Place, Comparison]
    newer: RunSummary | None = None

    @property
    def run(self) -> RunSummary:
        """The newest run at the newest commit."""
        return self.runs[0]


def take(
    runs: Sequence[RunSummary],
    previous: Sequence[RunSummary],
    cells: Iterable[Cell],
    *,
    newer: RunSummary | None = None,
) -> Snapshot:
    """Put the cells of two commits of one testbed side by side.

    Of several runs at the newest commit, the newest that has a cell is shown and all are compared.
    A cell known at the previous commit and in none of these runs is missing, and kept.
    """
    cells = list(cells)
    now = _newest_first(cells, runs)
    before = _newest_first(cells, previous)
    shown = {place_of(cell): cell for cell in reversed(now)}
    comparisons = compare(Side(previous, before), Side(runs, now)) if previous else []
    return Snapshot(
        testbed=runs[0].environment.testbed,
        runs=tuple(runs),
        previous=tuple(previous),
        tables=_tables(_merge(now, before), shown),
        comparisons={
            Place(each.key.kernel, each.key.variant, each.key.case, each.key.contract): each
            for each in comparisons
        },
        newer=newer,
    )


def place_of(cell: Cell) -> Place:
    """Return where a cell stands."""
    contract = "" if cell.contract is None else cell.contract.label
    return Place(cell.kernel, cell.variant, cell.case, contract)


def _newest_first(cells: Sequence[Cell], runs: Sequence[RunSummary]) -> list[Cell]:
    ranks = {run.run_id: rank for rank, run in enumerate(runs)}
    return sorted(
        (cell for cell in cells if cell.run_id in ranks), key=lambda cell: ranks[cell.run_id]
    )


def _merge(now: Iterable[Cell], before: Iterable[Cell]) -> list[Place]:
    return list(dict.fromkeys(place_of(cell) for cells in (now, before) for cell in cells))


def _tables(places: Sequence[Place], shown: dict[Place, Cell]) -> dict[str, tuple[Row, ...]]:
    rows: dict[str, dict[str, dict[Place, Cell | None]]] = {}
    for place in places:
        variants = rows.setdefault(place.kernel, {})
        variants.setdefault(place.variant, {})[place] = shown.get(place)
    return {
        kernel: tuple(Row(variant=variant, cells=cells) for variant, cells in variants.items())
        for kernel, variants in rows.items()
    }


def _error_ratio(cell: Cell) -> float:
    error, yardstick = cell.metric(ERROR), cell.metric(YARDSTICK)
    if error is None or error.value != error.value:
        return float("inf")
    if yardstick is None or not yardstick.value > 0:
        return error.value
    return error.value / yardstick.value
