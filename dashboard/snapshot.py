"""The newest commit of a testbed beside the one measured before it: what the overview shows."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from perfci.anchors.machine import compare_anchors, find_moved, without_anchors
from perfci.dashboard.lines import ERROR, PEER, YARDSTICK, Line, trace
from perfci.decision.compare import Floors, Side, compare, find_compared
from perfci.history.model import Cell, Commit, Comparison, RunSummary, Status, is_anchor
from perfci.load import say_load


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
    def check_count(self) -> int:
        """How many cases were checked, or should have been; one with several timers is one."""
        return sum(not _is_skipped(cells) for cells in self._by_case())

    @property
    def passed_count(self) -> int:
        """How many cases passed, whichever timers they have."""
        return sum(
            not _is_skipped(cells)
            and all(each is not None and not each.status.is_failure for each in cells)
            for cells in self._by_case()
        )

    @property
    def skipped_count(self) -> int:
        """How many cases the variant declares impossible."""
        return sum(_is_skipped(cells) for cells in self._by_case())

    @property
    def worst_error(self) -> Cell | None:
        """The cell whose error is the largest in units of the yardstick's; None without any.

        Where no cell has a yardstick to measure by, it is the one with the largest error.
        """
        cells = [cell for cell in self.cells.values() if cell is not None and cell.metric(ERROR)]
        return max(cells, key=_error_rank, default=None)

    def _by_case(self) -> Iterable[list[Cell | None]]:
        cases: dict[str, list[Cell | None]] = {}
        for place, cell in self.cells.items():
            cases.setdefault(place.case, []).append(cell)
        return cases.values()


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The runs of one testbed at its newest commit and at the measured commit before it.

    ``runs`` and ``previous`` are newest first; ``previous`` is empty where there is no earlier
    commit. ``tables`` holds each kernel's rows, ``trends`` each timed cell's last commits.
    ``anchors`` are the newest cells of the machine itself, which is in none of these, and ``moved``
    those of them that moved. ``newer`` is a later run that is not on the line. ``load`` says how
    busy others kept a CPU, and is empty where that was not much.
    """

    testbed: str
    runs: tuple[RunSummary, ...]
    previous: tuple[RunSummary, ...]
    tables: dict[str, tuple[Row, ...]]
    comparisons: dict[Place, Comparison]
    trends: dict[Place, Line]
    anchors: tuple[Cell, ...] = ()
    moved: tuple[Comparison, ...] = ()
    newer: RunSummary | None = None
    load: str = ""

    @property
    def run(self) -> RunSummary:
        """The newest run at the newest commit."""
        return self.runs[0]

    @property
    def timers(self) -> list[str]:
        """The contracts' labels in recorded order, the primary one first."""
        places = (place for rows in self.tables.values() for row in rows for place in row.cells)
        return list(dict.fromkeys(place.contract for place in places if place.contract))

    def speed_up(self, place: Place) -> float | None:
        """How many times as fast as the library's plain call a cell is.

        None unless both passed in the same run, with the same workload.
        """
        own, peer = self._passed(place), self._passed(place._replace(variant=PEER))
        if place.variant == PEER or own is None or peer is None:
            return None
        alike = (own.run_id, own.workload_digest) == (peer.run_id, peer.workload_digest)
        if own.latency is None or peer.latency is None or not alike or own.latency.typical_ns <= 0:
            return None
        return peer.latency.typical_ns / own.latency.typical_ns

    def share(self, place: Place) -> float | None:
        """A cell's latency in units of the slowest of its case, timer and run, up to 1.

        None where it did not pass or nothing else did.
        """
        own = self._passed(place)
        if own is None or own.latency is None:
            return None
        latencies_ns = [
            cell.latency.typical_ns
            for row in self.tables[place.kernel]
            if (cell := self._passed(place._replace(variant=row.variant))) is not None
            and cell.latency is not None
            and cell.run_id == own.run_id
        ]
        return own.latency.typical_ns / max(latencies_ns) if len(latencies_ns) > 1 else None

    def _passed(self, place: Place) -> Cell | None:
        rows = (row for row in self.tables[place.kernel] if row.variant == place.variant)
        cell = next((row.cells.get(place) for row in rows), None)
        return cell if cell is not None and cell.status is Status.PASSED else None


