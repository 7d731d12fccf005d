"""Verdicts along a ladder of passes: what raises an alarm, what does not, and what goes on."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from records import cell, summary

from perfci.decision import stats
from perfci.decision.compare import Floor, Side, compare, key_of
from perfci.decision.ladder import LOOKS, Thresholds, is_decided, judge, undecided
from perfci.history.model import Comparison, SeriesKey, Status, Verdict
from perfci.timers import TIMERS

_SIGMA = 0.004
_COLD = TIMERS["cuda_cold"].contract
_KEY = key_of(cell([1.0], contract=_COLD), summary().environment)
_TIGHT = Thresholds(default=0.005)

Ratios = np.ndarray
"""The logarithms of passes' ratios, of shape (cells, passes)."""


def _name(number: int) -> str:
    return f"v{number:03}"


def _floors(cells: int, value: float = _SIGMA) -> dict[SeriesKey, Floor]:
    spread = stats.Spread(value=value, degrees=59)
    floor = Floor(unpaired=spread, paired=spread)
    return {replace(_KEY, variant=_name(each)): floor for each in range(cells)}


def _sides(ratios: Ratios) -> tuple[Side, Side]:
    """Both sides of one pair of runs that measured cells of 10 µs."""
    sides = []
    for run_id, logs in (("before", np.zeros_like(ratios)), ("after", ratios)):
        cells = [
            cell((1e4 * np.exp(row)).tolist(), run_id=run_id, variant=_name(each), contract=_COLD)
            for each, row in enumerate(logs)
        ]
        sides.append(Side([replace(summary(run_id), pair="p")], cells))
    return sides[0], sides[1]


def _judge(ratios: Ratios, look: int, **given: Any) -> list[Comparison]:
    """What is said of so many passes as there are at a look."""
    given.setdefault("floors", _floors(len(ratios)))
    given.setdefault("thresholds", _TIGHT)
    return judge(*_sides(ratios[:, : LOOKS[look]]), look=look, **given)


def _draw(seed: int, cells: int = 300, *, slow: float = 0.0, sigma: float = _SIGMA) -> Ratios:
    """Passes of a gate, the first cell slower by as much as ``slow``."""
    ratios = np.random.default_rng(seed).normal(0.0, sigma, (cells, LOOKS[-1]))
    ratios[0] += np.log1p(slow)
    return ratios


def _alarms(comparisons: Sequence[Comparison]) -> list[tuple[str, Verdict]]:
    return [
        (each.key.variant, each.verdict)
        for each in comparisons
        if each.verdict in (Verdict.REGRESSION, Verdict.IMPROVEMENT)
    ]


def test_five_per_cent_in_one_of_three_hundred_cells_is_called_after_twelve_passes() -> None:
    ratios = _draw(1, slow=0.05)
    assert _alarms(_judge(ratios, 1)) == [("v000", Verdict.REGRESSION)]
    assert _alarms(_judge(-ratios, 1)) == [("v000", Verdict.IMPROVEMENT)]


def test_there_is_no_alarm_before_it_is_confirmed() -> None:
    first = _judge(_draw(1, slow=0.05), 0)
    assert first[0].verdict is Verdict.INCONCLUSIVE
    assert first[0].reason == "suspected, not confirmed: 6 more passes decide"
    assert first[0].smallest_visible_change is None
    assert first[0].waits
    assert first[0].key in undecided(first)


@pytest.mark.parametrize(
    ("passes", "more"), [(6, "6 more passes decide"), (8, "4 more passes"), (11, "1 more pass ")]
)
def test_the_passes_that_are_left_are_counted_where_the_budget_ended_between_looks(
    passes: int, more: str
) -> None:
    reason = _judge(_draw(1, slow=0.05)[:, :passes], 1)[0].reason
    assert reason.startswith(f"suspected, not confirmed: {more}")


def test_what_six_passes_had_by_chance_the_next_six_do_not_confirm() -> None:
    ratios = _draw(2, cells=20)
    ratios[0, :6] += 0.1
    ratios[0, 6:] += 0.004  # on that side, and no further than noise
    assert _judge(ratios, 0)[0].reason == "suspected, not confirmed: 6 more passes decide"
    for look in range(1, len(LOOKS)):
        assert _alarms(_judge(ratios, look)) == []


