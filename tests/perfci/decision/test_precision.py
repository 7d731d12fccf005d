"""When there are enough passes."""

import math
from functools import partial

import numpy as np
import pytest

from perfci.decision.precision import FEWEST_PASSES, MOST_PASSES, Precision, half_width, stop_of
from perfci.history.latency import latency_of, trim
from perfci.history.model import Stop

_STEADY = [1000.0, 1000.5, 999.5, 1000.2]
_WILD = [1000.0, 1500.0, 900.0, 1200.0]
_UNSURE = [1000.0, 1010.0, 990.0, 1004.0]


def _is_over(*means_ns: list[float], passes: int, spent_s: float = 1.0) -> bool:
    precision = Precision(target=0.005, budget_s=100.0)
    return precision.is_over(means_ns, passes=passes, spent_s=spent_s)


def test_the_interval_is_that_of_the_latency_that_is_shown() -> None:
    shown = latency_of((*_UNSURE, 1500.0), sample_count=5)
    assert shown.half_width == pytest.approx(math.expm1(half_width((*_UNSURE, 1500.0))))
    assert half_width([1000.0]) == math.inf


@pytest.mark.parametrize(
    ("means_ns", "stop"),
    [
        (_STEADY, Stop.CONVERGED),
        (_WILD, Stop.STABILISED),
        (_UNSURE, Stop.OUT_OF_TIME),
        (_WILD[:2], Stop.OUT_OF_TIME),
        (_UNSURE * (MOST_PASSES // 4), Stop.CONVERGED),
        (_WILD * (MOST_PASSES // 4), Stop.STABILISED),
    ],
)
def test_how_a_cell_ended(means_ns: list[float], stop: Stop) -> None:
    assert stop_of(means_ns, target=0.005) is stop


def test_passes_are_added_until_the_last_cell_is_known_or_cannot_be() -> None:
    assert not _is_over(_STEADY, _UNSURE, passes=4)
    assert _is_over(_STEADY, _WILD, passes=4)
    assert _is_over(_STEADY, passes=4)


def test_a_few_are_the_least_and_many_the_most() -> None:
    assert not _is_over(passes=0)
    assert not _is_over(_STEADY[:2], passes=FEWEST_PASSES - 1)
    assert _is_over(_UNSURE, passes=MOST_PASSES)
    assert _is_over(passes=1)  # nothing that is timed is left


def test_a_pass_that_would_outlast_the_budget_is_not_begun() -> None:
    assert not _is_over(_UNSURE, passes=4, spent_s=79.0)
    assert _is_over(_UNSURE, passes=4, spent_s=81.0)


def test_an_interval_that_ends_a_run_holds_the_truth_nearly_as_often_as_it_says() -> None:
    # Disturbed in one pass of ten, to one side. Of cells that are each left alone as soon as they
    # are known by themselves, those stop early that no disturbance has met.
    source = np.random.default_rng(1)
    precision = Precision(target=0.01, budget_s=math.inf)
    truth = np.mean([trim(each.tolist()).mean for each in _disturbed(source, 4000)])

    def passes_for(*run: list[float]) -> int:
        enough = partial(precision.is_over, spent_s=0)
        return next(n for n in range(1, 99) if enough([each[:n] for each in run], passes=n))

    def is_held(means: list[float]) -> bool:
        return bool(abs(trim(np.log(means).tolist()).mean - truth) <= half_width(means))

    together, alone = [], []
    for _ in range(600):
        run = np.exp(_disturbed(source, 8)).tolist()
        passes = passes_for(*run)
        together += [is_held(each[:passes]) for each in run]
        alone += [is_held(each[: passes_for(each)]) for each in run]
    assert np.mean(together) > 0.94
    assert np.mean(alone) < 0.93


def _disturbed(source: np.random.Generator, cells: int) -> np.ndarray:
    """Logarithms of what so many cells read in as many passes as there may be."""
    disturbed = source.random((cells, MOST_PASSES)) < 0.1
    return source.normal(0.0, 0.008, (cells, MOST_PASSES)) + 0.03 * disturbed
