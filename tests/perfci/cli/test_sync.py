"""perfci history sync: what it says, and with which exit code."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import scratch
from records import rich_run
from remotes import BRANCH, Checkout, Clone, files_in, make_remote, write_hook

Call = Callable[..., Any]


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return make_remote(tmp_path)


@pytest.fixture
def clone(tmp_path: Path, remote: Path) -> Clone:
    return Clone.make(tmp_path / "clone", remote)


def _sync(call: Call, clone: Clone, *arguments: str) -> Any:
    store = f"{clone.path.parent}/{clone.path.name}.db"
    return call(clone.path, "history", "sync", "--since", "2026", "--store", store, *arguments)


def test_it_counts_what_went_out_and_came_in(
    call: Call, tmp_path: Path, remote: Path, clone: Clone
) -> None:
    clone.record(rich_run("r1"), rich_run("r2"), rich_run("d", dirty="d1"))
    ended = _sync(call, clone)
    assert (ended.code, ended.out) == (
        0,
        "2 runs sent, 0 received; 1 of a dirty tree stays here\n",
    )
    other = Clone.make(tmp_path / "other", remote)
    ended = _sync(call, other)
    assert (ended.code, ended.out) == (0, "0 runs sent, 2 received\n")
    assert "receive: 2 of 2 (r2)" in ended.err


def test_json_names_them(call: Call, tmp_path: Path, remote: Path, clone: Clone) -> None:
    clone.record(rich_run("r1"), rich_run("d", dirty="d1"))
    ended = _sync(call, clone, "--json")
    assert json.loads(ended.out) == {
        "sent": ["r1"],
        "received": [],
        "refused": [],
        "foreign": [],
        "kept_back": ["d"],
    }


def test_the_branch_and_the_direction_are_chosen(call: Call, remote: Path, clone: Clone) -> None:
    clone.record(rich_run("r1"))
    assert _sync(call, clone, "--only", "receive").out == "0 runs sent, 0 received\n"
    assert _sync(call, clone, "--only", "send", "--branch", "figures").code == 0
    assert files_in(remote, "figures-2026") == ["2026-03/r1.json.gz"]
    assert scratch.git(remote, "for-each-ref", "--format=%(refname)") == "refs/heads/figures-2026"


def test_another_remote(call: Call, tmp_path: Path, remote: Path, clone: Clone) -> None:
    (tmp_path / "far").mkdir()
    far = make_remote(tmp_path / "far")
    scratch.git(clone.path, "remote", "add", "far", str(far))
    clone.record(rich_run("r1"))
    assert _sync(call, clone, "--remote", "far").code == 0
    assert _sync(call, clone).out == "1 run sent, 0 received\n"
    assert files_in(far) == files_in(remote) == ["2026-03/r1.json.gz"]


def test_a_file_that_nobody_sent_is_named_and_is_no_error(
    call: Call, remote: Path, clone: Clone
) -> None:
    checkout = Checkout(remote)
    for index in range(30):
        checkout.write(f"README.{index:02d}", b"")
    checkout.push()
    clone.record()
    ended = _sync(call, clone)
    assert ended.code == 0
    lines = ended.err.splitlines()
    assert lines[0] == f"perfci: {BRANCH}:README.00: no run file; left"
    assert lines[-1] == "perfci: … and 10 more; --json has all"
    assert len(lines) == 21


def test_a_run_that_cannot_be_exchanged_is_an_error(call: Call, remote: Path, clone: Clone) -> None:
    other = Clone.make(remote.parent / "other", remote)
    other.record(rich_run("r1"))
    assert _sync(call, other).code == 0
    clone.record(replace(rich_run("r1"), duration_s=99.0), rich_run("r2"))
    ended = _sync(call, clone)
    assert (ended.code, ended.out) == (6, "1 run sent, 0 received, 1 refused\n")
    assert f"\nperfci: {BRANCH}:2026-03/r1.json.gz: " in ended.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ("--remote", "upstream"),
            "has no remote 'upstream' (there are origin): add it with git remote add upstream URL",
        ),
        (("--branch", "a..b"), "'a..b' is no name for a branch"),
        (("--branch", "a*"), "'a*' is no name for a branch"),
        (("--branch", "a b\n"), "is no name for a branch"),
        (("--branch", ""), "'' is no name for a branch"),
    ],
)
def test_what_cannot_be_meant_is_one_line(
    call: Call, clone: Clone, arguments: tuple[str, ...], says: str
) -> None:
    clone.record()
    ended = _sync(call, clone, *arguments)
    assert ended.code == 6
    assert says in ended.err
    assert len(ended.err.splitlines()) == 1


def test_a_push_that_is_refused_is_one_line(call: Call, remote: Path, clone: Clone) -> None:
    write_hook(remote, "pre-receive", "exit 1")
    clone.record(rich_run("r1"))
    ended = _sync(call, clone)
    assert ended.code == 6
    (line,) = [each for each in ended.err.splitlines() if each.startswith("perfci: ")]
    assert line == (
        f"perfci: branch {BRANCH} of origin cannot be pushed to: [remote rejected] (pre-receive "
        "hook declined); see to it that it is there and that you may read and push"
    )


def test_outside_of_a_repository_it_says_so(call: Call, tmp_path: Path) -> None:
    ended = call(tmp_path, "history", "sync")
    assert ended.code == 2
    assert "is in no git repository: it has no remote to sync with" in ended.err
