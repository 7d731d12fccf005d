import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from records import CPU, cell, summary

from perfci.decision import stats
from perfci.decision.compare import ASSUMED_RUN_SPREAD_ELSEWHERE, Floor, Side, compare
from perfci.history.latency import PassSpan
from perfci.history.model import (
    BISECT_TRIGGER,
    GATE_TRIGGER,
    Cell,
    Comparison,
    Contract,
    Metric,
    Status,
    Verdict,
)
from perfci.timers import TIMERS


def _side(*cells: Cell, testbed: str = "bench") -> Side:
    return Side([summary(each, testbed=testbed) for each in {cell.run_id for cell in cells}], cells)


def _only(baseline: Side, contender: Side) -> Comparison:
    (comparison,) = compare(baseline, contender)
    return comparison


_STEADY = (1000.0, 1001.0, 999.0)


def test_twice_as_slow_is_a_regression_and_back_an_improvement() -> None:
    slow = [2 * each for each in _STEADY]
    comparison = _only(_side(cell(_STEADY)), _side(cell(slow)))
    assert comparison.verdict is Verdict.REGRESSION
    assert comparison.ratio == pytest.approx(2.0)
    assert comparison.baseline_ns == pytest.approx(1000.0, rel=1e-3)
    assert comparison.contender_ns == pytest.approx(2000.0, rel=1e-3)
    assert comparison.interval is not None
    assert 1.05 < comparison.interval[0] < 2.0 < comparison.interval[1]
    assert _only(_side(cell(slow)), _side(cell(_STEADY))).verdict is Verdict.IMPROVEMENT


def test_one_run_of_a_host_timer_cannot_call_a_cell_unchanged_but_three_can() -> None:
    once = _side(cell(_STEADY))
    comparison = _only(once, once)
    assert comparison.verdict is Verdict.INCONCLUSIVE
    assert comparison.reason == "the interval reaches across the threshold"
    assert comparison.smallest_visible_change == pytest.approx(0.114, abs=0.002)
    thrice = _side(*(cell(_STEADY, run_id=each) for each in "abc"))
    assert _only(thrice, thrice).verdict is Verdict.UNCHANGED


@pytest.mark.parametrize("timer", ["cuda_cold", "cuda_hot"])
def test_one_run_behind_a_stream_blocker_can_call_a_cell_unchanged(timer: str) -> None:
    side = _side(cell(_STEADY, contract=TIMERS[timer].contract))
    assert _only(side, side).verdict is Verdict.UNCHANGED


def test_runs_that_disagree_raise_no_alarm_where_one_of_them_would() -> None:
    baseline = _side(cell(_STEADY, run_id="a"), cell(_STEADY, run_id="b"))
    slow = tuple(1.4 * each for each in _STEADY)
    assert _only(baseline, _side(cell(slow, run_id="c"))).verdict is Verdict.REGRESSION
    mixed = _side(cell(slow, run_id="c"), cell(_STEADY, run_id="d"))
    assert _only(baseline, mixed).verdict is Verdict.INCONCLUSIVE


def test_all_passes_of_a_side_are_held_against_its_one_latency() -> None:
    """Each run's passes agree; of the latency between both runs they are far."""
    apart = [cell([n * each for each in _STEADY], run_id=name) for n, name in ((1, "a"), (4, "b"))]
    comparison = _only(_side(*apart), _side(cell(_STEADY, run_id="c")))
    before, after = comparison.baseline_passes, comparison.contender_passes
    assert before == PassSpan(count=6, far=6, lowest_ns=999.0, highest_ns=4004.0)
    assert after == PassSpan(count=3, far=0, lowest_ns=999.0, highest_ns=1001.0)


@pytest.mark.parametrize("name", ["baseline", "contender"])
def test_what_was_measured_beside_others_on_the_gpu_proves_nothing(name: str) -> None:
    sides = {"baseline": cell(_STEADY), "contender": cell([2 * each for each in _STEADY])}
    others = Metric(name="other_processes", value=1.0, unit="")
    sides[name] = replace(sides[name], metrics=(others,))
    comparison = _only(_side(sides["baseline"]), _side(sides["contender"]))
    assert comparison.verdict is Verdict.INCONCLUSIVE
    assert comparison.reason == f"the {name} was measured while another process was on the GPU"


