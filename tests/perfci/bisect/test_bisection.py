"""The search for the first bad commit, in repositories of all shapes."""

import math
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import planted
import pytest
import scratch

from perfci.bisect.bisection import Likeness, Rank, Search, narrow
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


def _line_of(count: int) -> Rank:
    """The order in which a line of so many commits is searched, earlier ones first among equals."""
    names = [f"{number:02}" for number in range(count)]

    def rank_line(bad: str, goods: Sequence[str]) -> list[str]:
        suspects = [each for each in names if max(goods) < each <= bad]
        evenly = {
            each: -min(place, len(suspects) - place) for place, each in enumerate(suspects, 1)
        }
        return sorted(suspects, key=lambda each: evenly[each])

    return rank_line


@pytest.mark.parametrize("first", ["01", "08", "14", "33", "40"])
def test_a_stretch_that_cannot_be_tested_is_left_soon(first: str) -> None:
    broken = {f"{number:02}" for number in range(16, 27)}
    known: list[tuple[str, Likeness]] = []
    while (sha := narrow("00", "40", known, _line_of(41)).choose()) is not None:
        likeness = Likeness.BAD if sha >= first else Likeness.GOOD
        known.append((sha, Likeness.SKIPPED if sha in broken else likeness))
    assert narrow("00", "40", known, _line_of(41)).suspects == (first,)
    # Neighbour after neighbour it would have been all eleven and then five.
    assert len(known) <= 10
