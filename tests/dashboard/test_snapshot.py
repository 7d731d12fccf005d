import math
from collections.abc import Sequence
from dataclasses import replace

from perfci.dashboard.branches import order_branch
from perfci.dashboard.lines import PEER
from perfci.dashboard.snapshot import Place, Snapshot, error_ratio, take
from perfci.history.model import Metric, Run, Status, Verdict
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
    assert (rows["gone"].passed_count, rows["gone"].check_count) == (0, 2)
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
    assert (row.passed_count, row.skipped_count, row.check_count) == (2, 1, 3)


def test_a_case_with_several_timers_is_one_check(make) -> None:
    timed = [make.cell(timer=timer) for timer in ("cold", "hot", "host")]
    row = take_runs([make.run(0, timed)]).tables["scale"][0]
    assert (row.passed_count, row.check_count) == (1, 1)
    timed[1] = make.cell(timer="hot", status=Status.INVALID_TIMING, message="empty graph")
    row = take_runs([make.run(0, timed)]).tables["scale"][0]
    assert (row.passed_count, row.check_count) == (0, 1)


def test_the_worst_error_is_the_largest_beside_the_yardsticks(make) -> None:
    cells = [make.cell(error=1e-4), make.cell(case="odd", timer=None, error=3e-4)]
    worst = take_runs([make.run(0, cells)]).tables["scale"][0].worst_error
    assert worst is not None
    assert worst.case == "odd"
    bare = take_runs([make.run(0, [make.cell(error=None)])]).tables["scale"][0]
    assert bare.worst_error is None


def test_an_error_is_told_in_units_of_the_yardsticks(make) -> None:
    def ratio(error: float, yardstick: float | None) -> float | None:
        metrics = [Metric(name="max_abs_error", value=error, unit="")]
        if yardstick is not None:
            metrics.append(Metric(name="yardstick_max_abs_error", value=yardstick, unit=""))
        return error_ratio(cell("run", replace(make.cell(), metrics=tuple(metrics))))

    assert ratio(3e-4, 1e-4) == 3e-4 / 1e-4
    assert ratio(0.0, 0.0) == 0.0
    assert ratio(1e-9, 0.0) == math.inf
    assert ratio(1e-9, None) is None


def test_an_error_that_is_no_number_is_the_worst(make) -> None:
    cells = [make.cell(error=1e9), make.cell(case="odd", timer=None, error=math.nan)]
    worst = take_runs([make.run(0, cells)]).tables["scale"][0].worst_error
    assert worst is not None
    assert worst.case == "odd"


def fast_and_peer(make, **changes: object) -> list[object]:
    return [make.cell("fast", latency_ns=2_500.0), make.cell(PEER, **changes)]


FAST = Place("scale", "fast", "large", "cpu/1")


def test_a_speed_up_is_against_the_peer_in_the_same_run(make) -> None:
    snapshot = take_runs([make.run(0, fast_and_peer(make))])
    assert snapshot.speed_up(FAST) == 4.0
    assert snapshot.speed_up(FAST._replace(variant=PEER)) is None


def test_there_is_no_speed_up_where_the_two_are_not_alike(make) -> None:
    failed = fast_and_peer(make, status=Status.WRONG_VALUES, message="off")
    assert take_runs([make.run(0, failed)]).speed_up(FAST) is None
    other_case = fast_and_peer(make, case="small")
    assert take_runs([make.run(0, other_case)]).speed_up(FAST) is None
    other_timer = fast_and_peer(make, timer="host")
    assert take_runs([make.run(0, other_timer)]).speed_up(FAST) is None
    fast, peer = fast_and_peer(make)
    two_runs = [make.run(0, [fast], attempt=2), make.run(0, [peer])]
    assert take_runs(two_runs).speed_up(FAST) is None
    changed = [fast, replace(peer, workload_digest="other")]
    assert take_runs([make.run(0, changed)]).speed_up(FAST) is None


def test_a_share_is_of_the_slowest_that_passed_in_the_same_run(make) -> None:
    wrong = make.cell("wrong", latency_ns=1e9, status=Status.WRONG_VALUES, message="off")
    elsewhere = make.cell("elsewhere", latency_ns=1e9, case="small")
    snapshot = take_runs([make.run(0, [*fast_and_peer(make), wrong, elsewhere])])
    assert snapshot.share(FAST) == 0.25
    assert snapshot.share(FAST._replace(variant=PEER)) == 1.0
    assert snapshot.share(FAST._replace(variant="wrong")) is None
    alone = FAST._replace(variant="elsewhere", case="small")
    assert snapshot.share(alone) is None


def test_the_first_timer_recorded_is_the_primary_one(make) -> None:
    cells = [make.cell("check", timer=None), make.cell(timer="cold"), make.cell(timer="a")]
    assert take_runs([make.run(0, cells)]).timers == ["cold/1", "a/1"]


def test_a_trend_holds_the_line_of_each_timed_cell(make) -> None:
    runs = [make.run(index, [make.cell(), make.cell("b", timer=None)]) for index in range(4)]
    summaries = [run_summary(run) for run in reversed(runs)]
    cells = [cell(run.run_id, each) for run in runs for each in run.measurements]
    commits = order_branch(summaries, "main")
    snapshot = take(summaries[:1], summaries[1:2], cells, line=(commits, summaries))
    assert list(snapshot.trends) == [PLAIN]
    assert snapshot.trends[PLAIN].segments == [[0, 1, 2, 3]]
