from collections.abc import Sequence

from perfci.dashboard.snapshot import Place, Snapshot, take
from perfci.history.model import Run, Status, Verdict
from perfci.history.summary import cell, run_summary


def take_runs(runs: Sequence[Run], previous: Sequence[Run] = ()) -> Snapshot:
    cells = [cell(run.run_id, each) for run in (*previous, *runs) for each in run.measurements]
    return take([run_summary(run) for run in runs], [run_summary(run) for run in previous], cells)


PLAIN = Place("scale", "plain", "large", "cpu/1")


def test_a_cell_known_before_and_absent_now_is_kept_as_missing(make) -> None:
    before = make.run(
        0, [make.cell(), make.cell("gone"), make.cell("gone", case="odd", timer=None)]
    )
    snapshot = take_runs([make.run(1)], [before])
    rows = {row.variant: row for row in snapshot.tables["scale"]}
    assert set(rows["gone"].cells.values()) == {None}
    assert (rows["gone"].passed_count, len(rows["gone"].cells)) == (0, 2)
    gone = snapshot.comparisons[Place("scale", "gone", "large", "cpu/1")]
    assert gone.verdict is Verdict.MISSING


def test_a_slower_cell_is_a_regression(make) -> None:
    slower = make.run(1, [make.cell(latency_ns=20_000.0)])
    assert take_runs([slower], [make.run(0)]).comparisons[PLAIN].verdict is Verdict.REGRESSION


def test_the_first_commit_is_compared_with_nothing(make) -> None:
    assert take_runs([make.run(0)]).comparisons == {}


def test_of_several_runs_the_newest_that_has_a_cell_is_shown(make) -> None:
    newest = make.run(0, [make.cell("other")], attempt=3)
    middle = make.run(0, [make.cell(latency_ns=5_000.0)], attempt=2)
    snapshot = take_runs([newest, middle, make.run(0)])
    rows = {row.variant: row for row in snapshot.tables["scale"]}
    shown = rows["plain"].cells[PLAIN]
    assert shown is not None
    assert shown.run_id == middle.run_id
    assert set(rows) == {"plain", "other"}


def test_skipped_cells_are_no_checks_and_failed_ones_have_not_passed(make) -> None:
    cells = [
        make.cell(),
        make.cell(case="odd", timer=None),
        make.cell(case="wide", timer=None, status=Status.SKIPPED, message="too wide", error=None),
        make.cell(case="tiny", timer=None, status=Status.WRONG_VALUES, message="off"),
    ]
    row = take_runs([make.run(0, cells)]).tables["scale"][0]
    assert (row.passed_count, row.skipped_count, len(row.cells)) == (2, 1, 4)


def test_the_worst_error_is_the_largest_beside_the_yardsticks(make) -> None:
    cells = [make.cell(error=1e-4), make.cell(case="odd", timer=None, error=3e-4)]
    worst = take_runs([make.run(0, cells)]).tables["scale"][0].worst_error
    assert worst is not None
    assert worst.case == "odd"
    bare = take_runs([make.run(0, [make.cell(error=None)])]).tables["scale"][0]
    assert bare.worst_error is None
