"""A clone as pipelines make it, of one commit, made as deep as a question takes: real remotes."""

from pathlib import Path

import pytest
import scratch

from perfci.ci import clone
from perfci.history import commits
from perfci.history.errors import CommitError


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    """A bare remote; what is pushed to it comes from ``work`` beside it."""
    work, bare = tmp_path / "work", tmp_path / "remote.git"
    work.mkdir()
    scratch.git(work, "init", "-q")
    scratch.git(tmp_path, "init", "-q", "--bare", str(bare))
    scratch.git(work, "remote", "add", "origin", str(bare))
    return bare


def _grow(remote: Path, count: int, message: str = "main") -> str:
    work = remote.parent / "work"
    for number in range(count):
        sha = scratch.commit_all(work, f"{message} {number}")
    scratch.git(work, "push", "-q", "origin", "HEAD")
    return sha


def _branch(remote: Path, name: str) -> None:
    scratch.git(remote.parent / "work", "switch", "-q", "-c", name)


def _clone(remote: Path, branch: str = "main") -> Path:
    """A clone of the last commit of a branch and no more, as actions/checkout makes it."""
    path = remote.parent / "clone"
    depth = ("--depth=1", "--no-tags", "--branch", branch)
    scratch.git(remote.parent, "clone", "-q", *depth, f"file://{remote}", str(path))
    assert commits.is_shallow(path)
    return path


@pytest.mark.parametrize(("before", "after"), [(3, 2), (70, 3), (3, 70)])
def test_a_merge_base_is_found_as_deep_as_it_lies(remote: Path, before: int, after: int) -> None:
    _grow(remote, 2)
    fork = _grow(remote, 1)
    _branch(remote, "topic")
    head = _grow(remote, after, "topic")
    scratch.git(remote.parent / "work", "switch", "-q", "main")
    tip = _grow(remote, before)
    path = _clone(remote, "topic")
    with pytest.raises(CommitError):
        commits.resolve(path, tip)
    base = clone.ask_deepened(path, [head, tip], lambda: commits.merge_base(path, head, tip))
    assert base == fork


def test_no_more_is_fetched_than_it_takes(remote: Path) -> None:
    _grow(remote, 120)
    fork = _grow(remote, 1)
    _branch(remote, "topic")
    head = _grow(remote, 2, "topic")
    path = _clone(remote, "topic")
    base = clone.ask_deepened(path, [head, fork], lambda: commits.merge_base(path, head, fork))
    assert base == fork
    assert commits.is_shallow(path)
    assert len(scratch.git(path, "rev-list", head).split()) == clone.DEPTHS[0]


def test_no_merge_base_is_said_once_all_is_here(remote: Path) -> None:
    tip = _grow(remote, 3)
    scratch.git(remote.parent / "work", "switch", "-q", "--orphan", "alien")
    head = _grow(remote, 3, "alien")
    path = _clone(remote, "alien")
    with pytest.raises(CommitError, match="have no common ancestor: nothing to compare against"):
        clone.ask_deepened(path, [head, tip], lambda: commits.merge_base(path, head, tip))
    assert not commits.is_shallow(path)


def test_a_commit_is_fetched_by_its_sha_and_kept(remote: Path) -> None:
    first = _grow(remote, 1)
    _grow(remote, 2)
    path = _clone(remote)
    assert not clone.has_commit(path, first)
    clone.fetch_commit(path, first)
    assert clone.has_commit(path, first)
    scratch.git(path, "gc", "-q", "--prune=now")
    assert clone.has_commit(path, first)


def test_a_branch_is_looked_up_by_its_whole_name(remote: Path) -> None:
    _grow(remote, 1)
    _branch(remote, "fix/main")
    other = _grow(remote, 1, "other")
    path = _clone(remote, "fix/main")
    assert clone.fetch_tip(path, "fix/main") == other
    assert clone.fetch_tip(path, "main") != other
    for name in ("nowhere", "ma*", "--upload-pack=touch x", "a\nb", "$(touch x)"):
        with pytest.raises(CommitError, match=r"cannot be looked up|has no branch"):
            clone.fetch_tip(path, name)
    assert not (path / "x").exists()


def test_a_branch_is_where_it_was_last_seen_where_the_remote_is_out_of_reach(remote: Path) -> None:
    tip = _grow(remote, 2)
    _branch(remote, "topic")
    _grow(remote, 1, "topic")
    path = remote.parent / "clone"
    scratch.git(remote.parent, "clone", "-q", f"file://{remote}", str(path))
    remote.rename(remote.with_name("gone.git"))
    assert clone.fetch_tip(path, "main") == tip
    with pytest.raises(CommitError, match="branch nowhere of origin cannot be looked up"):
        clone.fetch_tip(path, "nowhere")


def test_what_cannot_be_fetched_says_what_to_do(remote: Path) -> None:
    head = _grow(remote, 3)
    path = _clone(remote)
    with pytest.raises(CommitError, match=r"commit 1111111111 cannot be fetched: .*fetch-depth: 0"):
        clone.fetch_commit(path, "1" * 40)
    remote.rename(remote.with_name("gone.git"))
    with pytest.raises(CommitError, match="50 commits of history cannot be fetched"):
        clone.ask_deepened(path, [head], lambda: commits.resolve(path, "HEAD~2"))


def test_a_fetch_runs_no_hook_and_nothing_of_the_checkout(remote: Path, tmp_path: Path) -> None:
    first = _grow(remote, 1)
    _grow(remote, 60)
    path = _clone(remote)
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in ("reference-transaction", "post-checkout", "pre-auto-gc", "post-merge"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
        (hooks / name).chmod(0o755)
    scratch.git(path, "config", "core.hooksPath", str(hooks))
    scratch.git(path, "config", "fetch.recurseSubmodules", "true")
    clone.fetch_commit(path, first)
    clone.complete(path)
    assert not commits.is_shallow(path)
    assert not (tmp_path / "ran").exists()
