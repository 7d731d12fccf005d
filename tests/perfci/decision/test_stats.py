import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from perfci.decision import stats
from perfci.history.latency import trim

_DEGREES = 10.0
_READINGS = st.lists(st.floats(-5.0, 5.0), min_size=2, max_size=8)


def _spread(value: float) -> stats.Spread:
    return stats.Spread(value=value, degrees=_DEGREES)


def test_one_run_adds_the_assumed_spread_to_what_its_passes_show() -> None:
    run = [1.0, 1.1, 1.3]
    estimate = stats.pool([run], run_spread=_spread(0.02))
    assert estimate.mean == pytest.approx(np.mean(run))
    assert estimate.variance == pytest.approx(np.var(run, ddof=1) / 3 + 0.02**2)


def test_identical_passes_are_no_certainty() -> None:
    estimate = stats.pool([[1.0, 1.0, 1.0]], run_spread=_spread(0.02))
    assert estimate.variance == pytest.approx(0.02**2)
    assert estimate.degrees == pytest.approx(_DEGREES)


def test_runs_that_agree_share_the_assumed_spread() -> None:
    estimate = stats.pool([[1.0, 1.0], [1.0, 1.0]], run_spread=_spread(0.02))
    assert estimate.variance == pytest.approx(0.02**2 / 2)


def test_runs_that_disagree_are_clusters_not_more_passes() -> None:
    runs = [[1.0, 1.001, 0.999], [1.2, 1.201, 1.199]]
    estimate = stats.pool(runs, run_spread=_spread(0.02))
    assert estimate.variance == pytest.approx(np.var([1.0, 1.2], ddof=1) / 2)
    assert estimate.degrees == 1.0


def test_every_run_weighs_the_same() -> None:
    assert stats.pool([[1.0] * 9, [2.0]], run_spread=_spread(0.02)).mean == pytest.approx(1.5)


def test_difference_is_welchs() -> None:
    left, right = [1.0, 1.2, 0.9, 1.4], [2.0, 2.1, 2.6]
    change = stats.subtract(
        stats.pool([right], run_spread=_spread(1e-9)), stats.pool([left], run_spread=_spread(1e-9))
    )
    theirs = scipy_stats.ttest_ind(right, left, equal_var=False)
    assert stats.p_value(change) == pytest.approx(theirs.pvalue)
    low, high = theirs.confidence_interval(0.95)
    assert change.mean - stats.half_width(change, 0.05) == pytest.approx(low)
    assert change.mean + stats.half_width(change, 0.05) == pytest.approx(high)


def test_difference_of_longer_runs_is_yuens() -> None:
    left = [1.0, 1.2, 0.9, 1.4, 1.1, 7.0]
    right = [2.0, 2.1, 2.6, 2.2, 2.3, 2.4, 2.05, 1.9, 2.5, -3.0]
    change = stats.subtract(
        stats.pool([right], run_spread=_spread(1e-9)), stats.pool([left], run_spread=_spread(1e-9))
    )
    theirs = scipy_stats.ttest_ind(right, left, equal_var=False, trim=0.2)
    assert stats.p_value(change) == pytest.approx(theirs.pvalue)


def test_one_disturbed_pass_of_five_moves_nothing() -> None:
    calm = [1.0, 1.01, 1.02, 1.03, 1.04]
    disturbed = [1.0, 1.01, 1.02, 1.03, 9.0]
    assert stats.location(disturbed) == stats.location(calm)
    assert stats.pool([disturbed], run_spread=_spread(0.02)) == stats.pool(
        [calm], run_spread=_spread(0.02)
    )
    assert stats.location([1.0, 2.0, 9.0]) == 4.0


@given(_READINGS, _READINGS)
def test_interval_excludes_zero_exactly_where_it_is_significant(
    left: list[float], right: list[float]
) -> None:
    change = stats.subtract(
        stats.pool([left], run_spread=_spread(0.02)), stats.pool([right], run_spread=_spread(0.02))
    )
    half, p_value = stats.half_width(change, 0.05), stats.p_value(change)
    if abs(abs(change.mean) - half) > 1e-9:
        assert (abs(change.mean) > half) == (p_value < 0.05)