def take(
    runs: Sequence[RunSummary],
    previous: Sequence[RunSummary],
    cells: Iterable[Cell],
    *,
    newer: RunSummary | None = None,
    line: tuple[Sequence[Commit], Sequence[RunSummary]] = ((), ()),
    floors: Floors | None = None,
) -> Snapshot:
    """Put the cells of two commits of one testbed side by side.

    ``floors`` are those of the cells whose noise was studied. ``line`` are the newest commits of
    the line in order, and their runs, for the trends.

    Of several runs at the newest commit, the newest that has a cell is shown and all are compared.
    A cell known at the previous commit and in none of these runs is missing, and kept.
    """
    cells = list(cells)
    sides = [Side(each, _newest_first(cells, each)) for each in (previous, runs)]
    before, now = (without_anchors(side) for side in sides)
    shown = _newest(now.cells)
    newest = list(_newest(sides[1].cells).values())
    compared, _ = find_compared(*sides)
    comparisons = compare(before, now, floors=floors) if previous else []
    moved = find_moved(compare_anchors(*sides, floors=floors)) if previous else []
    return Snapshot(
        testbed=runs[0].environment.testbed,
        runs=tuple(runs),
        previous=tuple(previous),
        tables=_tables(_merge(now.cells, before.cells), shown),
        comparisons={
            Place(each.key.kernel, each.key.variant, each.key.case, each.key.contract): each
            for each in comparisons
        },
        trends=_trends(cells, *line),
        anchors=tuple(each for each in newest if is_anchor(each.kernel)),
        moved=tuple(moved),
        newer=newer,
        load=say_load({"the commit before": compared, "the newest commit": newest}),
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


def _newest(cells: Iterable[Cell]) -> dict[Place, Cell]:
    """The newest cell of each place, of cells that are newest first, in recorded order."""
    newest: dict[Place, Cell] = {}
    for cell in cells:
        newest.setdefault(place_of(cell), cell)
    return newest


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


def _trends(
    cells: Iterable[Cell], commits: Sequence[Commit], runs: Sequence[RunSummary]
) -> dict[Place, Line]:
    ids = {run.run_id for run in runs}
    groups: dict[Place, list[Cell]] = {}
    for cell in cells:
        if cell.contract is not None and cell.run_id in ids and not is_anchor(cell.kernel):
            groups.setdefault(place_of(cell)._replace(variant=""), []).append(cell)
    return {
        place._replace(variant=line.variant): line
        for place, group in groups.items()
        for line in trace(runs, group, commits).lines
    }


def error_ratio(cell: Cell) -> float | None:
    """A cell's largest absolute error in units of the yardstick's; None without either.

    Where the yardstick has none, no error at all is 0 and any other infinite.
    """
    error, yardstick = cell.metric(ERROR), cell.metric(YARDSTICK)
    if error is None or yardstick is None:
        return None
    if yardstick.value == 0:
        return 0.0 if error.value == 0 else math.inf
    return error.value / yardstick.value


def _is_skipped(cells: Iterable[Cell | None]) -> bool:
    return all(cell is not None and cell.status is Status.SKIPPED for cell in cells)


def _error_rank(cell: Cell) -> tuple[float, float]:
    """Rank cells by how bad their error is: not a number first, then by ratio, then by size."""
    error, ratio = cell.metric(ERROR), error_ratio(cell)
    size = math.inf if error is None or math.isnan(error.value) else error.value
    if ratio is None:
        return (-1.0, size)
    return (math.inf if math.isnan(ratio) else ratio, size)
