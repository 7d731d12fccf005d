"""Which commits lie between two, and what has none between them."""

from pathlib import Path

import pytest
import scratch

from perfci.history.errors import CommitError
from perfci.history.midpoints import authored_at, rank, require_ancestor


@pytest.fixture
def root(tmp_path: Path) -> Path:
    scratch.git(tmp_path, "init", "-q")
    return tmp_path


def test_the_commit_that_parts_the_others_most_evenly_comes_first(root: Path) -> None:
    shas = [scratch.commit_all(root, f"{number}") for number in range(9)]
    ranked = rank(root, shas[8], [shas[0]])
    assert set(ranked) == set(shas[1:])
    assert ranked[0] == shas[4]
    assert set(rank(root, shas[4], [shas[0], shas[2]])) == set(shas[3:5])


def test_ends_that_have_nothing_between_them_are_refused_in_a_line(root: Path) -> None:
    old = scratch.commit_all(root, "old")
    scratch.git(root, "branch", "aside")
    new = scratch.commit_all(root, "new")
    require_ancestor(root, old, new)
    with pytest.raises(CommitError, match="the same commit"):
        require_ancestor(root, new, "HEAD")
    with pytest.raises(CommitError, match="give the good commit first"):
        require_ancestor(root, new, old)
    scratch.git(root, "switch", "-q", "aside")
    other = scratch.commit_all(root, "other")
    with pytest.raises(CommitError, match=f"merge base {old[:10]}"):
        require_ancestor(root, new, other)


def test_a_shallow_clone_is_no_history_to_search(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    scratch.git(root, "init", "-q")
    shas = [scratch.commit_all(root, f"{number}") for number in range(4)]
    clone = tmp_path / "clone"
    scratch.git(tmp_path, "clone", "-q", "--depth", "2", f"file://{root}", str(clone))
    require_ancestor(clone, shas[2], shas[3])
    with pytest.raises(CommitError, match="git fetch --unshallow"):
        require_ancestor(clone, shas[0], shas[3])


def test_the_author_has_a_clock_of_their_own(root: Path) -> None:
    scratch.git(root, "commit", "-q", "--allow-empty", "-m", "a", "--date", "2020-02-03T04:05:06Z")
    written = authored_at(root, "HEAD")
    assert written is not None
    assert written.isoformat() == "2020-02-03T04:05:06+00:00"