def test_further_passes_confirm_by_themselves_and_not_by_what_they_are_to_confirm() -> None:
    steps = np.array([-1.0, 1.0, 0.0, 0.5, -0.5, 0.0] * 2) * _SIGMA
    for after, verdict in ((0.007, Verdict.INCONCLUSIVE), (0.02, Verdict.REGRESSION)):
        ratios = (steps + np.repeat([0.02, after], 6))[np.newaxis]
        comparison = _judge(ratios, 1)[0]
        assert comparison.interval is not None
        assert comparison.interval[0] > 1.005
        assert comparison.verdict is verdict
        suspected = "suspected, not confirmed: 12 more passes decide"
        assert comparison.reason == suspected * (after < 0.02)


def test_fewer_than_six_passes_confirm_nothing() -> None:
    ratios = _draw(17, cells=1, slow=0.05)
    assert [_judge(ratios[:, :passes], 1)[0].verdict for passes in (11, 12)] == [
        Verdict.INCONCLUSIVE,
        Verdict.REGRESSION,
    ]


def test_unchanged_is_inside_the_threshold_and_ends_the_ladder() -> None:
    comparisons = _judge(_draw(3, cells=20), 0, thresholds=Thresholds(default=0.05))
    assert {each.verdict for each in comparisons} == {Verdict.UNCHANGED}
    assert is_decided(comparisons)
    assert undecided(comparisons) == []


def test_a_cell_waits_where_more_passes_can_decide_it_and_else_not() -> None:
    quiet = _judge(_draw(4, cells=20), 0)
    assert undecided(quiet) == [each.key for each in quiet if each.verdict is Verdict.INCONCLUSIVE]
    assert undecided(quiet)
    assert is_decided(_judge(_draw(4, cells=20), 3))
    loud = _judge(_draw(4, cells=1, sigma=0.2), 1, floors=_floors(1, 0.2))
    assert (loud[0].verdict, loud[0].waits) == (Verdict.INCONCLUSIVE, False)


def test_what_stands_out_at_the_last_rung_alone_needs_passes_that_confirm_it() -> None:
    ratios = _draw(5, cells=20, sigma=0.001)
    ratios[0, :24] += 0.004
    ratios[0, 24:48] += 0.02
    ratios[1] = ratios[0]
    ratios[1, 48:] = 0.0
    ratios[0, 48:] += 0.02
    assert _alarms(_judge(ratios, 2)) == []
    last_rung = _judge(ratios, 3, floors=_floors(20, 0.001))
    assert undecided(last_rung) == [each.key for each in last_rung[:2]]
    assert last_rung[0].reason == "suspected, not confirmed: 24 more passes decide"
    confirmed, fading, *_ = _judge(ratios, 4, floors=_floors(20, 0.001))
    assert (confirmed.verdict, confirmed.waits) == (Verdict.REGRESSION, False)
    assert (fading.verdict, fading.waits) == (Verdict.INCONCLUSIVE, False)
    assert last_rung[1].smallest_visible_change is None


def test_a_change_inside_the_noise_of_a_pass_is_not_called_and_not_called_unchanged() -> None:
    ratios = _draw(6, cells=20, slow=0.008, sigma=0.001)
    called = _judge(ratios, 3, floors=_floors(20, 0.001))[0]
    hidden = _judge(ratios, 3, floors=_floors(20, 0.02))[0]
    assert called.verdict is Verdict.REGRESSION
    assert hidden.verdict is Verdict.INCONCLUSIVE
    ratios = _draw(6, cells=20, slow=0.016, sigma=0.001)
    heard = _judge(ratios, 3, floors=_floors(20, 0.015))[0]
    assert (heard.verdict, heard.reason) == (
        Verdict.INCONCLUSIVE,
        "the interval reaches into the noise of this cell",
    )


def test_the_noise_of_a_cell_that_was_not_studied_is_assumed() -> None:
    little, much = _draw(7, cells=5, slow=0.008), _draw(7, cells=5, slow=0.03)
    assert _judge(little, 3)[0].verdict is Verdict.REGRESSION
    assumed = _judge(little, 3, floors={})[0]
    assert (assumed.verdict, assumed.is_studied) == (Verdict.INCONCLUSIVE, False)
    assert _judge(much, 1, floors={})[0].verdict is Verdict.REGRESSION


