"""What a study says of a testbed, and that decisions by it hold on passes that were recorded."""

import json
import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from records import cell, summary

from perfci.decision import stats
from perfci.decision.compare import Side, compare
from perfci.decision.noise import (
    LADDER,
    Study,
    describe_noise,
    find_floors,
    find_studies,
    measure_floor,
    visible_change,
)
from perfci.history.latency import TRIMMED_VARIANCE
from perfci.history.model import NOISE_TRIGGER, Cell, Comparison, RunSummary, Verdict

_RECORDED = json.loads(Path(__file__).with_name("recorded_noise.json").read_text())["cells"]
_STEADY = [1000.0, 1001.0, 999.0, 1002.0, 1000.0, 998.0]


def _run(run_id: str, *, testbed: str = "bench", pair: str = "p", attempt: int = 1) -> RunSummary:
    of = summary(run_id, testbed=testbed)
    return replace(of, trigger=NOISE_TRIGGER, pair=pair, attempt=attempt)


def _cells(run_id: str, number: int, passes: Iterable[int], *, factor: float = 1.0) -> list[Cell]:
    """Some of the recorded passes of one side, as a run's cells."""
    chosen = list(passes)
    return [
        cell([factor * sides[number][each] for each in chosen], run_id=run_id, variant=name)
        for name, sides in ((key.replace("/", "-"), sides) for key, sides in _RECORDED.items())
    ]


def _compared(
    passes: Sequence[int], *, flipped: bool = False, factor: float = 1.0
) -> list[Comparison]:
    """A comparison of as many passes of the study's sides, its floors those of the study."""
    study = (_run("a"), _run("b", attempt=2))
    everything = range(len(passes_of_study()))
    floors = find_floors([study], [*_cells("a", 0, everything), *_cells("b", 1, everything)])
    sides = []
    for run_id, number in (("before", int(flipped)), ("after", 1 - int(flipped))):
        own = _cells(run_id, number, passes, factor=factor if run_id == "after" else 1.0)
        sides.append(Side([replace(summary(run_id), pair="later")], own))
    return compare(*sides, floors=floors)


def passes_of_study() -> list[float]:
    first, _ = next(iter(_RECORDED.values()))
    return [*first]


def test_twenty_comparisons_of_a_busy_machine_with_itself_raise_no_alarm() -> None:
    source = random.Random(7)
    for _ in range(20):
        drawn = source.sample(range(len(passes_of_study())), 6)
        for each in _compared(drawn, flipped=source.random() < 0.5):
            assert each.verdict in (Verdict.UNCHANGED, Verdict.INCONCLUSIVE), each
            assert (each.paired_passes, each.is_studied) == (6, True)


def test_twice_as_slow_is_seen_on_it_wherever_a_study_says_that_it_would_be() -> None:
    study = (_run("a"), _run("b", attempt=2))
    everything = range(len(passes_of_study()))
    cells = [*_cells("a", 0, everything), *_cells("b", 1, everything)]
    rung = LADDER.index(12)
    able = {
        each.key.variant
        for each in describe_noise(study, cells, threshold=0.05)
        if each.visible[rung] < 0.9
    }
    assert len(able) >= 3
    source = random.Random(8)
    for _ in range(10):
        drawn = source.sample(range(len(passes_of_study())), 12)
        slower = {
            each.key.variant
            for each in _compared(drawn, factor=2.0)
            if each.verdict is Verdict.REGRESSION
        }
        assert able <= slower


def test_the_spreads_are_those_of_logarithms() -> None:
    quick, slow = _STEADY, [1.1 * each for each in _STEADY[:3]] + [1.2 * e for e in _STEADY[3:]]
    floor = measure_floor(cell(quick, run_id="a"), cell(slow, run_id="b"))
    assert floor is not None
    inner, cost = np.std(np.log([1.1, 1.2] * 3)), math.sqrt(TRIMMED_VARIANCE)
    assert floor.paired.value == pytest.approx(inner * math.sqrt(6 / 3 * 6 / 4) / cost)
    variances = [np.var(np.log(each), ddof=1) for each in (quick, slow)]
    assert floor.unpaired.value == pytest.approx(np.sqrt(np.mean(variances)))
    assert (floor.paired.degrees, floor.unpaired.degrees) == (3, 5)


