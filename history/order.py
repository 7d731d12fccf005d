"""The order of recorded commits along a branch: the commit graph's, never the clock's. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from perfci.history.model import BISECT_TRIGGER, GATE_TRIGGER, Commit, Run, RunSummary

_OF_SOME_CELLS = (GATE_TRIGGER, BISECT_TRIGGER)


def on_line(commit: Commit) -> bool:
    """Whether a commit belongs on its branch's line: a dirty tree never does."""
    return commit.dirty is None


def is_whole(run: Run | RunSummary) -> bool:
    """Whether a run is of its commit for its own sake, not what a gate or a bisection had to do."""
    return run.trigger not in _OF_SOME_CELLS


def find_sides(runs: Iterable[RunSummary]) -> dict[str, tuple[RunSummary, RunSummary]]:
    """The two runs of each pair that were measured together, the base's before the head's.

    Those of a study of noise, where both are of one commit, are in the order given.
    """
    halves: dict[str, list[RunSummary]] = {}
    for run in runs:
        if run.pair:
            halves.setdefault(run.pair, []).append(run)
    return {
        pair: (two[1], two[0]) if _builds_on(two[0].commit, two[1].commit) else (two[0], two[1])
        for pair, two in halves.items()
        if len(two) == 2
    }


def head_first(runs: Sequence[RunSummary]) -> list[RunSummary]:
    """The same order of runs, but of two that were measured together the head's before the base's.

    Both were started at the same moment, by which they are in no order.
    """
    sides = find_sides(runs)
    ordered: dict[str, RunSummary] = {}
    for run in runs:
        for each in reversed(sides.get(run.pair, (run,))):
            ordered.setdefault(each.run_id, each)
    return list(ordered.values())


def line_order(runs: Iterable[Run | RunSummary]) -> list[Commit]:
    """The commits of runs of one branch in first-parent order, oldest first, each SHA once.

    A commit without a position takes it from a neighbour by its first parent; where no neighbour
    has one either, the chain of them stands at the end, chains ordered by when first recorded.
    Commits of the same position (one of them amended or rebased away) stay, in the order in which
    they were first recorded. Dirty trees are left out, and what only a gate or a
    bisection has measured: these measure some cells, of heads that may never be merged.
    """
    recorded = sorted(
        (run for run in runs if on_line(run.commit) and is_whole(run)),
        key=lambda run: (run.started_at, run.run_id),
    )
    commits: dict[str, Commit] = {}
    for run in recorded:
        known = commits.setdefault(run.commit.sha, run.commit)
        if known.position is None and run.commit.position is not None:
            commits[known.sha] = run.commit
    places = _places(commits)
    return sorted(commits.values(), key=lambda commit: places[commit.sha])


def previous_on_line(commit: Commit, candidates: Iterable[Commit]) -> Commit | None:
    """The nearest recorded first-parent ancestor of a commit; None where none is known.

    That is the first parent where it is among the candidates, else the candidate of the highest
    position below the commit's on the same branch (or on no branch); of several at that position
    the last. A dirty tree's is the commit that it is based on, where that was recorded clean.
    """
    recorded = {each.sha: each for each in candidates if on_line(each)}
    if not on_line(commit) and commit.sha in recorded:
        return recorded[commit.sha]
    if commit.parents and commit.parents[0] in recorded:
        return recorded[commit.parents[0]]
    below = [
        (each.position, index, each)
        for index, each in enumerate(recorded.values())
        if each.position is not None
        and commit.position is not None
        and each.position < commit.position
        and each.branch in (commit.branch, None)
    ]
    return max(below, key=lambda entry: entry[:2])[2] if below else None


def _builds_on(commit: Commit, other: Commit) -> bool:
    """Whether a commit is the later one of two of which one is an ancestor of the other.

    Their times decide only where parents and places on a line do not tell.
    """
    if commit.sha == other.sha:
        return commit.dirty is not None and other.dirty is None
    if commit.sha in other.parents or other.sha in commit.parents:
        return other.sha in commit.parents
    places = (commit.position, other.position)
    if commit.branch is not None and commit.branch == other.branch and None not in places:
        return (commit.position or 0) > (other.position or 0)
    return commit.committed_at > other.committed_at


def _places(commits: Mapping[str, Commit]) -> dict[str, tuple[int, int, int, int]]:
    """What to sort each commit by, given commits by SHA in the order of their first records."""
    children: dict[str, list[str]] = {}
    for sha, commit in commits.items():
        children.setdefault(_recorded_parent(commit, commits), []).append(sha)
    rank = {sha: index for index, sha in enumerate(commits)}
    places: dict[str, tuple[int, int, int, int]] = {}
    # Beside the roots come all others, since records that were made up may go round in circles.
    for root in [*children.get("", ()), *commits]:
        if root in places:
            continue
        depths = _depths(root, children)
        offset = _offset(depths, commits)
        for sha, depth in depths.items():
            position = commits[sha].position
            if offset is None:
                places[sha] = (1, rank[root], depth, rank[sha])
            else:
                places[sha] = (0, offset + depth if position is None else position, 0, rank[sha])
    return places


def _recorded_parent(commit: Commit, commits: Mapping[str, Commit]) -> str:
    """The SHA of the first parent where that is recorded, else an empty one."""
    parent = commit.parents[0] if commit.parents else ""
    return parent if parent in commits else ""


def _depths(root: str, children: Mapping[str, list[str]]) -> dict[str, int]:
    """How many first-parent steps each descendant of a commit is away from it."""
    depths = {root: 0}
    waiting = [root]
    while waiting:
        sha = waiting.pop()
        for child in children.get(sha, ()):
            if child not in depths:
                depths[child] = depths[sha] + 1
                waiting.append(child)
    return depths


def _offset(depths: Mapping[str, int], commits: Mapping[str, Commit]) -> int | None:
    """The position at depth 0, as the first commit that has a position tells it."""
    for sha, depth in depths.items():
        if (position := commits[sha].position) is not None:
            return position - depth
    return None
