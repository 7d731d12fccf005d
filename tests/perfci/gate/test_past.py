"""A head beside what was recorded before it."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
import records
import scratch

from perfci.decision.compare import Side, key_of
from perfci.gate.past import Failed, Past, find_failed, find_marks, read_past
from perfci.history.model import Measurement, Run, Status, Verdict
from perfci.history.stores import open_store
from perfci.history.summary import cell, run_summary


def _run(name: str, sha: str, mean_ns: float, *, passes: int = 6, dirty: str | None = None) -> Run:
    means_ns = [mean_ns * (1.0 + 1e-4 * index) for index in range(passes)]
    run = records.run(records.measurement(means_ns), run_id=name, sha=sha * 40)
    return replace(run, commit=replace(run.commit, dirty=dirty))


def _past(tmp_path: Path, recorded: list[Run], head: Run) -> Past:
    after = Side([run_summary(head)], [cell(head.run_id, row) for row in head.measurements])
    with open_store(f"sqlite:///{tmp_path}/history.db") as store:
        for run in (*recorded, head):
            store.add(run)
        marks = {"v1.0": "a" * 40, "the pinned baseline": "e" * 40}
        return read_past(store, after, marks, threshold=0.05, floors={})


def test_what_crept_up_since_a_release_is_found(tmp_path: Path) -> None:
    recorded = [_run("r1", "a", 1000.0), _run("r2", "b", 1150.0)]
    past = _past(tmp_path, recorded, _run("r3", "c", 1200.0))
    (since,) = past.since  # nothing is recorded of the pinned one
    assert (since.name, since.commit.sha) == ("v1.0", "a" * 40)
    (compared,) = since.comparisons
    assert compared.verdict is Verdict.REGRESSION


def test_the_best_is_the_lowest_that_enough_passes_of_a_clean_tree_had(tmp_path: Path) -> None:
    recorded = [
        _run("r1", "a", 1000.0),
        _run("r2", "b", 900.0),
        _run("r4", "d", 500.0, passes=2),
        _run("r5", "d", 400.0, dirty="0123"),
    ]
    (best,) = _past(tmp_path, recorded, _run("r3", "c", 990.0)).best
    assert best.commit.sha == "b" * 40
    assert 1.09 < best.ratio < 1.11


def test_marks_are_the_last_release_and_the_pinned_baseline(tmp_path: Path) -> None:
    scratch.git(tmp_path, "init", "-q")
    first = scratch.commit_all(tmp_path, "one")
    assert find_marks(tmp_path, first, None) == {}
    scratch.git(tmp_path, "tag", "v1.0")
    second = scratch.commit_all(tmp_path, "two")
    marks = find_marks(tmp_path, second, first[:12])
    assert marks == {"v1.0": first, "the pinned baseline": first}
    assert find_marks(tmp_path, second, "f" * 40)["the pinned baseline"] == "f" * 40


_RIGHT = records.measurement((1000.0, 1001.0))
_WRONG = records.measurement(status=Status.WRONG_VALUES, message="off by 3\nat [0]")
_LEFT_OUT = records.measurement(status=Status.MISSING, message="not timed: the other side …")
_LATE = records.measurement(status=Status.TIMEOUT, message="took 60 s")


def _failed(tmp_path: Path, *recorded: Measurement, **fields: object) -> tuple[Failed, ...]:
    """What is known to fail of a cell at a base with these rows, each of a run, oldest first."""
    with open_store(f"sqlite:///{tmp_path}/history.db") as store:
        for number, row in enumerate(recorded):
            run = records.run(row, run_id=f"r{number}", sha="a" * 40)
            commit = replace(run.commit, dirty=fields.get("dirty"))
            started_at = run.started_at + timedelta(hours=number)
            store.add(replace(run, commit=commit, started_at=started_at))
        key = key_of(cell("", _WRONG), records.environment(str(fields.get("testbed", "bench"))))
        return find_failed(store, str(fields.get("sha", "a" * 40)), [key])


def test_a_cell_that_failed_when_the_base_was_last_measured_is_known(tmp_path: Path) -> None:
    (failed,) = _failed(tmp_path, _RIGHT, _WRONG)
    assert (failed.status, failed.run_id) == (Status.WRONG_VALUES, "r1")
    assert failed.reason == "wrong values: off by 3"


@pytest.mark.parametrize(
    ("recorded", "run_id"),
    [
        ([], None),
        ([_WRONG, _RIGHT], None),
        ([_WRONG, _LATE], "r1"),
        ([_WRONG, _LEFT_OUT], "r0"),
        ([_WRONG, records.measurement((1.0,), variant="other")], "r0"),
        ([records.measurement(status=Status.SKIPPED, message="not here")], None),
    ],
)
def test_the_newest_run_that_says_anything_of_a_cell_counts(
    tmp_path: Path, recorded: list[Measurement], run_id: str | None
) -> None:
    assert [each.run_id for each in _failed(tmp_path, *recorded)] == ([run_id] if run_id else [])


@pytest.mark.parametrize(
    "elsewhere", [{"testbed": "other"}, {"sha": "b" * 40}, {"sha": "a" * 7}, {"dirty": "0123"}]
)
def test_what_failed_elsewhere_is_not_known_of_the_base(
    tmp_path: Path, elsewhere: dict[str, str]
) -> None:
    assert _failed(tmp_path, _WRONG, **elsewhere) == ()