@pytest.mark.parametrize("name", ["baseline", "contender"])
def test_one_pass_is_never_a_verdict(name: str) -> None:
    sides = {"baseline": _side(cell(_STEADY)), "contender": _side(cell([9e3, 9e3]))}
    sides[name] = _side(cell([5000.0]))
    comparison = _only(sides["baseline"], sides["contender"])
    assert comparison.verdict is Verdict.INCONCLUSIVE
    assert comparison.reason == f"needs at least 2 passes, the {name} has 1"
    assert comparison.ratio is None


def test_wild_passes_allow_any_ratio() -> None:
    wild = _side(*(cell([ns, ns], run_id=str(ns)) for ns in (1.0, 1e150)))
    comparison = _only(wild, wild)
    assert comparison.verdict is Verdict.INCONCLUSIVE
    assert comparison.interval is not None
    assert 1e300 < comparison.interval[1] < math.inf
    assert comparison.interval[0] >= 0.0
    assert comparison.smallest_visible_change is not None
    assert math.isfinite(comparison.smallest_visible_change)


@pytest.mark.parametrize("bad_ns", [0.0, -1.0, math.nan, math.inf])
def test_a_latency_that_is_none_is_missing(bad_ns: float) -> None:
    comparison = _only(_side(cell(_STEADY)), _side(cell([1000.0, bad_ns])))
    assert comparison.verdict is Verdict.MISSING
    assert comparison.reason == "the contender has a latency that is not a positive number"
    assert comparison.contender_ns is None


def test_a_cell_that_is_gone_is_missing_and_one_that_came_is_new() -> None:
    baseline, contender = _side(cell(_STEADY, variant="old")), _side(cell(_STEADY, variant="new"))
    new, old = compare(baseline, contender)
    assert (new.verdict, new.reason) == (Verdict.NEW, "no baseline")
    assert (old.verdict, old.reason) == (Verdict.MISSING, "no contender")
    assert new.contender_ns == pytest.approx(1000.0, rel=1e-3)
    assert new.baseline_ns is None


@pytest.mark.parametrize("trigger", [GATE_TRIGGER, BISECT_TRIGGER])
def test_a_cell_that_a_gate_left_out_is_neither_missing_nor_new(trigger: str) -> None:
    whole = _side(cell(_STEADY, run_id="a", variant="kept"), cell(_STEADY, run_id="a"))
    cells = [cell(_STEADY, run_id="b", variant="kept")]
    gated = Side([replace(run, trigger=trigger) for run in _side(*cells).runs], cells)
    for sides, name in (((whole, gated), "contender"), ((gated, whole), "baseline")):
        (left_out,) = [each for each in compare(*sides) if each.key.variant != "kept"]
        assert left_out.verdict is Verdict.INCONCLUSIVE
        reason = f"of the {name} there is no run but a gate's or a bisection's, without this cell"
        assert left_out.reason == reason
    another = _side(cell(_STEADY, run_id="c", variant="kept"))
    both = Side([*gated.runs, *another.runs], [*gated.cells, *another.cells])
    (gone,) = [each for each in compare(whole, both) if each.key.variant != "kept"]
    assert gone.verdict is Verdict.MISSING


def test_another_version_of_the_timer_is_incomparable_and_named_on_both_sides() -> None:
    contender = _side(cell(_STEADY, contract=replace(CPU, version=2)))
    old, new = compare(_side(cell(_STEADY)), contender)
    assert old.verdict is new.verdict is Verdict.INCOMPARABLE
    assert old.reason == "no contender: timed by cpu/2 there, which is not compared with cpu/1"
    assert new.reason == "no baseline: timed by cpu/1 there, which is not compared with cpu/2"