def test_sides_that_were_processes_are_judged_by_the_noise_of_two_passes() -> None:
    before, after = _sides(_draw(7, cells=5, slow=0.03)[:, : LOOKS[2]])
    elsewhere = Side(
        after.runs,
        [replace(each, identity=(("own environment", "x"),)) for each in after.cells],
    )
    spread, quiet = (stats.Spread(value=each, degrees=59) for each in (0.05, _SIGMA))
    floors = dict.fromkeys(_floors(5), Floor(unpaired=spread, paired=quiet))
    given: dict[str, Any] = {"look": 2, "thresholds": _TIGHT, "floors": floors}
    assert judge(before, after, **given)[0].verdict is Verdict.REGRESSION
    assert judge(before, elsewhere, **given)[0].verdict is Verdict.INCONCLUSIVE


def test_disturbed_passes_raise_no_alarm_and_hide_none() -> None:
    ratios = _draw(8, cells=10, slow=0.05)
    for row in range(10):
        ratios[row, (row % 6) :: 6] += 0.5 if row % 2 else -0.5
    assert _alarms(_judge(ratios, 1)) == []
    assert _alarms(_judge(ratios, 2)) == [("v000", Verdict.REGRESSION)]


def test_a_day_that_is_louder_than_the_study_raises_no_alarm() -> None:
    louder, called = 4 * _SIGMA, 0
    for seed in range(20):
        ratios = _draw(seed, sigma=louder)
        for look in range(1, len(LOOKS)):
            assert _alarms(_judge(ratios, look)) == []
        called += len(
            _alarms(compare(*_sides(ratios[:, :6]), threshold=0.005, floors=_floors(300)))
        )
    assert called  # each cell by its own scale is not enough


def test_a_cell_that_is_fast_in_some_passes_and_slow_in_others_raises_no_alarm() -> None:
    ratios = _draw(9, cells=20)
    ratios[0] = np.where(np.arange(LOOKS[-1]) % 6 == 5, -0.13, 0.13)
    comparison = _judge(ratios, 1)[0]
    assert comparison.verdict is Verdict.INCONCLUSIVE
    assert comparison.reason == "not significant among so many cells"


def test_what_failed_is_said_as_by_a_comparison() -> None:
    before, after = _sides(_draw(10, cells=4)[:, :6])
    wrong, gone, new, _ = after.cells
    bad = replace(wrong, status=Status.WRONG_VALUES, latency=None, message="off by 3")
    sides = (
        Side(before.runs, [each for each in before.cells if each.variant != new.variant]),
        Side(after.runs, [bad, *after.cells[2:]]),
    )
    judged = judge(*sides, look=0, thresholds=_TIGHT, floors={})
    assert judged[:3] == compare(*sides)[:3]
    assert [each.verdict for each in judged[:3]] == [
        Verdict.INCORRECT,
        Verdict.MISSING,
        Verdict.NEW,
    ]
    assert gone.variant == "v001"


def test_sides_that_were_not_measured_together_are_not_judged() -> None:
    before, after = _sides(_draw(10, cells=2)[:, :6])
    apart = Side([replace(run, pair="q") for run in after.runs], after.cells)
    judged = judge(before, apart, look=0, thresholds=_TIGHT, floors={})
    assert {each.verdict for each in judged} == {Verdict.INCONCLUSIVE}
    assert judged[0].reason == "the sides were not measured in the same passes"
    assert is_decided(judged)


def test_a_cell_that_was_decided_and_measured_no_more_stays_decided() -> None:
    ratios = _draw(11, cells=20, slow=0.05)
    before, after = _sides(ratios[:, :48])
    early = _sides(ratios[:1, :12])
    sides = [
        Side(side.runs, [*first.cells, *side.cells[1:]])
        for side, first in zip((before, after), early, strict=True)
    ]
    judged = judge(*sides, look=3, thresholds=_TIGHT, floors=_floors(20))
    assert (judged[0].verdict, judged[0].paired_passes) == (Verdict.REGRESSION, 12)
    assert judged[1].paired_passes == 48


