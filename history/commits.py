"""Commits of a git repository: which one is meant, what is known of it, what lies between two.

The order of commits is the first-parent line's, and no wrong answer is given where a shallow
clone holds too little of it.
"""

import fcntl
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from perfci.history.dirty import tree_difference
from perfci.history.errors import CommitError
from perfci.history.git import ask_git, run_git
from perfci.history.hold import hold
from perfci.history.leftovers import PREFIX, remove_left, remove_worktree
from perfci.history.model import Commit
from perfci.history.text import one_line

_FULL_SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_GIVEN_SHA = re.compile(r"[0-9a-f]{7,64}")
_COMMITTED = re.compile(r"^committer .*> (-?\d+) [+-]\d+$", re.MULTILINE)
_BRANCH_PREFIX = "refs/heads/"
_REMOTE_PREFIX = "refs/remotes/"
UNSHALLOW = "the clone is shallow: fetch the rest with `git fetch --unshallow`"
"""What to do about a clone that holds too little."""


def repository_root(path: Path) -> Path | None:
    """The top folder of the working tree that holds a path; None where there is no such tree.

    Raises CommitError where git refuses to say, as for a repository of another user.
    """
    answer = ask_git(path, "rev-parse", "--show-toplevel")
    if answer.status == 0:
        return Path(answer.output)
    if re.search("not a git repository|must be run in a work tree", answer.complaint):
        return None
    raise CommitError(f"{one_line(str(path))}: {answer.complaint}")


def is_shallow(root: Path) -> bool:
    """Whether the clone's history is cut off. Raises CommitError where there is no repository."""
    return run_git(root, "rev-parse", "--is-shallow-repository") == "true"


def resolve(root: Path, revision: str) -> str:
    """The full SHA of the commit that a revision (branch, tag, abbreviated SHA, …) names.

    Raises CommitError where it names none or several.
    """
    shown = one_line(repr(revision), limit=100)
    if not revision or revision.startswith("-"):
        raise CommitError(f"{shown} is no commit: give a SHA, a branch or a tag")
    commit = f"{revision}^{{commit}}"
    answer = ask_git(root, "rev-parse", "--verify", "--end-of-options", commit)
    if answer.status == 0 and _FULL_SHA.fullmatch(answer.output):
        return answer.output
    where = one_line(str(root))
    if "is ambiguous" in answer.complaint:
        raise CommitError(f"{shown} names several objects in {where}: give more of its digits")
    if is_shallow(root):
        raise CommitError(f"no commit {shown} in {where}: {UNSHALLOW}, or check the spelling")
    if not run_git(root, "rev-list", "--all", "--max-count=1"):
        raise CommitError(f"no commit {shown} in {where}: the repository has no commits yet")
    raise CommitError(f"no commit {shown} in {where}: check the spelling, or `git fetch` it first")


def read_commit(root: Path, revision: str, *, branch: str | None = None) -> Commit:
    """What is known of a commit, its working tree aside.

    Parents are those of the commit itself, also where a shallow clone does not hold them.
    ``branch`` is the name to record; by default the current branch if the commit is on its
    first-parent line. Raises CommitError.
    """
    sha = resolve(root, revision)
    header, _, message = run_git(root, "cat-file", "commit", sha).partition("\n\n")
    lines = header.split("\n")
    count = 0 if is_shallow(root) else int(_first_parent_count(root, sha))
    return Commit(
        sha=sha,
        committed_at=_committed_at(sha, header),
        parents=tuple(line.split(" ")[1] for line in lines if line.startswith("parent ")),
        position=count - 1 if count else None,
        branch=_current_branch(root, sha) if branch is None else one_line(branch),
        subject=_subject(message),
    )


def head(root: Path) -> Commit:
    """The commit that is checked out, with the digest of what the working tree adds to it.

    Raises CommitError where there is none yet.
    """
    return replace(read_commit(root, "HEAD"), dirty=tree_difference(root))