def test_another_testbed_is_named() -> None:
    left, right = compare(_side(cell(_STEADY)), _side(cell(_STEADY, run_id="q"), testbed="other"))
    assert (left.verdict, right.verdict) == (Verdict.MISSING, Verdict.NEW)
    assert left.reason == "no contender: measured on other (Some CPU) there"
    assert right.reason == "no baseline: measured on bench (Some CPU) there"


def test_a_changed_workload_is_incomparable() -> None:
    comparison = _only(_side(cell(_STEADY)), _side(cell(_STEADY, workload="x")))
    assert comparison.verdict is Verdict.INCOMPARABLE
    assert comparison.reason == "the reference or the case changed"
    assert comparison.ratio is None


_INCORRECT = ["wrong_values", "wrong_shape", "wrong_dtype", "nondeterministic"]
_FAILED = ["build_failed", "runtime_error", "timeout", "invalid_timing", "missing", "skipped"]


@pytest.mark.parametrize("status", _INCORRECT)
def test_incorrect_is_new_or_known(status: str) -> None:
    wrong = _side(cell(status=Status(status), message="off by 3\nat [0, 1]"))
    comparison = _only(_side(cell(_STEADY)), wrong)
    assert comparison.verdict is Verdict.INCORRECT
    assert comparison.reason == f"{status.replace('_', ' ')}: off by 3"
    assert _only(wrong, wrong).verdict is Verdict.KNOWN_INCORRECT
    (new,) = compare(Side([], []), wrong)
    assert new.verdict is Verdict.INCORRECT


@pytest.mark.parametrize("status", _FAILED)
def test_every_other_failure_is_missing(status: str) -> None:
    failed = _side(cell(status=Status(status), message="no such header"))
    words = status.replace("_", " ")
    comparison = _only(_side(cell(_STEADY)), failed)
    assert comparison.verdict is Verdict.MISSING
    assert comparison.reason == f"{words}: no such header"
    comparison = _only(failed, _side(cell(_STEADY)))
    assert comparison.verdict is Verdict.NEW
    assert comparison.reason == f"no baseline: {words}: no such header"


def test_skipped_on_purpose_is_left_out() -> None:
    skipped = _side(cell(status=Status.SKIPPED))
    assert compare(skipped, skipped) == []
    assert compare(Side([], []), skipped) == []


def test_checked_only_is_left_out_unless_it_fails() -> None:
    passed = _side(cell(contract=None))
    assert compare(passed, passed) == []
    assert compare(Side([], []), passed) == []
    wrong = _side(cell(contract=None, status=Status.WRONG_VALUES))
    assert _only(passed, wrong).verdict is Verdict.INCORRECT
    assert _only(passed, Side([], [])).verdict is Verdict.MISSING


def test_a_second_try_hides_no_failure_of_the_contender() -> None:
    flaky = _side(
        cell(_STEADY, run_id="a"),
        cell(run_id="b", status=Status.WRONG_VALUES, message="sometimes"),
    )
    steady = _side(cell(_STEADY))
    assert _only(steady, flaky).verdict is Verdict.INCORRECT
    assert _only(flaky, flaky).verdict is Verdict.INCORRECT
    assert _only(flaky, steady).verdict is Verdict.INCONCLUSIVE


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
    side = _side(cell(_STEADY))
    with pytest.raises(ValueError, match="out of range"):
        compare(side, side, threshold=threshold, alpha=alpha)


_MEANS = st.lists(st.floats(100.0, 1e6), min_size=2, max_size=6)
_MIRRORED = {Verdict.REGRESSION: Verdict.IMPROVEMENT, Verdict.IMPROVEMENT: Verdict.REGRESSION}


@given(_MEANS, _MEANS)
def test_swapping_the_sides_inverts_the_ratio(left: list[float], right: list[float]) -> None:
    there = _only(_side(cell(left)), _side(cell(right)))
    back = _only(_side(cell(right)), _side(cell(left)))
    assert there.ratio is not None
    assert back.ratio == pytest.approx(1.0 / there.ratio)
    assert back.verdict is _MIRRORED.get(there.verdict, there.verdict)


