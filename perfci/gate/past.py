"""A head beside what is recorded: a release, the pinned baseline, the best. For what drifts slowly.

What was measured in other hours is compared as `perfci compare` does, and decides nothing here.
Neither does what is recorded of cells that are not measured, since they are the base's own code:
but where the base is known to fail, nobody should take them for right.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfci.anchors.machine import without_anchors
from perfci.decision.compare import Floors, Side, compare, key_of
from perfci.decision.pairs import describe_end, typical_ns
from perfci.history import commits
from perfci.history.errors import CommitError
from perfci.history.model import (
    Cell,
    Commit,
    Comparison,
    RunSummary,
    SeriesKey,
    Status,
    is_anchor,
)
from perfci.history.stores import Store

FEWEST_PASSES = 3
"""Of fewer passes a latency is no best: it may be one that chance has made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Since:
    """What became of the cells since a commit that has a name."""

    name: str
    commit: Commit
    comparisons: tuple[Comparison, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """The lowest latency that is recorded of a cell, where, and the head's in units of it."""

    key: SeriesKey
    latency_ns: float
    commit: Commit
    ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """A cell that had failed when its commit was last measured: how, why, and in which run."""

    key: SeriesKey
    status: Status
    reason: str
    run_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """How a head lies beside what is recorded.

    ``failed_at_base`` are the cells of the same code of which the base is known to fail.
    """

    since: tuple[Since, ...] = ()
    best: tuple[Best, ...] = ()
    failed_at_base: tuple[Failed, ...] = ()


def read_past(
    store: Store, after: Side, marks: Mapping[str, str], *, threshold: float, floors: Floors
) -> Past:
    """What the store has to be compared with what was just measured.

    ``marks`` are SHAs by what they are called.
    """
    after = without_anchors(after)
    if not after.cells:
        return Past()
    testbed = after.runs[0].environment.testbed
    runs = [
        run
        for run in store.runs(testbed=testbed, studies=False)
        if run.commit.dirty is None and run.run_id not in {each.run_id for each in after.runs}
    ]
    since = []
    for name, sha in marks.items():
        side = _side(store, [run for run in runs if run.commit.sha == sha])
        if side is not None:
            compared = compare(side, after, threshold=threshold, floors=floors)
            timed = tuple(each for each in compared if each.ratio is not None)
            since.append(Since(name=name, commit=side.runs[0].commit, comparisons=timed))
    ids = [run.run_id for run in runs]
    kernels = sorted({cell.kernel for cell in after.cells})
    recorded = [cell for each in kernels for cell in store.cells(run_ids=ids, kernel=each)]
    return Past(since=tuple(since), best=tuple(find_best(after, runs, recorded)))


def find_failed(store: Store, sha: str, keys: Collection[SeriesKey]) -> tuple[Failed, ...]:
    """Which of these cells had failed when a commit was last measured, by order of the keys.

    It is the newest run with the cell that counts, whatever started it. A row that is *missing*
    says nothing of the cell: it was not measured beside a side that failed.
    """
    testbeds = {key.testbed for key in keys}
    runs = [
        run
        for testbed in sorted(testbeds)
        for run in store.runs(sha_prefix=sha, testbed=testbed, studies=False)
        if run.commit.sha == sha and run.commit.dirty is None
    ]
    cells: dict[str, list[Cell]] = {}
    for each in store.cells(run_ids=[run.run_id for run in runs]) if runs else ():
        cells.setdefault(each.run_id, []).append(each)
    newest: dict[SeriesKey, Cell] = {}
    for run in runs:
        for each in cells.get(run.run_id, ()):
            if each.status is not Status.MISSING:
                newest.setdefault(key_of(each, run.environment), each)
    return tuple(
        Failed(key=key, status=cell.status, reason=describe_end(cell), run_id=cell.run_id)
        for key in sorted(keys)
        if (cell := newest.get(key)) is not None and cell.status.is_failure
    )


def find_marks(root: Path, base: str, pinned: str | None) -> dict[str, str]:
    """The commits to look back at: the last release of the base, and the pinned baseline."""
    marks = {}
    tag = commits.last_tag(root, base)
    if tag is not None:
        marks[tag] = commits.resolve(root, tag)
    if pinned is not None:
        try:
            marks["the pinned baseline"] = commits.resolve(root, pinned)
        except CommitError:
            marks["the pinned baseline"] = pinned
    return marks


def find_best(after: Side, runs: Sequence[RunSummary], recorded: Iterable[Cell]) -> list[Best]:
    """The best of each cell that was measured, among what is recorded of the same workload."""
    by_id = {run.run_id: run for run in runs}
    wanted = {key: cells[0] for key, cells in after.cells_by_key().items()}
    lowest: dict[SeriesKey, tuple[float, Commit]] = {}
    for cell in recorded:
        run = by_id[cell.run_id]
        key = key_of(cell, run.environment)
        own = wanted.get(key)
        latency_ns = _typical_ns(cell)
        if own is None or latency_ns is None or own.workload_digest != cell.workload_digest:
            continue
        if key not in lowest or latency_ns < lowest[key][0]:
            lowest[key] = (latency_ns, run.commit)
    return [
        Best(key=key, latency_ns=best_ns, commit=commit, ratio=own_ns / best_ns)
        for key, (best_ns, commit) in sorted(lowest.items())
        if (own_ns := _typical_ns(wanted[key])) is not None
    ]


def _side(store: Store, runs: Sequence[RunSummary]) -> Side | None:
    cells = store.cells(run_ids=[run.run_id for run in runs]) if runs else ()
    known = [each for each in cells if not is_anchor(each.kernel)]
    return Side(runs, known) if known else None


def _typical_ns(cell: Cell) -> float | None:
    """A cell's latency over its passes; None of one that has too few, or none that can be."""
    if cell.latency is None or len(cell.latency.pass_means_ns) < FEWEST_PASSES:
        return None
    return typical_ns([cell])
