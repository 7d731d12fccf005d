from collections.abc import Sequence
from dataclasses import replace

from perfci.dashboard.branches import order_branch
from perfci.dashboard.lines import (
    MOST_DRAWN,
    PEER,
    History,
    choose_variants,
    describe_change,
    order_variants,
    set_apart,
    trace,
)
from perfci.history.model import Run, Status
from perfci.history.summary import cell, run_summary


def trace_runs(runs: Sequence[Run]) -> History:
    newest_first = sorted(runs, key=lambda run: run.started_at, reverse=True)
    summaries = [run_summary(run) for run in newest_first]
    cells = [cell(run.run_id, each) for run in newest_first for each in run.measurements]
    return trace(summaries, cells, order_branch(summaries, "main"))


def statuses(history: History, variant: str) -> list[str | None]:
    line = next(line for line in history.lines if line.variant == variant)
    return [None if point is None else point.status.value for point in line.points]


def test_a_cell_that_is_gone_is_missing_and_one_not_yet_seen_is_nothing(make) -> None:
    both = [make.cell("old"), make.cell("new")]
    history = trace_runs(
        [make.run(0, [make.cell("old")]), make.run(1, both), make.run(2, [make.cell("new")])]
    )
    assert statuses(history, "old") == ["passed", "passed", "missing"]
    assert statuses(history, "new") == [None, "passed", "passed"]


def test_a_commit_that_a_testbed_did_not_measure_is_no_missing_cell(make) -> None:
    runs = [make.run(index, testbed="a") for index in range(3)]
    runs += [make.run(0, testbed="b"), make.run(2, testbed="b")]
    history = trace_runs(runs)
    assert [line.testbed for line in history.lines] == ["a", "b"]
    assert [point is None for point in history.lines[1].points] == [False, True, False]


def test_a_failure_is_kept_with_its_status(make) -> None:
    failed = make.cell(status=Status.TIMEOUT, message="no answer", error=None)
    assert statuses(trace_runs([make.run(0), make.run(1, [failed])]), "plain") == [
        "passed",
        "timeout",
    ]


def test_the_newest_run_that_has_the_cell_stands_for_its_commit(make) -> None:
    partial = make.run(0, [make.cell("other")], attempt=3)
    history = trace_runs([make.run(0), make.run(0, attempt=2), partial])
    point = next(line for line in history.lines if line.variant == "plain").points[0]
    assert point is not None
    assert (point.run.attempt, point.attempts) == (2, 3)


def test_a_dirty_tree_never_stands_for_its_commit(make) -> None:
    dirty = make.run(0, [make.cell(latency_ns=1.0)], dirty="d" * 8, attempt=5)
    point = trace_runs([make.run(0), dirty]).lines[0].points[0]
    assert point is not None
    assert point.run.commit.dirty is None


def test_a_change_of_the_environment_is_marked_once(make) -> None:
    runs = [make.run(index) for index in range(4)]
    driver = make.environment(driver="580")
    runs[2:] = [replace(run, environment=driver) for run in runs[2:]]
    events = trace_runs(runs).events
    assert [(event.index, event.what) for event in events] == [(2, "driver none → 580")]


def test_the_same_environment_is_no_change(make) -> None:
    assert describe_change(make.environment(), make.environment()) == ""


def with_workload(run: Run, digest: str) -> Run:
    cells = tuple(replace(each, workload_digest=digest) for each in run.measurements)
    return replace(run, measurements=cells)


def test_a_change_of_the_workload_is_marked_where_it_happens(make) -> None:
    failed = make.cell(status=Status.TIMEOUT, message="no answer", error=None)
    runs = [
        with_workload(make.run(0), "old"),
        with_workload(make.run(1, []), "old"),
        with_workload(make.run(2, [failed]), "new"),
        with_workload(make.run(3), "new"),
    ]
    history = trace_runs(runs)
    assert [(each.index, each.testbed) for each in history.breaks] == [(2, "bench")]
    assert history.lines[0].segments == [[0], [3]]


def test_the_same_workload_is_no_break(make) -> None:
    history = trace_runs([make.run(0), make.run(1), make.run(2)])
    assert history.breaks == ()
    assert history.lines[0].segments == [[0, 1, 2]]


def test_commits_that_no_testbed_shown_has_measured_are_left_out(make) -> None:
    summaries = [run_summary(make.run(index)) for index in (2, 0)]
    history = trace(summaries, [], [make.commit(index) for index in range(3)])
    assert [commit.position for commit in history.commits] == [0, 2]


def test_an_environment_changes_only_where_there_is_a_line(make) -> None:
    runs = [make.run(index, testbed="a") for index in range(2)]
    other = [make.run(index, [], testbed="b") for index in range(2)]
    other[1] = replace(other[1], environment=make.environment("b", driver="580"))
    assert trace_runs([*runs, *other]).events == ()


def test_of_many_variants_the_peer_and_the_last_fastest_are_chosen(make) -> None:
    names = [f"v{index}" for index in range(12)]
    early = [make.cell(name, latency_ns=1e4 - index) for index, name in enumerate(names)]
    late = [make.cell(name, latency_ns=1e3 + index) for index, name in enumerate(names)]
    slow = make.cell(PEER, latency_ns=9e9)
    lines = trace_runs([make.run(0, [*early, slow]), make.run(1, [*late, slow])]).lines
    chosen = choose_variants(lines)
    assert chosen == (*names[: MOST_DRAWN - 1], PEER)
    assert order_variants(lines) == [*chosen, *names[MOST_DRAWN - 1 :]]


def test_a_variant_that_never_passed_is_the_first_to_be_left_out(make) -> None:
    bad = make.cell("bad", status=Status.TIMEOUT, message="no answer", error=None)
    cells = [bad, *(make.cell(f"v{index}") for index in range(MOST_DRAWN))]
    lines = trace_runs([make.run(0, cells)]).lines
    assert "bad" not in choose_variants(lines)
    assert choose_variants(lines[:3]) == ("bad", "v0", "v1")


def test_runs_set_apart_have_their_cells_and_no_others(make) -> None:
    dirty = make.run(1, [make.cell("a"), make.cell("b")], dirty="d" * 8)
    empty = make.run(2, [], dirty="e" * 8)
    cells = [cell(dirty.run_id, each) for each in dirty.measurements]
    (apart,) = set_apart([run_summary(empty), run_summary(dirty)], cells)
    assert apart.run.run_id == dirty.run_id
    assert list(apart.points) == ["a", "b"]
