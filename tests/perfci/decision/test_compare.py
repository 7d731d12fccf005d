"""Verdicts on pairs of cells, and how often they are wrong."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from records import CPU, cell, summary
from sides import STEADY, only, side_of

from perfci.decision.compare import ASSUMED_RUN_SPREAD_ELSEWHERE, Side, compare
from perfci.history.latency import PassSpan
from perfci.history.model import (
    BISECT_TRIGGER,
    GATE_TRIGGER,
    Metric,
    Status,
    Verdict,
)
from perfci.timers import TIMERS


def test_twice_as_slow_is_a_regression_and_back_an_improvement() -> None:
    slow = [2 * each for each in STEADY]
    comparison = only(side_of(cell(STEADY)), side_of(cell(slow)))
    assert comparison.verdict is Verdict.REGRESSION
    assert comparison.ratio == pytest.approx(2.0)
    assert comparison.baseline_ns == pytest.approx(1000.0, rel=1e-3)
    assert comparison.contender_ns == pytest.approx(2000.0, rel=1e-3)
    assert comparison.interval is not None
    assert 1.05 < comparison.interval[0] < 2.0 < comparison.interval[1]
    assert only(side_of(cell(slow)), side_of(cell(STEADY))).verdict is Verdict.IMPROVEMENT


def test_one_run_of_a_host_timer_cannot_call_a_cell_unchanged_but_three_can() -> None:
    once = side_of(cell(STEADY))
    comparison = only(once, once)
    assert comparison.verdict is Verdict.INCONCLUSIVE
    assert comparison.reason == "the interval reaches across the threshold"
    assert comparison.smallest_visible_change == pytest.approx(0.114, abs=0.002)
    thrice = side_of(*(cell(STEADY, run_id=each) for each in "abc"))
    assert only(thrice, thrice).verdict is Verdict.UNCHANGED


@pytest.mark.parametrize("timer", ["cuda_cold", "cuda_hot"])
def test_one_run_behind_a_stream_blocker_can_call_a_cell_unchanged(timer: str) -> None:
    side = side_of(cell(STEADY, contract=TIMERS[timer].contract))
    assert only(side, side).verdict is Verdict.UNCHANGED


def test_runs_that_disagree_raise_no_alarm_where_one_of_them_would() -> None:
    baseline = side_of(cell(STEADY, run_id="a"), cell(STEADY, run_id="b"))
    slow = tuple(1.4 * each for each in STEADY)
    assert only(baseline, side_of(cell(slow, run_id="c"))).verdict is Verdict.REGRESSION
    mixed = side_of(cell(slow, run_id="c"), cell(STEADY, run_id="d"))
    assert only(baseline, mixed).verdict is Verdict.INCONCLUSIVE


def test_all_passes_of_a_side_are_held_against_its_one_latency() -> None:
    """Each run's passes agree; of the latency between both runs they are far."""
    apart = [cell([n * each for each in STEADY], run_id=name) for n, name in ((1, "a"), (4, "b"))]
    comparison = only(side_of(*apart), side_of(cell(STEADY, run_id="c")))
    before, after = comparison.baseline_passes, comparison.contender_passes
    assert before == PassSpan(count=6, far=6, lowest_ns=999.0, highest_ns=4004.0)
    assert after == PassSpan(count=3, far=0, lowest_ns=999.0, highest_ns=1001.0)


@pytest.mark.parametrize("name", ["baseline", "contender"])
def test_what_was_measured_beside_others_on_the_gpu_proves_nothing(name: str) -> None:
    sides = {"baseline": cell(STEADY), "contender": cell([2 * each for each in STEADY])}
    others = Metric(name="other_processes", value=1.0, unit="")
    sides[name] = replace(sides[name], metrics=(others,))
    comparison = only(side_of(sides["baseline"]), side_of(sides["contender"]))
    assert comparison.verdict is Verdict.INCONCLUSIVE
    assert comparison.reason == f"the {name} was measured while another process was on the GPU"


@pytest.mark.parametrize("name", ["baseline", "contender"])
def test_one_pass_is_never_a_verdict(name: str) -> None:
    sides = {"baseline": side_of(cell(STEADY)), "contender": side_of(cell([9e3, 9e3]))}
    sides[name] = side_of(cell([5000.0]))
    comparison = only(sides["baseline"], sides["contender"])
    assert comparison.verdict is Verdict.INCONCLUSIVE
    assert comparison.reason == f"needs at least 2 passes, the {name} has 1"
    assert comparison.ratio is None


def test_wild_passes_allow_any_ratio() -> None:
    wild = side_of(*(cell([ns, ns], run_id=str(ns)) for ns in (1.0, 1e150)))
    comparison = only(wild, wild)
    assert comparison.verdict is Verdict.INCONCLUSIVE
    assert comparison.interval is not None
    assert 1e300 < comparison.interval[1] < math.inf
    assert comparison.interval[0] >= 0.0
    assert comparison.smallest_visible_change is not None
    assert math.isfinite(comparison.smallest_visible_change)


