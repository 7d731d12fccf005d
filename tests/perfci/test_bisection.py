"""The search for the first bad commit, in repositories of all shapes."""

import math
from collections.abc import Callable, Collection
from pathlib import Path

import planted
import pytest
import scratch

from perfci.bisection import Likeness, Search, narrow
from perfci.history import commits
from perfci.history.midpoints import rank


def _line(root: Path) -> tuple[str, str]:
    shas = [scratch.commit_all(root, f"{number}") for number in range(14)]
    return shas[0], shas[-1]


def _merged(root: Path) -> tuple[str, str]:
    """Two branches that were merged, one of them from before the good commit."""
    scratch.commit_all(root, "root")
    scratch.git(root, "branch", "early")
    good = scratch.commit_all(root, "good")
    scratch.git(root, "branch", "late")
    scratch.commit_all(root, "main 1")
    for branch in ("early", "late"):
        scratch.git(root, "switch", "-q", branch)
        for number in range(3):
            scratch.commit_all(root, f"{branch} {number}")
        scratch.git(root, "switch", "-q", "main")
        planted.merge(root, branch, f"merge {branch}")
        scratch.commit_all(root, f"after {branch}")
    return good, scratch.commit_all(root, "bad")


def _search(
    root: Path, good: str, bad: str, first: str, untestable: Collection[str] = ()
) -> tuple[Search, int]:
    """Search with an oracle that knows the first bad commit; how many were looked at."""
    known: list[tuple[str, Likeness]] = []
    while True:
        search = narrow(good, bad, known, lambda end, goods: rank(root, end, goods))
        sha = search.choose()
        if sha is None:
            return search, len(known)
        assert sha not in dict(known)
        is_bad = commits.is_ancestor(root, first, sha)
        likeness = Likeness.BAD if is_bad else Likeness.GOOD
        known.append((sha, Likeness.SKIPPED if sha in untestable else likeness))


@pytest.fixture(params=[_line, _merged])
def history(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, str, str]:
    make: Callable[[Path], tuple[str, str]] = request.param
    scratch.git(tmp_path, "init", "-q")
    return (tmp_path, *make(tmp_path))


def test_every_first_bad_commit_is_found_merges_too(history: tuple[Path, str, str]) -> None:
    root, good, bad = history
    candidates = rank(root, bad, [good])
    most = math.ceil(math.log2(len(candidates))) + 1
    for first in candidates:
        search, steps = _search(root, good, bad, first)
        assert search.suspects == (first,)
        assert steps <= most


def test_skipped_commits_leave_a_range_only_where_they_touch(
    history: tuple[Path, str, str],
) -> None:
    root, good, bad = history
    candidates = rank(root, bad, [good])
    for first in candidates:
        for skipped in [each for each in candidates if each != bad]:
            search, _ = _search(root, good, bad, first, {skipped})
            assert first in search.suspects
            assert set(search.suspects) <= {first, skipped, search.bad}
            if len(search.suspects) == 1:
                assert search.suspects == (first,)


def test_what_cannot_be_tested_is_left_behind_with_its_neighbours(tmp_path: Path) -> None:
    scratch.git(tmp_path, "init", "-q")
    shas = [scratch.commit_all(tmp_path, f"{number}") for number in range(41)]
    broken = set(shas[15:26])
    _, steps = _search(tmp_path, shas[0], shas[-1], shas[33], broken)
    assert steps <= 10
    search, _ = _search(tmp_path, shas[0], shas[-1], shas[20], broken)
    assert set(search.suspects) == {*broken, shas[26]}