def test_passes_of_several_runs_are_in_the_order_of_their_runs_and_no_later_one_counts() -> None:
    ratios = _draw(12, cells=3, slow=0.05)[:, :24]
    whole = _judge(ratios, 1)
    parts = []
    for side in range(2):
        runs, cells = [], []
        for number in (2, 1, 0):
            part = _sides(ratios[:, 8 * number : 8 * number + 8])[side]
            name = f"{side}{number}"
            started = part.runs[0].started_at + timedelta(minutes=number)
            runs.append(replace(part.runs[0], run_id=name, pair=str(number), started_at=started))
            cells += [replace(each, run_id=name) for each in part.cells]
        parts.append(Side(runs, cells))
    judged = judge(*parts, look=1, thresholds=_TIGHT, floors=_floors(3))
    assert [each.interval for each in judged] == [
        pytest.approx(each.interval, rel=1e-9) for each in whole
    ]
    assert {each.paired_passes for each in judged} == {12}


def test_a_larger_family_asks_for_more() -> None:
    ratios = _draw(13, cells=1, slow=0.014, sigma=0.006)
    floors = _floors(1, 0.006)
    alone = _judge(ratios, 1, floors=floors)[0]
    among = _judge(ratios, 1, floors=floors, family=10_000)[0]
    assert alone.smallest_visible_change is not None
    assert among.smallest_visible_change is not None
    assert alone.smallest_visible_change < among.smallest_visible_change
    assert alone.interval == among.interval


def test_swapping_the_sides_swaps_the_verdicts() -> None:
    ratios = np.random.default_rng(14).normal(0.0, 0.02, (30, 1)) + _draw(14, cells=30)
    mirrored = {
        Verdict.REGRESSION: Verdict.IMPROVEMENT,
        Verdict.IMPROVEMENT: Verdict.REGRESSION,
    }
    for look in range(len(LOOKS)):
        there, back = _judge(ratios, look), _judge(-ratios, look)
        assert [mirrored.get(each.verdict, each.verdict) for each in there] == [
            each.verdict for each in back
        ]


def test_a_threshold_is_the_cases_else_the_kernels_else_the_default() -> None:
    thresholds = Thresholds(default=0.05, kernels={"rope": 0.02}, cases={("rope", "odd"): 0.1})
    assert thresholds.of(replace(_KEY, case="odd")) == 0.1
    assert thresholds.of(_KEY) == 0.02
    assert thresholds.of(replace(_KEY, kernel="norm", case="odd")) == 0.05
    ratios = _draw(15, cells=3, slow=0.03)
    wide = Thresholds(default=0.005, cases={("rope", "headline"): 0.05})
    assert _judge(ratios, 3)[0].verdict is Verdict.REGRESSION
    assert _judge(ratios, 3, thresholds=wide)[0].verdict is Verdict.UNCHANGED


@pytest.mark.parametrize("bad", [0.0, -0.1, float("nan"), float("inf")])
def test_a_threshold_that_means_nothing_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="out of range"):
        Thresholds(kernels={"rope": bad})


@pytest.mark.parametrize(("look", "alpha"), [(-1, 0.05), (5, 0.05), (0, 0.0), (0, 1.0)])
def test_a_look_that_there_is_not_is_refused(look: int, alpha: float) -> None:
    with pytest.raises(ValueError, match="out of range"):
        judge(*_sides(_draw(1, cells=1)), look=look, alpha=alpha, thresholds=_TIGHT, floors={})


_RECORDED = json.loads(Path(__file__).with_name("recorded_noise.json").read_text())["cells"]


def test_gates_on_a_busy_machine_raise_no_alarm_and_see_what_is_twice_as_slow() -> None:
    """Passes of both sides of the same code, recorded on a CPU with other work to do."""
    sides = np.log(np.array([*_RECORDED.values()]))
    recorded = sides[:, 1] - sides[:, 0]
    spread, degrees = stats.trimmed_spread(recorded)
    floors = {
        replace(_KEY, variant=_name(number)): Floor(unpaired=of, paired=of)
        for number, value in enumerate(spread)
        for of in [stats.Spread(value=float(value), degrees=degrees)]
    }
    source = np.random.default_rng(16)
    seen = []
    for _ in range(20):
        drawn = recorded[:, source.integers(recorded.shape[1], size=LOOKS[-1])]
        given: dict[str, Any] = {"floors": floors, "thresholds": Thresholds()}
        for look in range(len(LOOKS)):
            assert _alarms(_judge(drawn * source.choice([-1, 1]), look, **given)) == []
        slower = dict(_alarms(_judge(drawn + np.log(2.0), 2, **given)))
        assert set(slower.values()) == {Verdict.REGRESSION}
        seen.append(len(slower))
    assert min(seen) >= 3
    assert np.mean(seen) > 4