def test_a_disturbed_pass_is_none_of_the_paired_spread() -> None:
    calm = [1.0, 1.001, 0.999, 1.002, 0.998, 1.0, 1.001, 0.999, 1.002, 0.998]
    disturbed = [*calm[:-1], 0.5]
    first = cell([1000.0] * 10, run_id="a")
    floors = [
        measure_floor(first, cell([1000.0 * each for each in ratios], run_id="b"))
        for ratios in (calm, disturbed)
    ]
    calm_floor, disturbed_floor = floors
    assert calm_floor is not None
    assert disturbed_floor is not None
    assert disturbed_floor.paired == calm_floor.paired
    assert disturbed_floor.unpaired.value > 10 * calm_floor.unpaired.value


def test_the_paired_spread_of_normal_passes_is_their_standard_deviation() -> None:
    source = np.random.default_rng(12)
    spreads, _ = stats.trimmed_spread(source.normal(0.0, 0.003, (4000, 24)))
    assert np.sqrt(np.mean(spreads**2)) == pytest.approx(0.003, rel=0.03)


def test_sides_that_agree_to_the_last_digit_are_no_certainty() -> None:
    floor = measure_floor(cell(_STEADY, run_id="a"), cell(_STEADY, run_id="b"))
    assert floor is not None
    assert floor.paired.value > 0


@pytest.mark.parametrize("other", [_STEADY[:2], _STEADY[:5]])
def test_without_passes_in_common_there_is_no_floor(other: list[float]) -> None:
    assert measure_floor(cell(_STEADY[:2]), cell(_STEADY[:2])) is None
    assert measure_floor(cell(_STEADY), cell(other)) is None


def _passes(sigma: float, count: int = 60) -> list[float]:
    """Logarithms of the ratios of so many passes, as a normal distribution spreads them."""
    drawn = np.random.default_rng(11).standard_normal(count)
    return (sigma * drawn / drawn.std(ddof=1)).tolist()


def test_more_passes_and_less_noise_see_more() -> None:
    def visible(value: float, passes: int, family: int = 10, threshold: float = 0.005) -> float:
        spread = stats.Spread(value=value, degrees=35)
        ratios = _passes(value)
        return visible_change(
            ratios, spread, passes=passes, threshold=threshold, alpha=0.05, family=family
        )

    ladder = [visible(0.01, passes) for passes in LADDER]
    assert ladder == sorted(ladder, reverse=True)
    assert 0.005 < visible(0.001, 12) < visible(0.01, 12)
    assert visible(0.01, 12, family=10) < visible(0.01, 12, family=1000)
    assert visible(0.0001, 12, threshold=0.05) == pytest.approx(0.05, abs=0.001)


def test_what_a_study_says_would_be_seen_is_seen_in_95_of_100_draws() -> None:
    passes, ratios = 12, _passes(0.004)
    spread, degrees = stats.trimmed_spread(np.array(ratios))
    floor = stats.Spread(value=float(spread), degrees=degrees)
    change = visible_change(ratios, floor, passes=passes, threshold=0.005, alpha=0.05, family=1)
    source = np.random.default_rng(4)
    seen = 0
    for _ in range(600):
        drawn = source.choice(ratios, passes) + np.log1p(change)
        estimate = stats.pool_pairs([drawn.tolist()], floor=floor)
        low = estimate.mean - stats.half_width(estimate, 0.05)
        seen += low > np.log1p(0.005) and stats.p_value(estimate) <= 0.05
    assert seen / 600 == pytest.approx(0.95, abs=0.03)


def test_a_study_is_two_runs_of_a_pair_and_the_newest_come_first() -> None:
    runs = [
        _run("d", pair="q", attempt=4),
        _run("c", pair="q", attempt=3),
        _run("half", pair="r"),
        _run("z", pair="q", testbed="other"),
        _run("b", attempt=2),
        _run("a"),
        replace(summary("x"), pair="s"),
    ]
    found: list[Study] = find_studies(runs)
    assert [(first.run_id, second.run_id) for first, second in found] == [("c", "d"), ("a", "b")]
    assert len(find_studies([_run(str(n), pair=str(n // 2)) for n in range(40)])) == 5


def test_a_cells_floor_is_that_of_the_newest_study_that_has_it() -> None:
    newer = (_run("c", pair="q", attempt=3), _run("d", pair="q", attempt=4))
    older = (_run("a"), _run("b", attempt=2))
    loud = [1.5 * each if n % 2 else each for n, each in enumerate(_STEADY)]
    cells = [
        cell(_STEADY, run_id="c"),
        cell(loud, run_id="d"),
        *(cell(_STEADY, run_id=each) for each in "ab"),
        *(cell(_STEADY, run_id=each, variant="other") for each in "ab"),
    ]
    floors = {key.variant: floor for key, floor in find_floors([newer, older], cells).items()}
    assert floors["tiled"].paired.value > 0.1
    assert floors["other"].paired.value < 1e-5
