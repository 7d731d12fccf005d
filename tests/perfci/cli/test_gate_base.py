"""perfci gate: what a head is judged by, and what is said where there is no such base."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import scratch


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return scratch.on_topic(tmp_path / "root")


def test_the_working_tree_is_judged_by_the_commit_it_lies_on(
    root: Path, call: Callable[..., Any]
) -> None:
    (root / "kernels/axpb/plain.cpp").write_text(f"// what it does\n{scratch.PLAIN}")
    ended = call(root, "gate", "--base", "HEAD")
    assert ended.code == 0, ended.err
    assert "+dirty · one" in ended.out
    assert "3 cells run the same code" in ended.out


def test_a_detached_head_is_judged_by_main(root: Path, call: Callable[..., Any]) -> None:
    (root / "README.md").write_text("A kernel.\n")
    scratch.commit_all(root, "Read me")
    scratch.git(root, "switch", "-q", "--detach")
    ended = call(root, "gate")
    assert ended.code == 0, ended.err
    assert "merge base of HEAD and main" in ended.out


def test_the_branch_that_the_remote_names_is_what_is_merged_into(
    root: Path, call: Callable[..., Any]
) -> None:
    scratch.git(root, "branch", "-m", "main", "trunk")
    clone = root.parent / "clone"
    scratch.git(root, "switch", "-q", "trunk")
    scratch.git(root.parent, "clone", "-q", str(root), str(clone))
    scratch.git(clone, "switch", "-q", "-c", "mine")
    scratch.commit_all(clone, "Nothing")
    ended = call(clone, "gate")
    assert ended.code == 0, ended.err
    assert "merge base of HEAD and origin/trunk" in ended.out


def _unrelated(root: Path) -> list[str]:
    scratch.git(root, "checkout", "-q", "--orphan", "alien")
    scratch.commit_all(root, "Another beginning")
    return []


def _older(root: Path) -> list[str]:
    scratch.commit_all(root, "two")
    scratch.git(root, "switch", "-q", "main")
    scratch.commit_all(root, "beside")
    return ["--base", "topic"]


def _swapped(root: Path) -> list[str]:
    scratch.commit_all(root, "two")
    return ["--base", "HEAD", "--head", "main"]


@pytest.mark.parametrize(
    ("prepare", "code", "words"),
    [
        (lambda _: [], 2, "are the same commit"),
        (lambda _: ["--base", "HEAD"], 2, "nothing to judge"),
        (lambda _: ["--base", "nowhere"], 2, "no commit 'nowhere'"),
        (lambda _: ["--head", "--all"], 2, "'--all' is no commit"),
        (_unrelated, 2, "have no common ancestor"),
        (_older, 2, "topic is no ancestor of HEAD"),
        (_swapped, 2, "did you mean --base main --head HEAD?"),
    ],
    ids=["same", "same by name", "no base", "no head", "unrelated", "no ancestor", "swapped"],
)
def test_what_has_no_base_is_one_line(
    root: Path,
    call: Callable[..., Any],
    prepare: Callable[[Path], list[str]],
    code: int,
    words: str,
) -> None:
    ended = call(root, "gate", *prepare(root))
    assert (ended.code, ended.out) == (code, "")
    assert ended.err.startswith("perfci: ")
    assert ended.err.count("\n") == 1
    assert words in ended.err


def test_a_shallow_clone_is_named(root: Path, call: Callable[..., Any]) -> None:
    for name in ("two", "three"):
        scratch.commit_all(root, name)
    scratch.git(root, "switch", "-q", "main")
    scratch.commit_all(root, "beside")
    clone = root.parent / "clone"
    url = f"file://{root}"
    scratch.git(root.parent, "clone", "-q", "--depth", "1", "--no-single-branch", url, str(clone))
    ended = call(clone, "gate", "--head", "origin/topic")
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert "fetch the rest with `git fetch --unshallow`" in ended.err


def test_a_repository_without_commits_or_none_at_all_is_named(
    tmp_path: Path, call: Callable[..., Any]
) -> None:
    root = scratch.quick(tmp_path / "root")
    scratch.write_kernel(root)
    ended = call(root, "gate")
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert "is in no git repository" in ended.err
    scratch.git(root, "init", "-q")
    assert "the repository has no commits yet" in call(root, "gate").err


def test_without_a_branch_to_merge_into_the_base_must_be_named(
    root: Path, call: Callable[..., Any]
) -> None:
    scratch.git(root, "branch", "-D", "main")
    scratch.commit_all(root, "two")
    ended = call(root, "gate")
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert "name the base with --base REV" in ended.err
    assert call(root, "gate", "--base", "HEAD~1").code == 0
