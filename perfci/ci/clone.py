"""Makes a clone deep enough for a question. Pipelines clone one commit; a merge base takes more.

Fetches go by SHA, so that no name from outside is a ref here. They run no hooks and no submodules,
write no FETCH_HEAD, and keep what they brought under ``refs/perfci/``, or it would be lost.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from perfci.ci.event import require_sha
from perfci.history import commits
from perfci.history.errors import CommitError
from perfci.history.git import ask_git, run_git
from perfci.history.text import one_line
from perfci.units import count_things

T = TypeVar("T")

DEPTHS = (50, 500, 5000)
"""How many commits of each line are asked for in turn, before all of them are."""

_REMOTE = "origin"
_NO_SUCH_BRANCH = 2
"""What `git ls-remote --exit-code` exits with where it finds nothing."""

_FETCH = (
    "fetch",
    "--quiet",
    "--no-tags",
    "--no-auto-maintenance",
    "--no-recurse-submodules",
    "--no-write-fetch-head",
    "--refmap=",
)


def ask_deepened(root: Path, tips: Sequence[str], question: Callable[[], T]) -> T:
    """The answer to a question about some commits, of a clone that is deepened until it knows.

    ``question`` raises CommitError where the clone may hold too little. Raises the last of these
    where all that the remote has does not help, CommitError where it cannot be reached.
    """
    for sha in tips:
        fetch_commit(root, sha)
    for depth in (*DEPTHS, None):
        try:
            return question()
        except CommitError:
            if not commits.is_shallow(root):
                raise
        _deepen(root, tips, depth)
    return question()


def fetch_commit(root: Path, sha: str) -> None:
    """Bring a commit into the clone, as shallow as that is. Raises CommitError where it cannot."""
    if has_commit(root, sha):
        return
    depth = ["--depth=1"] if commits.is_shallow(root) else []
    _fetch(root, [*depth, _REMOTE, _kept(sha)], f"commit {sha[:10]}")


def has_commit(root: Path, sha: str) -> bool:
    """Whether the clone holds a commit."""
    return ask_git(root, "cat-file", "-e", f"{require_sha(sha)}^{{commit}}").status == 0


def fetch_tip(root: Path, branch: str) -> str:
    """The SHA at which the remote has a branch, brought into the clone.

    Where a job may not reach the remote, it is where the clone last saw the branch. Raises
    CommitError where there is none such.
    """
    name = f"refs/heads/{branch}"
    answer = ask_git(root, "ls-remote", "--exit-code", _REMOTE, name)
    shown = one_line(branch, limit=100)
    if answer.status == _NO_SUCH_BRANCH:
        raise CommitError(f"{_REMOTE} has no branch {shown}")
    if answer.status != 0:
        try:
            return commits.resolve(root, f"refs/remotes/{_REMOTE}/{branch}")
        except CommitError:
            reason = f"branch {shown} of {_REMOTE} cannot be looked up: {answer.complaint}"
        raise CommitError(reason)
    # A pattern matches from the end of a name as well; only the name itself is meant.
    found = [line.split("\t") for line in answer.output.splitlines()]
    sha = next((sha for sha, known in found if known == name), None)
    if sha is None:
        raise CommitError(f"{_REMOTE} has no branch {shown}")
    fetch_commit(root, sha)
    return sha


def complete(root: Path) -> None:
    """Bring in all of the history that leads to here. Raises CommitError where that fails."""
    if commits.is_shallow(root):
        _deepen(root, [commits.resolve(root, "HEAD")], None)


def _deepen(root: Path, tips: Sequence[str], depth: int | None) -> None:
    amount = "--unshallow" if depth is None else f"--depth={depth}"
    what = (
        "the rest of the history"
        if depth is None
        else f"{count_things(depth, 'commit')} of history"
    )
    _fetch(root, [amount, _REMOTE, *(_kept(sha) for sha in tips)], what)


def _kept(sha: str) -> str:
    """What fetches a commit, and the ref by which it is kept."""
    return f"+{require_sha(sha)}:refs/perfci/{sha}"


def _fetch(root: Path, arguments: Sequence[str], what: str) -> None:
    try:
        run_git(root, *_FETCH, *arguments)
    except CommitError as error:
        raise CommitError(
            f"{what} cannot be fetched: {error}; where the job may not reach the remote, let its "
            "checkout fetch all (fetch-depth: 0)"
        ) from None
