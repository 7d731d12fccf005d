"""Recorded runs by what a person calls them: a revision, a dirty tree, a run's id."""

import re
from contextlib import suppress
from pathlib import Path

from perfci.errors import MissingError, UsageError
from perfci.history import commits
from perfci.history.errors import CommitError
from perfci.history.model import Commit, RunSummary
from perfci.history.order import head_first, is_whole
from perfci.history.stores import Store
from perfci.history.text import one_line

_RECENT = 100
_ID = re.compile(r"\d{8}T(?:\d{0,6}|\d{6}-[0-9a-f]{0,8})", re.ASCII)
"""A run's id, or enough of its beginning that it is not that of a SHA."""


def find_run(
    store: Store, where: Path, *, revision: str | None, run_id: str | None, testbed: str | None
) -> RunSummary:
    """The run of that id, or the newest at a revision, or without one the newest of all.

    What looks like an id, or its beginning, is one also as ``revision``, unless git knows a commit
    by that name. The newest is by itself: a side of a gate or a bisection has what had to be
    measured. Where there are only sides, it is the head's.

    Raises UsageError where an id is given beside others, MissingError where there is none.
    """
    if revision is not None and run_id is None and _is_id(where, revision):
        revision, run_id = None, revision
    if run_id is not None:
        if revision or testbed:
            raise UsageError("an id names a run by itself; leave out SHA and --testbed")
        return _run_with(store, run_id)
    if revision is not None:
        found = runs_at(store, where, revision, testbed=testbed)
        return next((run for run in found if is_whole(run)), found[0])
    newest = store.runs(testbed=testbed, studies=False, limit=_RECENT)
    if not newest:
        of = f" of testbed '{testbed}'" if testbed else ""
        raise MissingError(f"{store.url} holds no runs{of} yet: record one with perfci run")
    return next((run for run in newest if is_whole(run)), head_first(newest)[0])


def runs_of(
    store: Store, where: Path, name: str, *, testbed: str | None = None
) -> list[RunSummary]:
    """The run whose id a name is, or its beginning, else the runs of the commit, as ``runs_at``.

    Raises MissingError where there are none, or none on that testbed.
    """
    if not _is_id(where, name):
        return runs_at(store, where, name, testbed=testbed)
    run = _run_with(store, name)
    own = run.environment.testbed
    if testbed not in (None, own):
        raise MissingError(f"run {run.run_id} is of testbed '{own}', not '{testbed}'")
    return [run]


def runs_at(
    store: Store, where: Path, revision: str, *, testbed: str | None = None
) -> list[RunSummary]:
    """The runs of a commit, newest first, without studies of noise.

    Raises MissingError where there are none.
    ``revision`` is whatever git understands, or a SHA's beginning where git does not know it.
    ``REV+dirty`` means the newest dirty tree at that commit, ``REV+DIGEST`` a certain one.
    """
    revision = one_line(revision)
    name, plus, digest = revision.partition("+")
    sha = _sha(where, name)
    found = [
        run
        for run in store.runs(sha_prefix=sha, testbed=testbed, studies=False)
        if _is_wanted(run, plus, digest)
    ]
    if plus and digest == "dirty" and found:
        found = [run for run in found if run.commit.dirty == found[0].commit.dirty]
    shas = sorted({run.commit.sha for run in found})
    if len(shas) > 1:
        raise CommitError(
            f"{name} is the beginning of {len(shas)} recorded commits; give more of it"
        )
    if not found:
        at = f" on testbed '{testbed}'" if testbed else ""
        how = "perfci run" if plus else f"perfci run --commit {name}"
        raise MissingError(
            f"nothing is recorded at {revision}{at}: measure it with {how}, or see "
            "perfci history ls"
        )
    return found


def newest_run_of(store: Store, commit: Commit, testbed: str) -> RunSummary:
    """The newest run of a commit, or of the dirty tree that it is. MissingError without one."""
    found = [
        run
        for run in store.runs(sha_prefix=commit.sha, testbed=testbed, studies=False)
        if run.commit.sha == commit.sha and run.commit.dirty == commit.dirty
    ]
    if not found:
        tree = commit.sha[:10] if commit.dirty is None else f"this dirty tree at {commit.sha[:10]}"
        raise MissingError(
            f"nothing is recorded of {tree} on testbed '{testbed}': record it with perfci run, "
            "or give --out DIR"
        )
    return found[0]


def _run_with(store: Store, run_id: str) -> RunSummary:
    run = store.run(run_id)
    runs = store.runs(sha_prefix=run.commit.sha)
    return next(each for each in runs if each.run_id == run.run_id)


def _is_id(where: Path, name: str) -> bool:
    """Whether a name is that of a run; a branch or tag may have one of the same look."""
    if not _ID.fullmatch(name):
        return False
    root = commits.repository_root(where)
    with suppress(CommitError):
        if root is not None:
            commits.resolve(root, name)
            return False
    return True


def _is_wanted(run: RunSummary, plus: str, digest: str) -> bool:
    if not plus:
        return run.commit.dirty is None
    if run.commit.dirty is None:
        return False
    return digest == "dirty" or (bool(digest) and run.commit.dirty.startswith(digest))


def _sha(where: Path, name: str) -> str:
    """The SHA that a name stands for: git's answer, else the name if it could be a SHA's start."""
    root = commits.repository_root(where)
    looks_like_sha = len(name) >= 4 and all(each in "0123456789abcdef" for each in name.lower())
    if root is not None:
        try:
            return commits.resolve(root, name)
        except CommitError:
            if not looks_like_sha:
                raise
    if not looks_like_sha:
        raise CommitError(f"{name!r} is no commit: give a SHA or its beginning")
    return name.lower()