@pytest.mark.parametrize("bad_ns", [0.0, -1.0, math.nan, math.inf])
def test_a_latency_that_is_none_is_missing(bad_ns: float) -> None:
    comparison = only(side_of(cell(STEADY)), side_of(cell([1000.0, bad_ns])))
    assert comparison.verdict is Verdict.MISSING
    assert comparison.reason == "the contender has a latency that is not a positive number"
    assert comparison.contender_ns is None


def test_a_cell_that_is_gone_is_missing_and_one_that_came_is_new() -> None:
    baseline, contender = side_of(cell(STEADY, variant="old")), side_of(cell(STEADY, variant="new"))
    new, old = compare(baseline, contender)
    assert (new.verdict, new.reason) == (Verdict.NEW, "no baseline")
    assert (old.verdict, old.reason) == (Verdict.MISSING, "no contender")
    assert new.contender_ns == pytest.approx(1000.0, rel=1e-3)
    assert new.baseline_ns is None


@pytest.mark.parametrize("trigger", [GATE_TRIGGER, BISECT_TRIGGER])
def test_a_cell_that_a_gate_left_out_is_neither_missing_nor_new(trigger: str) -> None:
    whole = side_of(cell(STEADY, run_id="a", variant="kept"), cell(STEADY, run_id="a"))
    cells = [cell(STEADY, run_id="b", variant="kept")]
    gated = Side([replace(run, trigger=trigger) for run in side_of(*cells).runs], cells)
    for sides, name in (((whole, gated), "contender"), ((gated, whole), "baseline")):
        (left_out,) = [each for each in compare(*sides) if each.key.variant != "kept"]
        assert left_out.verdict is Verdict.INCONCLUSIVE
        reason = f"of the {name} there is no run but a gate's or a bisection's, without this cell"
        assert left_out.reason == reason
    another = side_of(cell(STEADY, run_id="c", variant="kept"))
    both = Side([*gated.runs, *another.runs], [*gated.cells, *another.cells])
    (gone,) = [each for each in compare(whole, both) if each.key.variant != "kept"]
    assert gone.verdict is Verdict.MISSING


def test_another_version_of_the_timer_is_incomparable_and_named_on_both_sides() -> None:
    contender = side_of(cell(STEADY, contract=replace(CPU, version=2)))
    old, new = compare(side_of(cell(STEADY)), contender)
    assert old.verdict is new.verdict is Verdict.INCOMPARABLE
    assert old.reason == "no contender: timed by cpu/2 there, which is not compared with cpu/1"
    assert new.reason == "no baseline: timed by cpu/1 there, which is not compared with cpu/2"


def test_another_testbed_is_named() -> None:
    left, right = compare(side_of(cell(STEADY)), side_of(cell(STEADY, run_id="q"), testbed="other"))
    assert (left.verdict, right.verdict) == (Verdict.MISSING, Verdict.NEW)
    assert left.reason == "no contender: measured on other (Some CPU) there"
    assert right.reason == "no baseline: measured on bench (Some CPU) there"


def test_a_changed_workload_is_incomparable() -> None:
    comparison = only(side_of(cell(STEADY)), side_of(cell(STEADY, workload="x")))
    assert comparison.verdict is Verdict.INCOMPARABLE
    assert comparison.reason == "the reference or the case changed"
    assert comparison.ratio is None


_INCORRECT = ["wrong_values", "wrong_shape", "wrong_dtype", "nondeterministic"]
_FAILED = ["build_failed", "runtime_error", "timeout", "invalid_timing", "missing", "skipped"]


@pytest.mark.parametrize("status", _INCORRECT)
def test_incorrect_is_new_or_known(status: str) -> None:
    wrong = side_of(cell(status=Status(status), message="off by 3\nat [0, 1]"))
    comparison = only(side_of(cell(STEADY)), wrong)
    assert comparison.verdict is Verdict.INCORRECT
    assert comparison.reason == f"{status.replace('_', ' ')}: off by 3"
    assert only(wrong, wrong).verdict is Verdict.KNOWN_INCORRECT
    (new,) = compare(Side([], []), wrong)
    assert new.verdict is Verdict.INCORRECT


@pytest.mark.parametrize("status", _FAILED)
def test_every_other_failure_is_missing(status: str) -> None:
    failed = side_of(cell(status=Status(status), message="no such header"))
    words = status.replace("_", " ")
    comparison = only(side_of(cell(STEADY)), failed)
    assert comparison.verdict is Verdict.MISSING
    assert comparison.reason == f"{words}: no such header"
    comparison = only(failed, side_of(cell(STEADY)))
    assert comparison.verdict is Verdict.NEW
    assert comparison.reason == f"no baseline: {words}: no such header"


def test_skipped_on_purpose_is_left_out() -> None:
    skipped = side_of(cell(status=Status.SKIPPED))
    assert compare(skipped, skipped) == []
    assert compare(Side([], []), skipped) == []


def test_checked_only_is_left_out_unless_it_fails() -> None:
    passed = side_of(cell(contract=None))
    assert compare(passed, passed) == []
    assert compare(Side([], []), passed) == []
    wrong = side_of(cell(contract=None, status=Status.WRONG_VALUES))
    assert only(passed, wrong).verdict is Verdict.INCORRECT
    assert only(passed, Side([], [])).verdict is Verdict.MISSING


