"""Which commits lie between a good and a bad one, those that halve them best first.

As git itself bisects: any history, merges and the branches that they brought in included. Nothing
of the repository is written, neither its refs nor a state of its own.
"""

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from perfci.history import commits
from perfci.history.errors import CommitError
from perfci.history.git import run_git


def rank(root: Path, bad: str, goods: Iterable[str]) -> list[str]:
    """The commits that ``bad`` has and none of ``goods`` has, by how evenly each parts them.

    ``bad`` itself is among them. Raises CommitError.
    """
    listing = run_git(root, "rev-list", "--bisect-all", bad, "--not", *goods)
    return [line.split(" ", 1)[0] for line in listing.splitlines()]


def require_ancestor(root: Path, good: str, bad: str) -> None:
    """CommitError where one commit is not an older one that the other builds on, or may not be."""
    if commits.resolve(root, good) == commits.resolve(root, bad):
        raise CommitError(f"{good} and {bad} are the same commit: nothing lies between them")
    if not commits.is_ancestor(root, good, bad):
        if commits.is_shallow(root):
            raise CommitError(f"{good}..{bad} may be cut off here: {commits.UNSHALLOW}")
        if commits.is_ancestor(root, bad, good):
            raise CommitError(f"{good} builds on {bad}: give the good commit first, then the bad")
        common = commits.merge_base(root, good, bad)
        raise CommitError(
            f"{good} is no ancestor of {bad}: give a good commit that {bad} builds on, such as "
            f"their merge base {common[:10]}"
        )
    if commits.is_cut_off(root, good, bad):
        raise CommitError(f"{good}..{bad} is cut off here: {commits.UNSHALLOW}")


def authored_at(root: Path, sha: str) -> datetime | None:
    """When a commit was written, by its author's clock; None where git cannot say."""
    try:
        return datetime.fromisoformat(run_git(root, "show", "-s", "--format=%aI", sha))
    except ValueError:
        return None
