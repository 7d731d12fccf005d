"""Cells along a branch: what the figures and tables of a kernel's history are drawn from."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from perfci.history.model import Cell, Commit, Environment, RunSummary, Status

ERROR = "max_abs_error"
YARDSTICK = "yardstick_max_abs_error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One cell at one commit, of the newest run there that has it; None where it is missing.

    ``attempts`` counts the runs of the testbed at the commit.
    """

    run: RunSummary
    cell: Cell | None
    attempts: int

    @property
    def status(self) -> Status:
        """What became of the cell; a cell that the run doesn't have is missing."""
        return Status.MISSING if self.cell is None else self.cell.status


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One variant on one testbed, a point for each commit.

    None stands where there is nothing to say: the testbed measured nothing there, or the variant
    had not been seen by then.
    """

    testbed: str
    variant: str
    points: tuple[Point | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What changed in a testbed's environment with a commit (its index along the branch)."""

    index: int
    testbed: str
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """One case of a kernel along a branch, the oldest commit first."""

    commits: tuple[Commit, ...]
    lines: tuple[Line, ...]
    events: tuple[Event, ...]


def trace(runs: Sequence[RunSummary], cells: Iterable[Cell], commits: Sequence[Commit]) -> History:
    """Lay cells of one case and one contract out along ``commits``, which are in order.

    ``runs`` are newest first; runs of other commits are left out.
    """
    by_run = {(cell.run_id, cell.variant): cell for cell in cells}
    variants = list(dict.fromkeys(variant for _, variant in by_run))
    testbeds = sorted({run.environment.testbed for run in runs})
    lines: list[Line] = []
    events: list[Event] = []
    for testbed in testbeds:
        here = _runs_by_commit(run for run in runs if run.environment.testbed == testbed)
        lines += [
            line
            for variant in variants
            if any((line := _line(testbed, variant, commits, here, by_run)).points)
        ]
        events += _events(testbed, commits, here)
    return History(commits=tuple(commits), lines=tuple(lines), events=tuple(events))


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
            return Point(run=run, cell=cell, attempts=len(runs))
    return Point(run=runs[0], cell=None, attempts=len(runs)) if runs else None


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


def describe_change(before: Environment, now: Environment) -> str:
    """Say what differs between two environments: ``driver 570.1 → 580.2``; empty if nothing."""
    changes = [
        f"{name} {_shown(old)} → {_shown(new)}"
        for name, old, new in (
            ("device", before.device.model, now.device.model),
            ("device", before.device.uuid, now.device.uuid),
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