def test_a_second_try_hides_no_failure_of_the_contender() -> None:
    flaky = side_of(
        cell(STEADY, run_id="a"),
        cell(run_id="b", status=Status.WRONG_VALUES, message="sometimes"),
    )
    steady = side_of(cell(STEADY))
    assert only(steady, flaky).verdict is Verdict.INCORRECT
    assert only(flaky, flaky).verdict is Verdict.INCORRECT
    assert only(flaky, steady).verdict is Verdict.INCONCLUSIVE


def test_a_side_is_one_commit() -> None:
    with pytest.raises(ValueError, match="a side is one commit, not 2"):
        Side([summary("a"), summary("b", sha="b" * 40)], [])
    run = summary("a")
    dirty = replace(run, run_id="b", commit=replace(run.commit, dirty="d1"))
    with pytest.raises(ValueError, match="a side is one commit, not 2"):
        Side([run, dirty], [])
    with pytest.raises(ValueError, match=r"not of this side: \['z'\]"):
        Side([run], [cell(run_id="z")])


@pytest.mark.parametrize(("threshold", "alpha"), [(0, 0.05), (-1, 0.05), (0.05, 0), (0.05, 1)])
def test_a_threshold_that_means_nothing_is_refused(threshold: float, alpha: float) -> None:
    side = side_of(cell(STEADY))
    with pytest.raises(ValueError, match="out of range"):
        compare(side, side, threshold=threshold, alpha=alpha)


_MEANS = st.lists(st.floats(100.0, 1e6), min_size=2, max_size=6)
_MIRRORED = {Verdict.REGRESSION: Verdict.IMPROVEMENT, Verdict.IMPROVEMENT: Verdict.REGRESSION}


@given(_MEANS, _MEANS)
def test_swapping_the_sides_inverts_the_ratio(left: list[float], right: list[float]) -> None:
    there = only(side_of(cell(left)), side_of(cell(right)))
    back = only(side_of(cell(right)), side_of(cell(left)))
    assert there.ratio is not None
    assert back.ratio == pytest.approx(1.0 / there.ratio)
    assert back.verdict is _MIRRORED.get(there.verdict, there.verdict)


@given(_MEANS, _MEANS)
def test_order_of_passes_is_irrelevant(left: list[float], right: list[float]) -> None:
    shuffled = sorted(right)
    there = only(side_of(cell(left)), side_of(cell(right)))
    again = only(side_of(cell(left)), side_of(cell(shuffled)))
    assert again.ratio == pytest.approx(there.ratio)
    assert again.verdict is there.verdict


@given(_MEANS, _MEANS, st.integers(-10, 10))
def test_the_unit_of_time_is_irrelevant(left: list[float], right: list[float], power: int) -> None:
    scale = 2.0**power
    there = only(side_of(cell(left)), side_of(cell(right)))
    scaled = only(
        side_of(cell([scale * each for each in left])),
        side_of(cell([scale * each for each in right])),
    )
    assert scaled.ratio == pytest.approx(there.ratio)
    assert scaled.verdict is there.verdict


def _simulate(
    random: np.random.Generator, *, slow: float = 1.0, cells: int = 40, runs: int = 1
) -> Side:
    """Cells with a spread of 1 % a pass and the assumed spread a run; the first cell is slow."""
    drawn = []
    for run, index in itertools.product(range(runs), range(cells)):
        shift = random.normal(0.0, ASSUMED_RUN_SPREAD_ELSEWHERE)
        logs = shift + random.normal(0.0, 0.01, size=3)
        means_ns = 1e4 * np.exp(logs) * (slow if index == 0 else 1.0)
        drawn.append(cell(means_ns.tolist(), run_id=f"r{run}", variant=f"v{index}"))
    return side_of(*drawn)


def test_a_commit_against_itself_raises_almost_no_alarm() -> None:
    random = np.random.default_rng(1)
    alarms = [
        comparison
        for family in range(25)
        for comparison in compare(
            _simulate(random, runs=1 + family % 3), _simulate(random, runs=1 + family % 3)
        )
        if comparison.verdict in (Verdict.REGRESSION, Verdict.IMPROVEMENT)
    ]
    assert len(alarms) <= 1


def test_one_slow_cell_among_three_hundred_is_found_alone() -> None:
    random = np.random.default_rng(2)
    comparisons = compare(_simulate(random, cells=300), _simulate(random, cells=300, slow=2.0))
    slower = [each for each in comparisons if each.verdict is Verdict.REGRESSION]
    assert [each.key.variant for each in slower] == ["v0"]


def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    random = np.random.default_rng(3)
    comparisons = [
        comparison
        for _ in range(25)
        for comparison in compare(_simulate(random), _simulate(random))
        if comparison.interval is not None
    ]
    covered = [each.interval[0] <= 1.0 <= each.interval[1] for each in comparisons if each.interval]
    assert 0.93 <= np.mean(covered) <= 0.99
