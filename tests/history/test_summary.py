import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from records import measurement, run

from perfci.history.model import Pass, Status
from perfci.history.summary import cell, interquartile_mean, run_summary, summarise

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


def test_summary_pools_samples_but_keeps_the_passes_apart():
    passes = (
        Pass(index=0, samples_ns=(4.0, 1.0, 2.0, 100.0)),
        Pass(index=1, samples_ns=(3.0,)),
    )
    latency = summarise(passes)
    assert latency.pass_means_ns == (3.0, 3.0)
    assert (latency.minimum_ns, latency.median_ns, latency.sample_count) == (1.0, 3.0, 5)
    assert (latency.lower_quartile_ns, latency.upper_quartile_ns) == (2.0, 4.0)
    assert all(type(each) is float for each in (latency.median_ns, *latency.pass_means_ns))
    assert type(latency.sample_count) is int


def test_cell_has_a_latency_only_where_there_are_samples():
    passed = measurement((5.0,))
    assert cell("r1", passed).latency == summarise(passed.passes)
    failed = cell("r1", measurement(case="b", status=Status.TIMEOUT))
    assert (failed.run_id, failed.case, failed.latency) == ("r1", "b", None)


def test_run_summary_counts_statuses_in_their_own_order():
    statuses = [Status.TIMEOUT, Status.SKIPPED, Status.BUILD_FAILED, Status.TIMEOUT]
    cells = [measurement(case=f"c{n}", status=each) for n, each in enumerate(statuses)]
    anchor = measurement(kernel="perfci_copy", status=Status.TIMEOUT)
    recorded = run(*cells, anchor, run_id="r1")
    summary = run_summary(recorded)
    assert summary.status_counts == (
        (Status.BUILD_FAILED, 1),
        (Status.TIMEOUT, 2),
        (Status.SKIPPED, 1),
    )
    assert (summary.run_id, summary.commit, summary.trigger) == ("r1", recorded.commit, "local")
