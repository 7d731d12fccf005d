"""Stores by the names that people give them: none is made by reading, and a new one is said."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import scratch
from records import rich_run

from perfci.history.codec import write_run_file

Call = Callable[..., Any]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with one kernel and two commits, and no store."""
    return scratch.two_commits(tmp_path / "root")


@pytest.mark.parametrize(
    "arguments",
    [
        ("show",),
        ("show", "HEAD"),
        ("explain", "axpb"),
        ("compare", "HEAD~1", "HEAD"),
        ("gate", "--base", "HEAD~1", "--out", "gate"),
        ("bisect", "HEAD~1", "HEAD"),
        ("history", "ls"),
        ("history", "export", "--out", "runs"),
        ("serve",),
    ],
)
def test_reading_makes_no_store(root: Path, call: Call, arguments: tuple[str, ...]) -> None:
    ended = call(root, *arguments, "--store", "a/tpyo.db")
    assert (ended.code, ended.out) == (6, "")
    assert ended.err.startswith("perfci: ")
    assert ended.err.endswith(
        f": {root}/a/tpyo.db: no such file, so nothing is recorded in it; name the right store "
        "with --store, or record something with perfci run\n"
    )
    assert ended.err.count("\n") == 1
    assert not (root / "a").exists()
    assert not (root / "runs").exists()


@pytest.mark.parametrize("arguments", [("show",), ("history", "ls"), ("serve",)])
def test_who_has_recorded_nothing_yet_is_told_how(
    root: Path, call: Call, arguments: tuple[str, ...]
) -> None:
    ended = call(root, *arguments)
    assert (ended.code, ended.out, ended.err.count("\n")) == (6, "", 1)
    assert ended.err.startswith(f"perfci: {root}/.perfci/history.db: no such file, ")
    assert "perfci run" in ended.err
    assert not (root / ".perfci").exists()


@pytest.mark.parametrize(
    ("code", "arguments"),
    [
        (2, ("run", "--kernel", "axpp")),
        (2, ("run", "--commit", "nowhere")),
        (0, ("run", "--range", "HEAD..HEAD")),
        (2, ("noise", "--kernel", "axpp")),
        (2, ("gate", "--base", "HEAD~1", "--kernel", "axpp")),
        (2, ("bisect", "HEAD~1", "HEAD", "--kernel", "axpb", "--variant", "x", "--case", "large")),
        (6, ("history", "import", "nowhere.json.gz")),
        (6, ("history", "import", "pyproject.toml")),
        (6, ("history", "import", "kernels")),
        (6, ("history", "sync")),
        (2, ("ci", "--runner", "a/b", "--input", "act=run")),
    ],
)
def test_what_fails_before_it_records_makes_no_store(
    root: Path, call: Call, code: int, arguments: tuple[str, ...]
) -> None:
    ended = call(root, *arguments, "--store", "a/new.db")
    assert ended.code == code, ended.err
    assert (ended.err.count("\n"), "no store" in ended.err) == (int(code > 0), False)
    assert not (root / "a").exists()


@pytest.mark.parametrize("arguments", [("run",), ("noise",), ("gate", "--base", "HEAD~1")])
def test_an_environment_that_fails_makes_none(
    root: Path, call: Call, arguments: tuple[str, ...]
) -> None:
    ended = call(root, *arguments, "--store", "a/new.db", CXX="/nowhere/c++")
    assert (ended.code, "/nowhere/c++" in ended.err) == (4, True), ended.err
    assert not (root / "a").exists()


def test_a_place_for_no_store_is_said_before_anything_is_measured(root: Path, call: Call) -> None:
    ended = call(root, "run", "--store", "pyproject.toml/new.db")
    assert (ended.code, ended.out, ended.err.count("\n")) == (6, "", 1)
    assert f"cannot write {root}/pyproject.toml/new.db: not a directory; name a st" in ended.err


def test_a_store_that_recording_makes_is_said_once(root: Path, call: Call) -> None:
    write_run_file(root.parent / "run.json.gz", rich_run("one"))
    said = f"there was no store yet: made sqlite:///{root}/new.db\n"
    for err in (said, ""):
        ended = call(root, "history", "import", "../run.json.gz", "--store", "new.db")
        assert (ended.code, ended.err) == (0, err)


def test_a_variable_that_cannot_be_is_named_with_what_can(root: Path, call: Call) -> None:
    for command in (("run",), ("compare", "HEAD~1", "HEAD")):
        ended = call(root, *command, PERFCI_PASSES="0")
        assert (ended.code, ended.out) == (3, "")
        assert ended.err == "perfci: PERFCI_PASSES=0: must be a whole number above 0\n"


@pytest.mark.parametrize("command", ["run", "noise"])
def test_so_is_one_that_measuring_makes(root: Path, command: str) -> None:
    ended = scratch.perfci(root, command, "--case", "large", "--passes", "3")
    assert ended.returncode == 0, ended.stderr
    said = f"there was no store yet: made sqlite:///{root}/.perfci/history.db"
    assert ended.stderr.splitlines().count(said) == 1
