"""Worktrees that outlive their process, in real repositories."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import gettempdir

import pytest

from perfci.history.commits import worktree

_HOLDS = """
import sys
from pathlib import Path
from perfci.history.commits import worktree
with worktree(Path(sys.argv[1]), "HEAD") as tree:
    print(tree, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def repository(repository, tmp_path, monkeypatch):
    """A repository with one commit, and a place of its own for temporary files."""
    place = tmp_path / "place"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setattr("tempfile.tempdir", None)
    assert gettempdir() == str(place)
    repository.commit()
    return repository


@contextmanager
def holding(root: Path) -> Iterator[tuple["subprocess.Popen[str]", Path]]:
    """A process that has a worktree, until its input ends."""
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDS, str(root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdout is not None
        yield program, Path(program.stdout.readline().rstrip("\n"))


def left_by_a_killed_process(root: Path) -> Path:
    with holding(root) as (program, tree):
        program.kill()
    assert (tree / "f").exists()
    return tree


def is_known(repository, tree: Path) -> bool:
    return f"worktree {tree}\n" in repository.git("worktree", "list", "--porcelain")


def make_next(repository) -> None:
    with worktree(repository.path, "HEAD") as tree:
        assert (tree / "f").exists()


def test_what_a_killed_process_has_left_goes(repository):
    tree = left_by_a_killed_process(repository.path)
    (tree / "built").mkdir()
    assert is_known(repository, tree)
    with worktree(repository.path, "HEAD"):
        assert not is_known(repository, tree)
        assert not tree.parent.exists()


def test_a_tree_that_git_has_not_come_to_complete_goes(repository):
    tree = left_by_a_killed_process(repository.path)
    (tree / ".git").unlink()
    repository.git("worktree", "lock", "--reason", "initializing", str(tree))
    make_next(repository)
    assert not is_known(repository, tree)
    assert not tree.parent.exists()


def test_what_a_living_process_holds_stays(repository):
    with holding(repository.path) as (program, tree):
        make_next(repository)
        assert is_known(repository, tree)
        assert (tree / "f").exists()
        program.communicate()
    assert program.returncode == 0
    assert not tree.parent.exists()


def test_worktrees_of_another_repository_stay(repository, make_repository):
    other = make_repository("other")
    other.commit()
    tree = left_by_a_killed_process(other.path)
    make_next(repository)
    assert is_known(other, tree)
    assert (tree / "f").exists()


@pytest.mark.parametrize(
    ("folder", "name", "has_lock"),
    [
        ("perfci-abcd1234", "0123456789ab", False),
        ("perfci-abcd1234", "mine", True),
        ("perfci-mine", "0123456789ab", True),
        ("elsewhere/perfci-abcd1234", "0123456789ab", True),
    ],
)
def test_worktrees_of_other_people_stay(repository, folder, name, has_lock):
    tree = Path(gettempdir()) / folder / name
    repository.git("worktree", "add", "-q", "--detach", str(tree), "HEAD")
    if has_lock:
        (tree.parent / "lock").touch()
    make_next(repository)
    assert is_known(repository, tree)
    assert (tree / "f").exists()


def test_a_link_out_of_the_place_is_not_followed(repository, tmp_path):
    tree = left_by_a_killed_process(repository.path)
    tree.parent.rename(tmp_path / "away")
    tree.parent.symlink_to(tmp_path / "away")
    make_next(repository)
    assert (tmp_path / "away" / tree.name / "f").exists()
    assert is_known(repository, tree)


def test_a_link_in_what_was_left_is_not_followed(repository, tmp_path):
    tree = left_by_a_killed_process(repository.path)
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").touch()
    (tree / "link").symlink_to(kept)
    (tree.parent / "link").symlink_to(kept)
    make_next(repository)
    assert (kept / "file").exists()
    assert not tree.parent.exists()


@pytest.mark.parametrize("part", ["tree", "lock"])
def test_a_link_in_place_of_a_part_is_not_followed(repository, tmp_path, part):
    tree = left_by_a_killed_process(repository.path)
    path = tree if part == "tree" else tree.parent / "lock"
    path.rename(tmp_path / "away")
    path.symlink_to(tmp_path / "away")
    make_next(repository)
    assert is_known(repository, tree)
    assert (tree / "f").exists()


def test_what_cannot_be_removed_stops_nothing(repository, tmp_path):
    tree = left_by_a_killed_process(repository.path)
    tree.rename(tmp_path / "away")
    tree.write_text("no folder")
    make_next(repository)
    assert is_known(repository, tree)
    tree.unlink()
    make_next(repository)
    assert not is_known(repository, tree)
