from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perfci.history.commits import commit_range, read_commit
from perfci.history.model import BISECT_TRIGGER, GATE_TRIGGER, Commit
from perfci.history.order import line_order, on_line, previous_on_line
from perfci.history.summary import run_summary

COMMIT = Commit(sha="0" * 40, committed_at=datetime(2026, 1, 1, tzinfo=UTC))


@pytest.fixture
def recorded(make_run):
    """Runs of commits that are given as ``name``, ``position``, ``parent``, in that order."""

    def build(*commits):
        runs = []
        for hours, (name, position, parent) in enumerate(commits):
            run = make_run(f"r{hours}", sha=name * 40, hours=hours)
            commit = replace(
                run.commit,
                position=position,
                parents=(parent * 40,) if parent else (),
                # The clock runs backwards.
                committed_at=run.commit.committed_at - timedelta(days=hours),
            )
            runs.append(replace(run, commit=commit))
        return runs

    return build


def order(runs):
    return "".join(commit.sha[0] for commit in line_order(runs))


def test_positions_decide_not_the_clock(recorded):
    runs = recorded(("c", 2, ""), ("a", 0, ""), ("d", 3, ""), ("b", 1, ""))
    assert order(runs) == "abcd"
    assert order([run_summary(run) for run in runs]) == "abcd"


@pytest.mark.parametrize("trigger", [GATE_TRIGGER, BISECT_TRIGGER])
def test_what_only_a_gate_or_a_bisection_has_measured_is_on_no_line(recorded, trigger):
    first, gated, last = recorded(("a", 0, ""), ("b", 1, ""), ("c", 2, ""))
    gated = replace(gated, trigger=trigger)
    assert order([first, gated, last]) == "ac"
    assert order([first, gated, last, replace(gated, run_id="r9", trigger="push")]) == "abc"


def test_commits_of_one_position_stay_in_the_order_of_their_first_record(recorded):
    runs = recorded(("f", 5, ""), ("b", 6, ""), ("e", 5, ""), ("f", 5, ""))
    assert order(runs) == "feb"
    assert order(reversed(runs)) == "feb"


def test_commits_without_a_position_take_it_from_neighbours(recorded):
    runs = recorded(
        ("d", None, "c"), ("c", None, "b"), ("b", 4, "a"), ("e", 7, ""), ("a", None, "")
    )
    assert order(runs) == "abcde"


def test_chains_without_any_position_stand_at_the_end(recorded):
    runs = recorded(
        ("d", None, "c"), ("f", None, "e"), ("a", 100, ""), ("c", None, "b"), ("e", None, "")
    )
    assert order(runs) == "acdef"


def test_a_position_that_a_later_run_knows_is_used(recorded):
    runs = recorded(("b", None, ""), ("a", 1, ""), ("b", 2, ""))
    (a, b) = line_order(runs)
    assert (a.position, b.position) == (1, 2)


def test_dirty_trees_are_not_on_the_line(make_run):
    runs = [make_run("r1", dirty="0123456789abcdef"), make_run("r2", sha="b" * 40)]
    assert [on_line(run.commit) for run in runs] == [False, True]
    assert order(runs) == "b"


def test_no_runs_no_order():
    assert line_order([]) == []


NAMES = st.sampled_from("abcdef")


@given(st.dictionaries(NAMES, st.tuples(st.none() | st.integers(0, 5), st.none() | NAMES)))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_made_up_records_lose_no_commit_and_end(recorded, commits):
    # Circles, parents that are not there, contradicting positions: whatever a file may hold.
    runs = recorded(*[(name, *rest) for name, rest in commits.items()])
    assert sorted(order(runs)) == sorted(commits)


def test_ten_thousand_commits_of_shallow_clones(make_run):
    summary = run_summary(make_run())
    runs = [
        replace(
            summary,
            run_id=f"r{n}",
            commit=replace(
                summary.commit, sha=f"{n:040x}", position=None, parents=(f"{n - 1:040x}",)
            ),
        )
        for n in range(1, 10_001)
    ]
    assert [commit.sha for commit in line_order(reversed(runs))] == [run.commit.sha for run in runs]


# The one before


def commit(name, position=None, parent="", **others):
    parents = (parent * 40,) if parent else ()
    return replace(COMMIT, sha=name * 40, position=position, parents=parents, **others)


def test_the_parent_comes_before_any_position():
    parent = commit("a")
    assert previous_on_line(commit("c", 9, "a"), [parent, commit("b", 8)]) == parent


def test_else_the_highest_position_below_on_the_same_branch():
    candidates = [
        commit("a", 3, branch="main"),
        commit("b", 5, branch="main"),
        commit("c", 6, branch="side"),
        commit("d", 7, branch="main"),
        commit("e", 8, branch="main"),
        commit("f", None, branch="main"),
    ]
    assert previous_on_line(commit("0", 7, "9", branch="main"), candidates).sha[0] == "b"
    unnamed = commit("1", 6, branch=None)
    assert previous_on_line(commit("0", 7, branch="main"), [*candidates, unnamed]) == unnamed


def test_of_one_position_the_last():
    pair = [commit("a", 3), commit("b", 3)]
    assert previous_on_line(commit("c", 4), pair) == pair[1]


def test_nothing_before():
    assert previous_on_line(commit("a", 0), [commit("b", 0), commit("c", 4)]) is None
    assert previous_on_line(commit("a"), [commit("b", 0)]) is None
    assert previous_on_line(commit("a", 5), []) is None
    same = commit("a", 3)
    assert previous_on_line(same, [same]) is None


def test_dirty_trees_are_nobodys_predecessor():
    dirty = commit("a", 3, dirty="0123456789abcdef")
    assert previous_on_line(commit("b", 4, "a"), [dirty]) is None


def test_a_dirty_tree_comes_after_its_own_commit():
    clean = commit("a", 3)
    dirty = replace(clean, dirty="0123456789abcdef")
    assert previous_on_line(dirty, [commit("b", 2), clean]) == clean
    assert previous_on_line(dirty, [commit("b", 2)]).sha[0] == "b"


# With a real repository


def test_the_order_of_a_repository_and_of_shallow_clones_of_it(repository, make_run):
    shas = [repository.commit(f"c{n}", at=1_700_000_000 - n) for n in range(6)]
    commits = [read_commit(repository.path, sha) for sha in shas[:3]]
    # Each later commit is measured in a clone that holds nothing else.
    for sha in shas[3:]:
        repository.git("branch", "-f", "tip", sha)
        clone = repository.clone(f"clone-{sha[:6]}", "--depth=1", "--branch=tip")
        commits.append(read_commit(clone.path, "HEAD"))
        assert commits[-1].position is None
    runs = [replace(make_run(f"r{n}", hours=-n), commit=each) for n, each in enumerate(commits)]
    assert [each.sha for each in line_order(runs)] == shas
    assert commit_range(repository.path, f"{shas[0]}..main") == shas[1:]
    assert previous_on_line(commits[5], commits).sha == shas[4]
