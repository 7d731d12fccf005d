"""Which commits a page lays out: a branch's line, its newest commit, the one measured before."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from perfci.history.model import BISECT_TRIGGER, Commit, RunSummary
from perfci.history.order import find_sides, is_whole, line_order, on_line, previous_on_line

MOST_RECENT = 20
_MOST_RECENT_CELLS = 8_000
_USUAL_BRANCHES = ("main", "master")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """The runs of a testbed at its newest commit and at the measured commit before that.

    Both are newest first, sides of gates and bisections last; ``previous`` is empty where there is
    no earlier commit. ``recent`` are the newest commits of the line, the oldest first. ``newer`` is
    a run started later that is not on the line: of a dirty tree, of another branch, or the head's
    side of a gate.
    """

    runs: Sequence[RunSummary]
    previous: Sequence[RunSummary]
    recent: Sequence[Commit] = ()
    newer: RunSummary | None = None


def choose_branch(runs: Sequence[RunSummary]) -> str:
    """Return the branch to show unasked: main or master, else the one measured last.

    ``runs`` are newest first. Empty where no run knows its branch. One that has nothing on its line
    is returned only where none has.
    """
    on_lines = [run for run in runs if is_whole(run) and on_line(run.commit)]
    known = [run.commit.branch for run in on_lines or runs if run.commit.branch]
    usual = (branch for branch in _USUAL_BRANCHES if branch in known)
    return next(usual, known[0] if known else "")


def order_branch(runs: Sequence[RunSummary], branch: str) -> list[Commit]:
    """Return the commits of a branch in first-parent order, the oldest first.

    A commit that was recorded without a branch, as in a detached checkout, belongs to every one.
    """
    return line_order(run for run in runs if run.commit.branch in (None, "", branch))


def runs_at(runs: Iterable[RunSummary], commits: Iterable[Commit]) -> list[RunSummary]:
    """Return the runs of clean trees at some commits, in the order given, whole ones first."""
    shas = {commit.sha for commit in commits}
    found = [run for run in runs if run.commit.sha in shas and on_line(run.commit)]
    return sorted(found, key=lambda run: not is_whole(run))


def take_newest(
    commits: Sequence[Commit], runs: Iterable[RunSummary], *, most: int, most_cells: int
) -> Sequence[Commit]:
    """Return the newest end of a line that is cheap to read: so many commits, so many cells.

    The newest commit and the one before it are there whatever they hold.
    """
    sizes = Counter[str]()
    for run in runs:
        sizes[run.commit.sha] += sum(count for _, count in run.status_counts)
    taken = total = 0
    for commit in reversed(commits[-most:]):
        total += sizes[commit.sha]
        if taken >= 2 and total > most_cells:
            break
        taken += 1
    return commits[len(commits) - taken :]


def pair_newest(runs: Sequence[RunSummary]) -> Pair:
    """Return the newest commit of one testbed's line beside the one before it.

    ``runs`` are newest first, at least one, a head's side before its base's. Where nothing is on
    the line (all trees are dirty, or only a gate has measured), the last run stands there, beside
    the base that it was measured with.
    """
    commits = order_branch(runs, choose_branch(runs))
    if not commits:
        last = next((run for run in runs if is_whole(run)), runs[0])
        base, side = find_sides(runs).get(last.pair, (None, None))
        return Pair(
            runs=[last],
            previous=[base] if base is not None and side is last else (),
            newer=None if last is runs[0] else runs[0],
        )
    head = commits[-1]
    before = previous_on_line(head, commits[:-1])
    shas = {commit.sha for commit in commits}
    newest = next((run for run in runs if run.trigger != BISECT_TRIGGER), runs[0])
    is_newer = not on_line(newest.commit) or newest.commit.sha not in shas
    return Pair(
        runs=runs_at(runs, [head]),
        previous=() if before is None else runs_at(runs, [before]),
        recent=take_newest(commits, runs, most=MOST_RECENT, most_cells=_MOST_RECENT_CELLS),
        newer=newest if is_newer else None,
    )
