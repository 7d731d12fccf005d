"""perfci compare: which of the runs of a commit count."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import scratch
from records import measurement, run

from perfci.history.model import Measurement, Status
from perfci.history.stores import open_store

_STEADY = (1000.0, 1001.0, 999.0)
_SLOW = tuple(2 * each for each in _STEADY)
_CALM = tuple(1000.0 + index for index in range(10))
_A, _B = "a" * 40, "b" * 40
_ONE, _TWO = "20260301T140500-4f1c0000", "20260302T140500-4f1d0000"


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """Two runs of one commit on one testbed, of which the second is slower."""
    root = scratch.quick(tmp_path / "root")
    with open_store(f"sqlite:///{root}/.perfci/history.db") as store:
        for run_id, means in ((_ONE, _STEADY), (_TWO, _SLOW)):
            store.add(run(measurement(means), run_id=run_id, sha=_A))
    return root


def test_a_runs_id_stands_for_that_run_alone(recorded: Path, call: Callable[..., Any]) -> None:
    ended = call(recorded, "compare", _ONE, _TWO)
    assert (ended.code, ended.out.endswith("\n1 slower\n")) == (1, True), ended.err
    ended = call(recorded, "compare", _TWO[:15], _ONE[:12], "--testbed", "bench")
    assert (ended.code, ended.out.endswith("\n1 faster\n")) == (0, True), ended.err


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ((_ONE, "20260303T"), 6, "no run '20260303T' in the store"),
        ((_ONE, "20260"), 9, "nothing is recorded at 20260: "),
        ((_ONE, _TWO, "--testbed", "other"), 9, f"run {_ONE} is of testbed 'bench', not 'other'"),
    ],
)
def test_a_run_that_is_not_there_is_said(
    recorded: Path, call: Callable[..., Any], arguments: tuple[str, ...], code: int, words: str
) -> None:
    scratch.git(recorded, "init", "-q")
    scratch.commit_all(recorded, "one")
    ended = call(recorded, "compare", *arguments)
    assert (ended.code, ended.out, ended.err.count("\n")) == (code, "", 1)
    assert words in ended.err


@pytest.mark.parametrize("arguments", [(_A, _A), (_TWO, _A), (_ONE, _ONE)])
def test_a_run_is_not_compared_with_itself(
    recorded: Path, call: Callable[..., Any], arguments: tuple[str, ...]
) -> None:
    scratch.git(recorded, "init", "-q")
    scratch.commit_all(recorded, "one")
    ended = call(recorded, "compare", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert "is on both sides: name two commits, or two other runs" in ended.err


def _recorded(root: Path, *rows: Measurement, trigger: str = "local") -> None:
    """Record a steady baseline, and a contender with these rows, each of a run, oldest first."""
    with open_store(f"sqlite:///{root}/.perfci/history.db") as store:
        store.add(run(measurement(_CALM), run_id="a", sha=_A))
        for hour, row in enumerate(rows):
            one = run(row, run_id=f"b{hour}", sha=_B)
            started_at = one.started_at + timedelta(hours=hour)
            last = trigger if hour == len(rows) - 1 else "local"
            store.add(replace(one, started_at=started_at, trigger=last))


_PASSED = measurement(_CALM)


def _ended(status: Status, message: str) -> Measurement:
    return measurement(status=status, message=message)


@pytest.mark.parametrize(
    "failed",
    [
        _ended(Status.RUNTIME_ERROR, "out of memory: tried to allocate 256 MiB (eager.py:9)"),
        _ended(Status.RUNTIME_ERROR, "passed 2 passes, then: killed by SIGKILL (out of memory?)"),
        _ended(Status.BUILD_FAILED, "nvcc: no space left on device"),
        _ended(Status.MISSING, "not timed: the other side has nothing to pair with"),
    ],
    ids=["memory", "killed", "build", "other side"],
)
def test_what_a_machine_lacked_counts_no_more_where_a_later_run_passed(
    tmp_path: Path, call: Callable[..., Any], failed: Measurement
) -> None:
    root = scratch.quick(tmp_path / "root")
    _recorded(root, failed, _PASSED)
    (row,) = json.loads(call(root, "compare", _A, _B, "--json").out)["comparisons"]
    assert (row["verdict"], row["contender_passes"]["count"]) == ("inconclusive", 10)
    words = f"{failed.status.value.replace('_', ' ')}: {failed.message} (run b0)"
    assert row["reason"].endswith(f"; failed before, not since: {words}")
    assert call(root, "compare", _A, _B).code == 0


@pytest.mark.parametrize(
    ("rows", "trigger", "code"),
    [
        ([_PASSED, _ended(Status.RUNTIME_ERROR, "out of memory")], "local", 9),
        ([_ended(Status.RUNTIME_ERROR, "out of memory"), _PASSED], "gate", 9),
        ([_ended(Status.RUNTIME_ERROR, "killed by SIGSEGV"), _PASSED], "local", 9),
        ([_ended(Status.TIMEOUT, "no answer within 60 s"), _PASSED], "local", 9),
        ([_ended(Status.INVALID_TIMING, "outputs are kept by content"), _PASSED], "local", 9),
        ([_ended(Status.WRONG_VALUES, "off by 3"), _PASSED], "local", 1),
        ([_ended(Status.NONDETERMINISTIC, "two of twenty differ"), _PASSED], "local", 1),
    ],
    ids=["later", "gate", "crash", "hang", "timing", "wrong", "nondeterministic"],
)
def test_no_other_failure_is_hidden_by_a_second_try(
    tmp_path: Path, call: Callable[..., Any], rows: list[Measurement], trigger: str, code: int
) -> None:
    root = scratch.quick(tmp_path / "root")
    _recorded(root, *rows, trigger=trigger)
    ended = call(root, "compare", _A, _B)
    assert (ended.code, "not since" in ended.out) == (code, False)


def test_a_cell_that_is_only_checked_is_right_where_it_ran_out_of_memory_before(
    tmp_path: Path, call: Callable[..., Any]
) -> None:
    root = scratch.quick(tmp_path / "root")
    failed, right = (
        measurement(case="odd", contract=None, status=status, message=message)
        for status, message in ((Status.RUNTIME_ERROR, "out of memory"), (Status.PASSED, ""))
    )
    _recorded(root, failed, right)
    both = json.loads(call(root, "compare", _A, _B, "--json", "--case", "odd").out)
    assert (both["comparisons"], both["checked"]) == ([], 1)
