"""The one estimate of a latency: by hand, beside scipy, and where passes disagree."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import stdtrit

from perfci.history.latency import (
    Trimmed,
    half_width,
    interquartile_mean,
    latency_of,
    student,
    trim,
)

LATENCIES = st.floats(min_value=1e-3, max_value=1e15)


@pytest.mark.parametrize(
    ("samples", "mean"),
    [
        ((7.0,), 7.0),
        ((1.0, 3.0), 2.0),
        # Three samples: 0.75 of each is trimmed at the ends, a quarter of each stays.
        ((1.0, 2.0, 9.0), (0.25 * 1 + 2 + 0.25 * 9) / 1.5),
        ((1.0, 2.0, 4.0, 100.0), 3.0),
        # Five samples: 1.25 is trimmed at each end.
        ((1.0, 2.0, 3.0, 5.0, 100.0), (0.75 * 2 + 3 + 0.75 * 5) / 2.5),
        ((1.0, 1.0, 2.0, 3.0, 4.0, 5.0, 100.0, 100.0), 3.5),
    ],
)
def test_interquartile_mean_by_hand(samples, mean):
    assert interquartile_mean(samples) == pytest.approx(mean, rel=1e-15)


@given(st.lists(LATENCIES, min_size=1, max_size=60))
def test_interquartile_mean_equals_that_of_every_sample_repeated_four_times(samples):
    # Repeated four times, a quarter is a whole number and plain slicing is right.
    repeated = np.sort(np.repeat(samples, 4))
    middle = repeated[len(samples) : 3 * len(samples)]
    assert interquartile_mean(samples) == pytest.approx(math.fsum(middle) / len(middle), rel=1e-12)


@given(LATENCIES, st.integers(1, 50))
def test_equal_samples_are_their_own_mean(latency, count):
    assert interquartile_mean([latency] * count) == pytest.approx(latency, rel=1e-15)


@given(st.lists(LATENCIES, min_size=1, max_size=30), st.randoms())
def test_reading_order_does_not_change_the_mean(samples, random):
    shuffled = list(samples)
    random.shuffle(shuffled)
    assert interquartile_mean(shuffled) == interquartile_mean(samples)


def test_no_samples_is_an_error():
    with pytest.raises(ValueError, match="at least one sample"):
        interquartile_mean(())


def test_each_pass_weighs_the_same_however_many_samples_it_had_time_for():
    latency = latency_of([10.0] * 6 + [1000.0] * 2, sample_count=602)
    # One of the two slow passes is cut off, with one of the fast; six are left.
    assert latency.typical_ns == pytest.approx(10.0 * 100.0 ** (1 / 6))
    assert latency.interval_ns is not None
    low_ns, high_ns = latency.interval_ns
    assert low_ns < 10.0 < high_ns
    assert latency.span.far == 8


def test_one_disturbed_pass_of_five_moves_nothing_and_is_told_of():
    calm, disturbed = (
        latency_of((10.0, 10.1, 9.9, 10.0, last), sample_count=5) for last in (10.2, 500.0)
    )
    assert disturbed.typical_ns == calm.typical_ns
    assert (calm.span.far, disturbed.span.far) == (0, 1)


@pytest.mark.parametrize(("last", "far"), [(14.9, 0), (15.1, 1), (6.67, 0), (6.66, 1)])
def test_a_pass_is_far_from_half_as_much_again_on(last, far):
    assert latency_of((10.0, 10.0, 10.0, 10.0, last), sample_count=5).span.far == far


@given(LATENCIES, st.integers(1, 12))
def test_of_equal_passes_the_latency_is_what_they_read(latency_ns, count):
    latency = latency_of((latency_ns,) * count, sample_count=count)
    assert latency.typical_ns == latency_ns
    assert latency.interval_ns == (None if count == 1 else (latency_ns, latency_ns))


def test_the_interval_is_yuens():
    means_ns = [10.0, 10.1, 10.2, 10.4, 11.0, 30.0]
    logs = np.log(means_ns)
    winsorised = np.clip(logs, logs[1], logs[4])
    spread = math.sqrt(np.var(winsorised, ddof=0) * 6 / 3 / 4)
    latency = latency_of(means_ns, sample_count=6)
    assert latency.typical_ns == pytest.approx(math.exp(logs[1:5].mean()))
    half = float(stdtrit(3, 0.975)) * spread
    assert half_width(logs.tolist()) == pytest.approx(half)
    assert latency.half_width == pytest.approx(math.expm1(half))


def test_one_pass_has_no_interval():
    latency = latency_of((7.0,), sample_count=50)
    assert (latency.typical_ns, latency.interval_ns, latency.half_width) == (7.0, None, None)
    assert half_width([0.0]) == math.inf


@pytest.mark.parametrize("means_ns", [(0.0, 4.0), (-2.0, 6.0)])
def test_what_no_clock_reads_has_a_plain_mean_and_no_interval(means_ns):
    latency = latency_of(means_ns, sample_count=2)
    assert (latency.typical_ns, latency.interval_ns) == (2.0, None)


def test_passes_that_disagree_beyond_all_sense_have_a_finite_interval():
    latency = latency_of((1e-3, 1e15), sample_count=2)
    assert latency.interval_ns is not None
    assert all(map(math.isfinite, latency.interval_ns))


def test_no_passes_are_an_error():
    with pytest.raises(ValueError, match="at least one pass"):
        latency_of((), sample_count=0)
    with pytest.raises(ValueError, match="at least one reading"):
        trim(())


@pytest.mark.parametrize("degrees", [*range(1, 12), 29, 47, 599, 600])
def test_students_t_is_scipys(degrees):
    assert student(degrees) == pytest.approx(float(stdtrit(degrees, 0.975)), rel=1e-12)


def test_a_spread_is_that_of_normal_readings():
    readings = np.random.default_rng(3).normal(0.0, 0.004, (4000, 12))
    spreads = [trim(each.tolist()).spread for each in readings]
    assert math.sqrt(np.mean(np.square(spreads))) == pytest.approx(0.004, rel=0.03)
    few = trim([1.0, 2.0, 4.0])
    assert few == Trimmed(mean=pytest.approx(7 / 3), squares=pytest.approx(14 / 3), kept=3, count=3)
    assert few.spread == pytest.approx(np.std([1.0, 2.0, 4.0], ddof=1))


def test_the_interval_holds_the_latency_as_often_as_it_says():
    readings = np.random.default_rng(4).normal(0.0, 0.01, (4000, 10))
    held = sum(abs(trim(each).mean) <= half_width(each) for each in readings.tolist())
    assert held / 4000 == pytest.approx(0.95, abs=0.012)
