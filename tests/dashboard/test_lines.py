from collections.abc import Sequence
from dataclasses import replace

from perfci.dashboard.branches import order_branch
from perfci.dashboard.lines import History, describe_change, trace
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