def explicit_commit(sha: str) -> Commit:
    """A commit of which no more than its SHA is known, as outside of a repository.

    Its time is now, since a record has one. Raises CommitError where the text is no SHA.
    """
    if not _GIVEN_SHA.fullmatch(sha.lower()):
        shown = one_line(repr(sha), limit=100)
        raise CommitError(
            f"{shown} is no commit: outside of a repository give 7 to 64 hexadecimal digits"
        )
    return Commit(sha=sha.lower(), committed_at=datetime.now(UTC))


def commit_range(root: Path, text: str) -> list[str]:
    """The SHAs of ``A..B``: B's first-parent line without what A holds, oldest first.

    Raises CommitError where the text is no such range, or the clone does not hold all of it.
    """
    first, last = _range_ends(text)
    start, end = resolve(root, first), resolve(root, last)
    if not is_ancestor(root, start, end):
        if is_shallow(root):
            raise CommitError(f"{first}..{last} may be cut off here: {UNSHALLOW}")
        hint = f"; did you mean {last}..{first}?" if is_ancestor(root, end, start) else ""
        raise CommitError(
            f"{first} is no ancestor of {last}: a range A..B goes from an older commit "
            f"to a newer one that builds on it{hint}"
        )
    listing = run_git(root, "rev-list", "--first-parent", "--reverse", end, f"^{start}")
    commits = listing.split()
    if _shallow_boundary(root).intersection(commits):
        raise CommitError(f"{first}..{last} is cut off here: {UNSHALLOW}")
    return commits


def is_cut_off(root: Path, older: str, newer: str) -> bool:
    """Whether a shallow clone lacks some of what a commit has beyond an older one."""
    boundary = _shallow_boundary(root)
    return bool(boundary.intersection(run_git(root, "rev-list", newer, f"^{older}").split()))


def merge_base(root: Path, a: str, b: str) -> str:
    """The SHA of the best common ancestor of two revisions.

    Raises CommitError where there is none, or where a shallow clone may hide a better one.
    """
    first, second = resolve(root, a), resolve(root, b)
    answer = ask_git(root, "merge-base", first, second)
    boundary = _shallow_boundary(root)
    if answer.status != 0:
        if boundary:
            raise CommitError(f"the merge base of {a} and {b} is not here: {UNSHALLOW}")
        raise CommitError(f"{a} and {b} have no common ancestor: nothing to compare against")
    base = answer.output
    if boundary.intersection(run_git(root, "rev-list", first, second, f"^{base}").split()):
        raise CommitError(f"the merge base of {a} and {b} may not be here: {UNSHALLOW}")
    return base


def is_ancestor(root: Path, older: str, newer: str) -> bool:
    """Whether a commit is an ancestor of another, or that one itself."""
    return ask_git(root, "merge-base", "--is-ancestor", older, newer).status == 0


def default_branch(root: Path, usual: Sequence[str]) -> str:
    """The branch that others are merged into: ``origin/main``, or ``main`` without a remote.

    It is the one that the remote names as its HEAD, else the first of the ``usual`` names that the
    remote or this clone has. Raises CommitError where there is none of them.
    """
    named = ask_git(root, "symbolic-ref", "--quiet", f"{_REMOTE_PREFIX}origin/HEAD").output
    references = [named] if named.startswith(_REMOTE_PREFIX) else []
    references += [f"{_REMOTE_PREFIX}origin/{name}" for name in usual]
    references += [f"{_BRANCH_PREFIX}{name}" for name in usual]
    for each in references:
        if ask_git(root, "rev-parse", "--verify", "--quiet", f"{each}^{{commit}}").status == 0:
            return each.removeprefix(_REMOTE_PREFIX).removeprefix(_BRANCH_PREFIX)
    raise CommitError(
        f"no branch to compare with: neither origin/HEAD nor {' nor '.join(usual)} is here; "
        "name the base with --base REV"
    )