@given(_MEANS, _MEANS)
def test_order_of_passes_is_irrelevant(left: list[float], right: list[float]) -> None:
    shuffled = sorted(right)
    there = _only(_side(cell(left)), _side(cell(right)))
    again = _only(_side(cell(left)), _side(cell(shuffled)))
    assert again.ratio == pytest.approx(there.ratio)
    assert again.verdict is there.verdict


@given(_MEANS, _MEANS, st.integers(-10, 10))
def test_the_unit_of_time_is_irrelevant(left: list[float], right: list[float], power: int) -> None:
    scale = 2.0**power
    there = _only(_side(cell(left)), _side(cell(right)))
    scaled = _only(
        _side(cell([scale * each for each in left])),
        _side(cell([scale * each for each in right])),
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
    return _side(*drawn)


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


def _in_pair(*cells: Cell, pair: str) -> Side:
    side = _side(*cells)
    return Side([replace(run, pair=pair) for run in side.runs], side.cells)


_RESTLESS = (1000.0, 1300.0, 800.0, 1150.0, 900.0, 1210.0)


def test_passes_that_held_both_sides_show_what_the_machine_would_hide() -> None:
    slow = [1.3 * each for each in _RESTLESS]
    before, after = cell(_RESTLESS, run_id="a"), cell(slow, run_id="b")
    apart = _only(_side(before), _side(after))
    assert (apart.verdict, apart.paired_passes) == (Verdict.INCONCLUSIVE, 0)
    paired = _only(_in_pair(before, pair="p"), _in_pair(after, pair="p"))
    assert (paired.verdict, paired.paired_passes) == (Verdict.REGRESSION, 6)
    assert paired.ratio == pytest.approx(1.3)
    assert not paired.is_studied


def test_only_runs_of_one_pair_are_paired_and_they_alone_count() -> None:
    slow = [1.3 * each for each in _RESTLESS]
    before, after = cell(_RESTLESS, run_id="a"), cell(slow, run_id="b")
    other = _only(_in_pair(before, pair="p"), _in_pair(after, pair="q"))
    assert other.paired_passes == 0
    stray = cell([9000.0] * 4, run_id="c")
    both = _in_pair(after, pair="p")
    with_stray = Side([*both.runs, *_side(stray).runs], [*both.cells, stray])
    compared = _only(_in_pair(before, pair="p"), with_stray)
    assert (compared.ratio, compared.paired_passes) == (pytest.approx(1.3), 6)


@pytest.mark.parametrize(("passes", "paired"), [(5, 0), (6, 6)])
def test_few_passes_of_a_pair_take_no_other_runs_place(passes: int, paired: int) -> None:
    """A gate that its budget ended, beside whole runs of both commits."""
    slow = [1.3 * each for each in _RESTLESS]
    sides = [
        Side([*pair.runs, *_side(run).runs], [*pair.cells, run])
        for pair, run in (
            (_in_pair(cell(_RESTLESS[:passes], run_id="a"), pair="p"), cell(_STEADY, run_id="c")),
            (_in_pair(cell(slow[:passes], run_id="b"), pair="p"), cell(_STEADY, run_id="d")),
        )
    ]
    assert _only(*sides).paired_passes == paired
    # where one side has nothing else, the pair is all there is
    assert (
        _only(sides[0], _in_pair(cell(slow[:passes], run_id="b"), pair="p")).paired_passes == passes
    )


@pytest.mark.parametrize("factor", [1.0, 1.5, 0.5])
def test_fewer_paired_passes_than_a_gate_looks_at_decide_nothing(factor: float) -> None:
    """Where a gate that its budget ended is all that there is, as the gate itself said."""
    quiet = stats.Spread(value=0.0001, degrees=100)
    for passes, said in ((5, True), (6, False)):
        before = _in_pair(cell([1000.0] * passes, run_id="a"), pair="p")
        after = _in_pair(cell([factor * 1000.0] * passes, run_id="b"), pair="p")
        floors = {key: Floor(unpaired=quiet, paired=quiet) for key in before.cells_by_key()}
        (compared,) = compare(before, after, floors=floors)
        assert (compared.verdict is Verdict.INCONCLUSIVE) is said
        assert (compared.reason == "5 paired passes: fewer than 6 decide nothing") is said
        figures = (compared.ratio, compared.interval, compared.smallest_visible_change)
        assert (figures == (None, None, None)) is said


def test_cells_of_a_pair_without_the_same_passes_are_not_paired() -> None:
    before, after = cell(_RESTLESS, run_id="a"), cell(_RESTLESS[:4], run_id="b")
    compared = _only(_in_pair(before, pair="p"), _in_pair(after, pair="p"))
    assert compared.paired_passes == 0
    assert compared.ratio is not None


def test_a_studied_floor_takes_the_place_of_the_assumption() -> None:
    side = _side(cell(_STEADY))
    (assumed,) = compare(side, side)
    assert (assumed.verdict, assumed.is_studied) == (Verdict.INCONCLUSIVE, False)
    quiet = stats.Spread(value=0.001, degrees=11)
    (studied,) = compare(side, side, floors={assumed.key: Floor(unpaired=quiet, paired=quiet)})
    assert (studied.verdict, studied.is_studied) == (Verdict.UNCHANGED, True)
    loud = stats.Spread(value=0.2, degrees=11)
    slow = _side(cell([1.3 * each for each in _STEADY]))
    (heard,) = compare(side, slow, floors={assumed.key: Floor(unpaired=loud, paired=loud)})
    assert heard.verdict is Verdict.INCONCLUSIVE


def test_sides_that_were_processes_spread_as_two_passes_do() -> None:
    after = replace(cell(_STEADY * 2), identity=(("own environment", "other"),))
    before = replace(cell(_STEADY * 2, run_id="a"), identity=(("own environment", "one"),))
    one, other = _in_pair(before, pair="p"), _in_pair(after, pair="p")
    spread, quiet = stats.Spread(value=0.02, degrees=11), stats.Spread(value=0.001, degrees=11)
    key = next(iter(one.cells_by_key()))
    floors = {key: Floor(unpaired=spread, paired=quiet)}
    (together,) = compare(one, one, floors=floors)
    (apart,) = compare(one, other, floors=floors)
    loud = stats.Spread(value=0.02 * 2**0.5, degrees=11)
    (expected,) = compare(one, one, floors={key: Floor(unpaired=spread, paired=loud)})
    assert apart.interval == expected.interval != together.interval
    assert apart.paired_passes == 2 * len(_STEADY)


def _on(side: Side, host: str, uuid: str | None) -> Side:
    runs = []
    for run in side.runs:
        device = replace(run.environment.device, uuid=uuid)
        runs.append(replace(run, environment=replace(run.environment, host=host, device=device)))
    return Side(runs, side.cells)


def test_what_a_caller_pays_is_compared_within_one_machine_or_not_far() -> None:
    host = Contract(timer="host", version=1, l2="warm", warm_up="steady", inputs="rotating")
    before = _side(cell(_STEADY, contract=host))
    slow = _side(cell([1.4 * each for each in _STEADY], run_id="b", contract=host))
    here = _on(before, "box", "GPU-1")
    assert _only(here, _on(slow, "box", "GPU-1")).verdict is Verdict.REGRESSION
    for elsewhere in (("box", "GPU-2"), ("other", "GPU-1")):
        assert _only(here, _on(slow, *elsewhere)).verdict is Verdict.INCONCLUSIVE
    # A GPU's own time is as steady from machine to machine as was assumed of one.
    cold = replace(host, timer="cold")
    before = _side(cell(_STEADY, contract=cold))
    slow = _side(cell([1.4 * each for each in _STEADY], run_id="b", contract=cold))
    assert _only(_on(before, "a", "1"), _on(slow, "b", "2")).verdict is Verdict.REGRESSION
