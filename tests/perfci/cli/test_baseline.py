"""Baselines: pinned by hand, with a reason, and never otherwise."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import scratch

from perfci.gate.baselines import read_baselines


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = scratch.quick(tmp_path / "root")
    scratch.write_kernel(root)
    scratch.git(root, "init", "-q")
    scratch.commit_all(root, "one")
    return root


def test_a_baseline_is_pinned_with_its_reason_and_the_last_one_counts(
    root: Path, call: Callable[..., Any]
) -> None:
    first = scratch.git(root, "rev-parse", "HEAD")
    reason = 'First "release"\n[[pinned]] \x1b[31m'
    assert call(root, "baseline", "pin", "HEAD", "--reason", reason).code == 0
    second = scratch.commit_all(root, "two")
    ended = call(root, "baseline", "pin", "main", "--reason", "The second")
    assert ended.out == f"pinned {second[:10]} in baselines.toml: commit that file\n"
    kept = read_baselines(root)
    assert [each.commit for each in kept] == [first, second]
    assert kept[0].reason == 'First "release" [[pinned]] \ufffd[31m'
    shown = call(root, "baseline", "show").out.splitlines()
    assert shown[0].startswith(f"{second[:10]}  ")
    assert shown[0].endswith("Z  The second")
    assert len(shown) == 2


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["pin", "HEAD"], 2, "Missing option '--reason'"),
        (["pin", "HEAD", "--reason", " "], 2, "pinned for a reason: give one"),
        (["pin", "nowhere", "--reason", "why"], 2, "no commit 'nowhere'"),
        (["show"], 9, "pin one with perfci baseline pin REV --reason TEXT"),
    ],
)
def test_what_cannot_be_pinned_or_shown_is_one_line(
    root: Path, call: Callable[..., Any], arguments: list[str], code: int, words: str
) -> None:
    ended = call(root, "baseline", *arguments)
    assert ended.code == code
    assert words in ended.err
    assert not (root / "baselines.toml").exists()


@pytest.mark.parametrize(
    "text", ["[[pinned]]\ncommit = 'a'\n", "pinned = 3\n", "[[pinned]\n", "pinned = [1]\n"]
)
def test_a_file_that_nobody_could_have_pinned_is_named(
    root: Path, call: Callable[..., Any], text: str
) -> None:
    (root / "baselines.toml").write_text(text)
    for arguments in (["show"], ["pin", "HEAD", "--reason", "why"]):
        ended = call(root, "baseline", *arguments)
        assert (ended.code, ended.err.count("\n")) == (3, 1)
        assert "baselines.toml: " in ended.err