@given(st.lists(st.floats(0.0, 1.0), max_size=40))
def test_adjusted_family_is_scipys(p_values: list[float]) -> None:
    expected = list(scipy_stats.false_discovery_control(p_values)) if p_values else []
    assert stats.adjust(p_values) == pytest.approx(expected)


def test_a_lone_small_p_value_pays_for_its_family() -> None:
    adjusted = stats.adjust([0.001] + [1.0] * 299)
    assert adjusted[0] == pytest.approx(0.3)
    assert math.fsum(adjusted[1:]) == 299.0


def test_passes_of_a_pair_that_agree_by_chance_are_no_certainty() -> None:
    floor = stats.Spread(value=0.02, degrees=11)
    agreed = stats.pool_pairs([[0.1, 0.1, 0.1, 0.1]], floor=floor)
    assert agreed.mean == pytest.approx(0.1)
    assert agreed.variance == pytest.approx(1.15 * 0.02**2 / 4)
    assert agreed.degrees == 11
    spread = [0.1, 0.3, -0.2, 0.2]
    shown = stats.pool_pairs([spread], floor=floor)
    assert shown.variance == pytest.approx(np.var(spread, ddof=1) / 4)
    assert shown.degrees == pytest.approx(3, abs=0.1)


def test_pairs_that_disagree_are_clusters() -> None:
    floor = stats.Spread(value=0.001, degrees=11)
    estimate = stats.pool_pairs([[0.0] * 6, [0.1] * 6], floor=floor)
    assert estimate.mean == pytest.approx(0.05)
    assert estimate.variance == pytest.approx(np.var([0.0, 0.1], ddof=1) / 2)
    assert estimate.degrees == 1.0


def test_the_cost_of_trimming_is_what_it_is_taken_for() -> None:
    source = np.random.default_rng(3)
    locations = [stats.location(source.standard_normal(20).tolist()) for _ in range(20_000)]
    assert np.var(locations) * 20 == pytest.approx(1.15, abs=0.04)


def test_what_passes_show_beyond_the_floor_is_known_by_them_alone() -> None:
    floor = stats.Spread(value=1.0, degrees=50)
    readings = np.random.default_rng(5).standard_normal(8)
    degrees = [
        stats.pool_pairs([(factor * readings).tolist()], floor=floor).degrees
        for factor in (0.1, 2.0, 4.0, 100.0)
    ]
    assert degrees[0] == 50
    assert degrees == sorted(degrees, reverse=True)
    assert degrees[-1] == pytest.approx(5, abs=0.1)


def test_each_row_is_a_family_of_its_own() -> None:
    rows = np.random.default_rng(6).random((3, 7)) ** 4
    adjusted = stats.adjust_rows(rows)
    assert [stats.adjust(row) for row in rows.tolist()] == adjusted.tolist()
    assert stats.adjust_rows(rows, family=5).tolist() == adjusted.tolist()
    larger = stats.adjust([*rows[0], *[1.0] * 93])[:7]
    assert stats.adjust_rows(rows[0], family=100).tolist() == pytest.approx(larger)


@pytest.mark.parametrize("count", [2, 4, 5, 9, 10, 24])
def test_means_and_variances_of_arrays_are_those_of_one_latency(count: int) -> None:
    readings = np.random.default_rng(count).normal(0.0, 1.0, (20, count))
    means, variances, degrees = stats.trimmed(readings)
    spreads, _ = stats.trimmed_spread(readings)
    for row, mean, variance, spread in zip(readings, means, variances, spreads, strict=True):
        one = trim(row.tolist())
        assert (one.mean, one.variance, one.spread) == pytest.approx((mean, variance, spread))
        assert one.degrees == degrees
