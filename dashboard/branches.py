"""Which commits a page lays out: a branch's line, its newest commit, the one measured before."""

from collections.abc import Sequence
from dataclasses import dataclass

from perfci.history.model import Commit, RunSummary
from perfci.history.order import line_order, on_line, previous_on_line

_USUAL_BRANCHES = ("main", "master")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """The runs of a testbed at its newest commit and at the measured commit before that.

    Both are newest first; ``previous`` is empty where there is no earlier commit. ``newer`` is a
    run started later that is not on the line: of a dirty tree or of another branch.
    """

    runs: Sequence[RunSummary]
    previous: Sequence[RunSummary]
    newer: RunSummary | None = None


def choose_branch(runs: Sequence[RunSummary]) -> str:
    """Return the branch to show unasked: main or master, else the one measured last.

    ``runs`` are newest first. Empty where no run knows its branch.
    """
    known = [run.commit.branch for run in runs if run.commit.branch]
    usual = (branch for branch in _USUAL_BRANCHES if branch in known)
    return next(usual, known[0] if known else "")


def order_branch(runs: Sequence[RunSummary], branch: str) -> list[Commit]:
    """Return the commits of a branch in first-parent order, the oldest first.

    A commit that was recorded without a branch, as in a detached checkout, belongs to every one.
    """
    return line_order(run for run in runs if run.commit.branch in (None, "", branch))


def pair_newest(runs: Sequence[RunSummary]) -> Pair:
    """Return the newest commit of one testbed's line beside the one before it.

    ``runs`` are newest first, at least one. Where nothing is on the line (all trees are dirty),
    the last run stands alone.
    """
    commits = order_branch(runs, choose_branch(runs))
    if not commits:
        return Pair(runs=runs[:1], previous=())
    head = commits[-1]
    before = previous_on_line(head, commits[:-1])
    shas = {commit.sha for commit in commits}
    is_newer = not on_line(runs[0].commit) or runs[0].commit.sha not in shas
    return Pair(
        runs=_runs_at(head, runs),
        previous=() if before is None else _runs_at(before, runs),
        newer=runs[0] if is_newer else None,
    )


def _runs_at(commit: Commit, runs: Sequence[RunSummary]) -> list[RunSummary]:
    return [run for run in runs if run.commit.sha == commit.sha and on_line(run.commit)]
