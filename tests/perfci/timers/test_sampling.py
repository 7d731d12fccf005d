"""When there are enough samples, and when a kernel is warm."""

import math
from collections.abc import Sequence
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfci.history.model import Stop
from perfci.timers.sampling import (
    MINIMUM_SAMPLES,
    SCARCE_SAMPLES,
    TARGET,
    WARM_UP_CALLS,
    collect,
    median_half_width,
    warm_up,
)

_LATENCIES = st.lists(st.floats(1e-3, 1e9), min_size=1, max_size=200)


@given(_LATENCIES)
def test_the_interval_is_no_wider_than_the_range(samples: list[float]) -> None:
    width = median_half_width(samples)
    assert 0 <= 2 * width * min(samples) <= (max(samples) - min(samples)) * (1 + 1e-9)


@given(_LATENCIES, st.floats(1e-3, 1e3))
def test_the_interval_is_relative(samples: list[float], scale: float) -> None:
    scaled = median_half_width([scale * each for each in samples])
    assert scaled == pytest.approx(median_half_width(samples), rel=1e-9, abs=1e-12)


def test_the_interval_is_that_of_the_ranks() -> None:
    ordered = [float(each) for each in range(1, 101)]
    assert median_half_width(ordered) == pytest.approx((61 - 41) / 2 / 50.5)


def test_steady_samples_converge_at_the_least_number() -> None:
    samples, stop = collect(lambda: [10.0], budget_s=60)
    assert (len(samples), stop) == (MINIMUM_SAMPLES, Stop.CONVERGED)


def test_more_samples_are_read_until_the_median_is_known() -> None:
    numbers = count()

    def read() -> Sequence[float]:
        index = next(numbers)
        return [1000.0 + (0 if index >= 60 else index % 2 * 100)]

    samples, stop = collect(read, budget_s=60)
    assert stop is Stop.CONVERGED
    assert len(samples) == 2 * MINIMUM_SAMPLES
    assert median_half_width(samples[:MINIMUM_SAMPLES]) > TARGET
    assert median_half_width(samples) <= TARGET


def test_two_modes_that_never_narrow_are_stable_above_the_target() -> None:
    numbers = count()
    samples, stop = collect(lambda: [1.0 + next(numbers) % 2], budget_s=60)
    assert (len(samples), stop) == (4 * MINIMUM_SAMPLES, Stop.STABILISED)


@pytest.mark.parametrize("batch", [1, 3])
def test_a_budget_that_is_spent_ends_it_with_a_few_at_the_least(batch: int) -> None:
    numbers = count()
    samples, stop = collect(lambda: [1.0 + next(numbers) % 2] * batch, budget_s=-1)
    assert stop is Stop.OUT_OF_TIME
    assert len(samples) == math.ceil(SCARCE_SAMPLES / batch) * batch


def test_a_budget_that_is_spent_may_have_sufficed() -> None:
    samples, stop = collect(lambda: [1.0] * 60, budget_s=-1)
    assert (len(samples), stop) == (60, Stop.CONVERGED)


def test_a_warm_kernel_is_called_often_enough_and_read_twice() -> None:
    calls, reads = count(), count()
    warm_up(lambda: next(calls), lambda: (next(reads), [1.0] * 20)[1], budget_s=60)
    assert next(calls) >= WARM_UP_CALLS
    assert next(reads) == 2


def test_a_kernel_that_becomes_faster_is_read_until_it_holds() -> None:
    reads = count()

    def read() -> Sequence[float]:
        return [1.0 + 2.0 ** -next(reads)] * 20

    warm_up(lambda: None, read, budget_s=60)
    assert 2.0 ** -(next(reads) - 1) < 0.06


def test_a_kernel_that_never_holds_is_left_to_the_passes() -> None:
    reads = count()
    warm_up(lambda: None, lambda: [2.0 ** next(reads)], budget_s=0)
    assert next(reads) == 0
    warm_up(lambda: None, lambda: [float(10 ** (next(reads) % 2))] * 20, budget_s=0.1)
    assert next(reads) > 2
