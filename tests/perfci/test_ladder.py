"""Verdicts along a ladder of passes: what raises an alarm, what does not, and what goes on."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from records import cell, summary

from perfci import stats
from perfci.compare import Floor, Side, key_of
from perfci.history.model import Comparison, SeriesKey, Verdict
from perfci.ladder import LOOKS, Thresholds, is_decided, judge, undecided
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
    given.setdefault("floors", _floors(len(ratios)))
    given.setdefault("thresholds", _TIGHT)
    return judge(*_sides(ratios), look=look, **given)


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
    assert _alarms(_judge(ratios[:, :12], 1)) == [("v000", Verdict.REGRESSION)]
    assert _alarms(_judge(-ratios[:, :12], 1)) == [("v000", Verdict.IMPROVEMENT)]


def test_there_is_no_alarm_before_it_is_confirmed() -> None:
    first = _judge(_draw(1, slow=0.05)[:, :6], 0)
    assert first[0].verdict is Verdict.INCONCLUSIVE
    assert first[0].reason == "further passes have yet to confirm it"
    assert first[0].waits
    assert first[0].key in undecided(first)


def test_what_six_passes_had_by_chance_the_next_six_do_not_confirm() -> None:
    ratios = _draw(2, cells=20)
    ratios[0, :6] += 0.1
    ratios[0, 6:] += 0.004  # on that side, and no further than noise
    assert _judge(ratios[:, :6], 0)[0].reason == "further passes have yet to confirm it"
    for look in range(1, len(LOOKS)):
        assert _alarms(_judge(ratios[:, : LOOKS[look]], look)) == []


def test_unchanged_is_inside_the_threshold_and_ends_the_ladder() -> None:
    comparisons = _judge(_draw(3, cells=20), 0, thresholds=Thresholds(default=0.05))
    assert {each.verdict for each in comparisons} == {Verdict.UNCHANGED}
    assert is_decided(comparisons)
    assert undecided(comparisons) == []