def line_of(root: Path, sha: str, branch: str) -> str:
    """The name of the line that a commit that is to be merged into a branch is filed under.

    That is the branch's own name only where its first-parent line holds the commit, else the
    current branch's, else one that no branch can have. ``branch`` is as by ``default_branch``.
    """
    name = branch.removeprefix("origin/")
    if sha in run_git(root, "rev-list", "--first-parent", resolve(root, branch)).split():
        return one_line(name)
    current = _current_branch(root, sha)
    if current is None or current == name:
        return f"{one_line(name)}..{sha[:10]}"
    return current


def is_unchanged(root: Path, path: Path, base: str, head: str | None) -> bool:
    """Whether a path holds the same in the working tree, in a commit and, if given, in another."""
    inside = f":(literal){path.relative_to(root)}"
    for ends in ([base], [base, head] if head is not None else []):
        if ask_git(root, "diff", "--quiet", *ends, "--", inside).status != 0:
            return False
    return not run_git(root, "ls-files", "--others", "--exclude-standard", "--", inside)


def last_tag(root: Path, sha: str) -> str | None:
    """The nearest tag that a commit or one of its ancestors has; None without any."""
    answer = ask_git(root, "describe", "--tags", "--abbrev=0", sha)
    return answer.output if answer.status == 0 else None


@contextmanager
def worktree(root: Path, revision: str) -> Iterator[Path]:
    """A temporary working tree of a commit, gone afterwards; without hooks and submodules.

    Those that killed processes have left in the repository go first. Raises CommitError where it
    cannot be made.
    """
    sha = resolve(root, revision)
    with TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as folder:
        path = Path(folder).resolve() / sha[:12]
        lock = hold(path.parent)  # before git knows the tree: no time to take it for left
        try:
            with _one_at_a_time(root):
                remove_left(root)
                run_git(root, "worktree", "add", "--quiet", "--detach", str(path), sha)
            yield path
        finally:
            with _one_at_a_time(root):
                remove_worktree(root, path)
            os.close(lock)


@contextmanager
def _one_at_a_time(root: Path) -> Iterator[None]:
    """Wait for other perfcis: git gives up where another's tree is half made or half gone."""
    folder = os.open(root / run_git(root, "rev-parse", "--git-common-dir"), os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _range_ends(text: str) -> tuple[str, str]:
    shown = one_line(text, limit=100)
    if "..." in text:
        raise CommitError(f"{shown}: '...' has no order; write A..B, the older commit first")
    first, dots, last = text.partition("..")
    if not dots:
        raise CommitError(f"{shown}: a range is written A..B; for one commit: {shown}~1..{shown}")
    if not first or not last:
        raise CommitError(f"{shown}: a range is written A..B with a commit on each side")
    return first, last


def _shallow_boundary(root: Path) -> set[str]:
    """The commits at which a shallow clone is cut off: their parents are not there."""
    path = root / run_git(root, "rev-parse", "--git-path", "shallow")
    return set(path.read_text().split()) if path.exists() else set()


def _first_parent_count(root: Path, sha: str) -> str:
    return run_git(root, "rev-list", "--count", "--first-parent", sha)


def _current_branch(root: Path, sha: str) -> str | None:
    """The branch that is checked out, if its first-parent line holds the commit."""
    reference = ask_git(root, "symbolic-ref", "--quiet", "HEAD").output
    if not reference.startswith(_BRANCH_PREFIX):
        return None
    line = run_git(root, "rev-list", "--first-parent", "HEAD").split()
    return one_line(reference.removeprefix(_BRANCH_PREFIX)) if sha in line else None


def _committed_at(sha: str, header: str) -> datetime:
    found = _COMMITTED.search(header)
    try:
        return datetime.fromtimestamp(int(found[1] if found else ""), UTC)
    except (ValueError, OverflowError, OSError):
        raise CommitError(f"commit {sha} has no date that can be read") from None


def _subject(message: str) -> str:
    """The first line of a message, whatever bytes are in it."""
    first = message.lstrip("\n").partition("\n")[0]
    return one_line(first.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))
