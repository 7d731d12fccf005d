"""Which end a commit is like, by figures that are known."""

import math

import numpy as np
import pytest

from perfci.bisect import likeness
from perfci.bisect.bisection import Likeness
from perfci.decision import stats

_FLOOR = stats.Spread(value=0.02, degrees=10.0)


def _estimate(change: float, passes: int = 6, seed: int = 0) -> stats.Estimate:
    noise = np.random.default_rng(seed).normal(0.0, 0.02, passes)
    return stats.pool_pairs([(math.log(change) + noise).tolist()], floor=_FLOOR)


@pytest.mark.parametrize(
    ("change", "is_like"), [(1.0, Likeness.GOOD), (1.3, Likeness.BAD), (1.5, Likeness.BAD)]
)
def test_six_passes_place_a_commit_at_an_end(change: float, is_like: Likeness) -> None:
    answer = likeness.place(_estimate(change), _estimate(1.3, 12, 1), is_last=False)
    assert answer.likeness is is_like
    assert answer.error < likeness.ERROR
    assert not answer.is_part


def test_what_lies_between_the_ends_is_not_guessed() -> None:
    half = _estimate(math.sqrt(1.1))
    answer = likeness.place(half, _estimate(1.1, 12, 1), is_last=False)
    assert answer.likeness is None


def test_where_no_more_passes_come_a_part_of_the_change_is_bad() -> None:
    half, change = _estimate(math.sqrt(1.3), 72), _estimate(1.3, 72, 1)
    assert likeness.place(half, change, is_last=False).likeness is None
    answer = likeness.place(half, change, is_last=True)
    assert (answer.likeness, answer.is_part) == (Likeness.BAD, True)


def test_hardly_a_verdict_in_a_hundred_is_wrong() -> None:
    change = _estimate(1.06, 12, 1)
    wrong = sum(
        likeness.place(_estimate(1.0, 6, seed), change, is_last=False).likeness is Likeness.BAD
        for seed in range(2, 502)
    )
    assert wrong <= 5


def test_a_check_that_may_go_either_way_is_asked_more_often() -> None:
    assert likeness.count_needed(6, 6) == 2
    assert likeness.count_needed(3, 6) > 5
    needed = likeness.count_needed(1, 6)
    assert likeness.chance_right(1, 6, times=needed) <= likeness.ERROR
    assert likeness.chance_right(1, 6, times=needed - 1) > likeness.ERROR


def test_trust_is_in_all_verdicts_together() -> None:
    assert likeness.trust([]) == 1.0
    assert likeness.trust([0.01, 0.02]) == pytest.approx(0.99 * 0.98)
