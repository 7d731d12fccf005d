"""Cells along a branch: what the figures and tables of a kernel's history are drawn from."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from perfci.history.latency import LatencySummary
from perfci.history.model import Cell, Commit, Environment, RunSummary, Status
from perfci.history.order import is_whole

ERROR = "max_abs_error"
YARDSTICK = "yardstick_max_abs_error"
PEER = "torch_eager"  # the variant that, by convention, calls the library plainly
MOST_DRAWN = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One cell at one commit, of the newest run there that has it; None where it is missing.

    ``attempts`` counts the runs of the testbed at the commit, or the sides of gates and bisections
    there, whichever the run is one of.
    """

    run: RunSummary
    cell: Cell | None
    attempts: int

    @property
    def status(self) -> Status:
        """What became of the cell; a cell that the run doesn't have is missing."""
        return Status.MISSING if self.cell is None else self.cell.status

    @property
    def latency(self) -> LatencySummary | None:
        """The latency; None for what failed, is missing, or was skipped."""
        return None if self.cell is None else self.cell.latency


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One variant on one testbed, a point for each commit.

    None stands where there is nothing to say: the testbed measured nothing there, or the variant
    had not been seen by then.
    """

    testbed: str
    variant: str
    points: tuple[Point | None, ...]

    @property
    def breaks(self) -> frozenset[int]:
        """The commits (indices) with which the workload changed: nothing is joined across them."""
        found = set()
        before = None
        for index, point in enumerate(self.points):
            if point is None or point.cell is None:
                continue
            if before not in (None, point.cell.workload_digest):
                found.add(index)
            before = point.cell.workload_digest
        return frozenset(found)

    @property
    def segments(self) -> list[list[int]]:
        """The stretches of points (indices) that have a latency and may be joined.

        What failed, is missing or has another workload ends a stretch; a commit that the testbed
        did not measure does not.
        """
        breaks = self.breaks
        segments: list[list[int]] = [[]]
        for index, point in enumerate(self.points):
            if point is None:
                continue
            if index in breaks or point.latency is None:
                segments.append([])
            if point.latency is not None:
                segments[-1].append(index)
        return [segment for segment in segments if segment]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What changed on a testbed with a commit (its index along the branch)."""

    index: int
    testbed: str
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """One case of a kernel along a branch, the oldest commit first.

    ``events`` are changes of the environment, ``breaks`` those of the case or its reference.
    """

    commits: tuple[Commit, ...]
    lines: tuple[Line, ...]
    events: tuple[Event, ...]
    breaks: tuple[Event, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Aside:
    """One run that is not on the line, with a point for each variant of a case."""

    run: RunSummary
    points: dict[str, Point]


def trace(runs: Sequence[RunSummary], cells: Iterable[Cell], commits: Sequence[Commit]) -> History:
    """Lay cells of one case and one contract out along ``commits``, which are in order.

    ``runs`` are newest first; runs of other commits are left out, and so are commits without runs.
    """
    measured = {run.commit.sha for run in runs if run.commit.dirty is None}
    commits = [commit for commit in commits if commit.sha in measured]
    by_run = {(cell.run_id, cell.variant): cell for cell in cells}
    variants = list(dict.fromkeys(variant for _, variant in by_run))
    testbeds = sorted({run.environment.testbed for run in runs})
    lines: list[Line] = []
    events: list[Event] = []
    for testbed in testbeds:
        here = _runs_by_commit(run for run in runs if run.environment.testbed == testbed)
        found = [
            line
            for variant in variants
            if any((line := _line(testbed, variant, commits, here, by_run)).points)
        ]
        lines += found
        events += _events(testbed, commits, here) if found else []
    return History(
        commits=tuple(commits), lines=tuple(lines), events=tuple(events), breaks=_breaks(lines)
    )


def choose_variants(lines: Sequence[Line]) -> tuple[str, ...]:
    """Choose the variants to draw unasked: all, or of many the peer and the last fastest ones."""
    fastest_ns: dict[str, float] = {}
    for line in lines:
        latencies = [point.latency for point in line.points if point is not None]
        known = [latency.typical_ns for latency in latencies if latency is not None]
        last_ns = known[-1] if known else math.inf
        fastest_ns[line.variant] = min(last_ns, fastest_ns.get(line.variant, math.inf))
    if len(fastest_ns) <= MOST_DRAWN:
        return tuple(fastest_ns)
    ranked = sorted(fastest_ns, key=lambda variant: (variant != PEER, fastest_ns[variant]))
    return tuple(variant for variant in fastest_ns if variant in ranked[:MOST_DRAWN])


def order_variants(lines: Sequence[Line]) -> list[str]:
    """Order the variants for colours and marks: those that are drawn unasked first.

    So that these differ in colour, and a variant keeps its own whatever is drawn beside it.
    """
    return list(dict.fromkeys((*choose_variants(lines), *(line.variant for line in lines))))


def set_apart(runs: Iterable[RunSummary], cells: Iterable[Cell]) -> list[Aside]:
    """Put the cells of one case and one contract beside the run that each is of.

    Runs that have none of them are left out.
    """
    by_run: dict[str, list[Cell]] = {}
    for cell in cells:
        by_run.setdefault(cell.run_id, []).append(cell)
    return [
        Aside(
            run=run,
            points={
                cell.variant: Point(run=run, cell=cell, attempts=1) for cell in by_run[run.run_id]
            },
        )
        for run in runs
        if run.run_id in by_run
    ]


def _runs_by_commit(runs: Iterable[RunSummary]) -> dict[str, list[RunSummary]]:
    grouped: dict[str, list[RunSummary]] = {}
    for run in runs:
        if run.commit.dirty is None:
            grouped.setdefault(run.commit.sha, []).append(run)
    return grouped


def _line(
    testbed: str,
    variant: str,
    commits: Sequence[Commit],
    runs: Mapping[str, Sequence[RunSummary]],
    cells: Mapping[tuple[str, str], Cell],
) -> Line:
    points: list[Point | None] = []
    seen = False
    for commit in commits:
        point = _point(variant, runs.get(commit.sha, ()), cells)
        seen = seen or (point is not None and point.cell is not None)
        points.append(point if seen else None)
    return Line(testbed=testbed, variant=variant, points=tuple(points))


def _point(
    variant: str, runs: Sequence[RunSummary], cells: Mapping[tuple[str, str], Cell]
) -> Point | None:
    """The newest cell that runs of one commit have; None where there is no run."""
    for run in runs:
        if cell := cells.get((run.run_id, variant)):
            return Point(run=run, cell=cell, attempts=_count_alike(run, runs))
    return Point(run=runs[0], cell=None, attempts=_count_alike(runs[0], runs)) if runs else None


def _count_alike(run: RunSummary, runs: Sequence[RunSummary]) -> int:
    return sum(is_whole(each) == is_whole(run) for each in runs)


def _events(
    testbed: str, commits: Sequence[Commit], runs: Mapping[str, Sequence[RunSummary]]
) -> list[Event]:
    events = []
    before: Environment | None = None
    for index, commit in enumerate(commits):
        if commit.sha not in runs:
            continue
        now = runs[commit.sha][0].environment
        if before is not None and (what := describe_change(before, now)):
            events.append(Event(index=index, testbed=testbed, what=what))
        before = now
    return events


def _breaks(lines: Iterable[Line]) -> tuple[Event, ...]:
    places = sorted({(index, line.testbed) for line in lines for index in line.breaks})
    return tuple(
        Event(index=index, testbed=testbed, what="case or reference changed")
        for index, testbed in places
    )


def describe_change(before: Environment, now: Environment) -> str:
    """Say what differs between two environments: ``driver 570.1 → 580.2``; empty if nothing."""
    changes = [
        f"{name} {_shown(old)} → {_shown(new)}"
        for name, old, new in (
            ("device", before.device.model, now.device.model),
            ("UUID", before.device.uuid, now.device.uuid),
            ("driver", before.device.driver, now.device.driver),
            ("torch", before.torch, now.torch),
            ("CUDA", before.cuda, now.cuda),
            ("nvcc", before.nvcc, now.nvcc),
            ("compiler", before.compiler, now.compiler),
            ("Python", before.python, now.python),
            ("host", before.host, now.host),
        )
        if old != new
    ]
    return ", ".join(changes)


def _shown(value: str | None) -> str:
    return "none" if value is None else value
