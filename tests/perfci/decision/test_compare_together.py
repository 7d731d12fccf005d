"""What was measured together, by which noise, and on which machines."""

from dataclasses import replace

import pytest
from records import cell
from sides import STEADY, only, side_of

from perfci.decision import stats
from perfci.decision.compare import Floor, Side, compare
from perfci.history.model import Cell, Contract, Verdict


def _in_pair(*cells: Cell, pair: str) -> Side:
    side = side_of(*cells)
    return Side([replace(run, pair=pair) for run in side.runs], side.cells)


_RESTLESS = (1000.0, 1300.0, 800.0, 1150.0, 900.0, 1210.0)


def test_passes_that_held_both_sides_show_what_the_machine_would_hide() -> None:
    slow = [1.3 * each for each in _RESTLESS]
    before, after = cell(_RESTLESS, run_id="a"), cell(slow, run_id="b")
    apart = only(side_of(before), side_of(after))
    assert (apart.verdict, apart.paired_passes) == (Verdict.INCONCLUSIVE, 0)
    paired = only(_in_pair(before, pair="p"), _in_pair(after, pair="p"))
    assert (paired.verdict, paired.paired_passes) == (Verdict.REGRESSION, 6)
    assert paired.ratio == pytest.approx(1.3)
    assert not paired.is_studied


def test_only_runs_of_one_pair_are_paired_and_they_alone_count() -> None:
    slow = [1.3 * each for each in _RESTLESS]
    before, after = cell(_RESTLESS, run_id="a"), cell(slow, run_id="b")
    other = only(_in_pair(before, pair="p"), _in_pair(after, pair="q"))
    assert other.paired_passes == 0
    stray = cell([9000.0] * 4, run_id="c")
    both = _in_pair(after, pair="p")
    with_stray = Side([*both.runs, *side_of(stray).runs], [*both.cells, stray])
    compared = only(_in_pair(before, pair="p"), with_stray)
    assert (compared.ratio, compared.paired_passes) == (pytest.approx(1.3), 6)


@pytest.mark.parametrize(("passes", "paired"), [(5, 0), (6, 6)])
def test_few_passes_of_a_pair_take_no_other_runs_place(passes: int, paired: int) -> None:
    """A gate that its budget ended, beside whole runs of both commits."""
    slow = [1.3 * each for each in _RESTLESS]
    sides = [
        Side([*pair.runs, *side_of(run).runs], [*pair.cells, run])
        for pair, run in (
            (_in_pair(cell(_RESTLESS[:passes], run_id="a"), pair="p"), cell(STEADY, run_id="c")),
            (_in_pair(cell(slow[:passes], run_id="b"), pair="p"), cell(STEADY, run_id="d")),
        )
    ]
    assert only(*sides).paired_passes == paired
    # where one side has nothing else, the pair is all there is
    assert (
        only(sides[0], _in_pair(cell(slow[:passes], run_id="b"), pair="p")).paired_passes == passes
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
    compared = only(_in_pair(before, pair="p"), _in_pair(after, pair="p"))
    assert compared.paired_passes == 0
    assert compared.ratio is not None


def test_a_studied_floor_takes_the_place_of_the_assumption() -> None:
    side = side_of(cell(STEADY))
    (assumed,) = compare(side, side)
    assert (assumed.verdict, assumed.is_studied) == (Verdict.INCONCLUSIVE, False)
    quiet = stats.Spread(value=0.001, degrees=11)
    (studied,) = compare(side, side, floors={assumed.key: Floor(unpaired=quiet, paired=quiet)})
    assert (studied.verdict, studied.is_studied) == (Verdict.UNCHANGED, True)
    loud = stats.Spread(value=0.2, degrees=11)
    slow = side_of(cell([1.3 * each for each in STEADY]))
    (heard,) = compare(side, slow, floors={assumed.key: Floor(unpaired=loud, paired=loud)})
    assert heard.verdict is Verdict.INCONCLUSIVE


def test_sides_that_were_processes_spread_as_two_passes_do() -> None:
    after = replace(cell(STEADY * 2), identity=(("own environment", "other"),))
    before = replace(cell(STEADY * 2, run_id="a"), identity=(("own environment", "one"),))
    one, other = _in_pair(before, pair="p"), _in_pair(after, pair="p")
    spread, quiet = stats.Spread(value=0.02, degrees=11), stats.Spread(value=0.001, degrees=11)
    key = next(iter(one.cells_by_key()))
    floors = {key: Floor(unpaired=spread, paired=quiet)}
    (together,) = compare(one, one, floors=floors)
    (apart,) = compare(one, other, floors=floors)
    loud = stats.Spread(value=0.02 * 2**0.5, degrees=11)
    (expected,) = compare(one, one, floors={key: Floor(unpaired=spread, paired=loud)})
    assert apart.interval == expected.interval != together.interval
    assert apart.paired_passes == 2 * len(STEADY)


def _on(side: Side, host: str, uuid: str | None) -> Side:
    runs = []
    for run in side.runs:
        device = replace(run.environment.device, uuid=uuid)
        runs.append(replace(run, environment=replace(run.environment, host=host, device=device)))
    return Side(runs, side.cells)


def test_what_a_caller_pays_is_compared_within_one_machine_or_not_far() -> None:
    host = Contract(timer="host", version=1, l2="warm", warm_up="steady", inputs="rotating")
    before = side_of(cell(STEADY, contract=host))
    slow = side_of(cell([1.4 * each for each in STEADY], run_id="b", contract=host))
    here = _on(before, "box", "GPU-1")
    assert only(here, _on(slow, "box", "GPU-1")).verdict is Verdict.REGRESSION
    for elsewhere in (("box", "GPU-2"), ("other", "GPU-1")):
        assert only(here, _on(slow, *elsewhere)).verdict is Verdict.INCONCLUSIVE
    # A GPU's own time is as steady from machine to machine as was assumed of one.
    cold = replace(host, timer="cold")
    before = side_of(cell(STEADY, contract=cold))
    slow = side_of(cell([1.4 * each for each in STEADY], run_id="b", contract=cold))
    assert only(_on(before, "a", "1"), _on(slow, "b", "2")).verdict is Verdict.REGRESSION
