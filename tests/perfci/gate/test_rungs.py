"""A measurement that climbs the ladder of passes, with a clock and a judge of the test's."""

from collections.abc import Collection

import pytest

from perfci.decision.ladder import LOOKS
from perfci.gate.matching import Name
from perfci.gate.rungs import Ending, Rows, Rungs, find_pace

_CELL: Name = ("rope", "tiled", "headline")


def _climb(
    rungs: Rungs, *, pass_s: float, first_s: float = 0.0, alive: int = LOOKS[-1] + 1
) -> tuple[int, float]:
    """How many passes it takes and how long, of passes of that length; some cell lives so many."""
    passes, spent_s = 0, 1.0
    while not rungs.is_over(
        lambda: [(), ()], passes=passes, spent_s=spent_s, can_go_on=passes < alive
    ):
        passes += 1
        spent_s += first_s + pass_s if passes == 1 else pass_s
    return passes, spent_s


def _decided_at(look: int) -> Rungs:
    def find_waiting(_: Rows, at: int) -> Collection[Name]:
        return () if at >= look else {_CELL}

    return Rungs(budget_s=1000.0, find_waiting=find_waiting)


@pytest.mark.parametrize("look", range(len(LOOKS)))
def test_passes_are_added_until_nothing_waits(look: int) -> None:
    rungs = _decided_at(look)
    assert _climb(rungs, pass_s=1.0)[0] == LOOKS[look]
    assert (rungs.ending, rungs.look) == (Ending.DECIDED, look)


def test_only_the_cells_that_wait_get_further_passes() -> None:
    rungs = _decided_at(len(LOOKS))
    assert rungs.waiting is None
    assert _climb(rungs, pass_s=1.0)[0] == LOOKS[-1]
    assert rungs.ending is Ending.OUT_OF_PASSES
    assert rungs.waiting == {_CELL}


@pytest.mark.parametrize("alive", [0, 1, 3, LOOKS[1] + 1])
def test_where_no_cell_can_go_on_it_ends_at_once_after_the_first_pass(alive: int) -> None:
    rungs = _decided_at(len(LOOKS))
    passes, spent_s = _climb(rungs, pass_s=1.0, alive=alive)
    assert (passes, rungs.ending) == (max(1, alive), Ending.NOTHING_LEFT)
    assert rungs.needed_s == spent_s


def test_a_rung_that_would_outlast_the_budget_is_not_begun() -> None:
    rungs = _decided_at(3)
    rungs.budget_s = 100.0
    passes, spent_s = _climb(rungs, pass_s=3.0)
    assert (passes, rungs.ending, rungs.look) == (LOOKS[2], Ending.OUT_OF_TIME, 3)
    assert rungs.needed_s == pytest.approx(spent_s + 3.0 * (LOOKS[3] - LOOKS[2]))


def test_a_rung_of_fewer_cells_takes_less_time() -> None:
    rungs = _decided_at(1)
    rungs.budget_s, rungs.cells = 40.0, 10
    assert not rungs.is_over(lambda: [(), ()], passes=0, spent_s=0.0, can_go_on=True)
    for passes in range(1, LOOKS[0] + 1):
        assert not rungs.is_over(
            lambda: [(), ()], passes=passes, spent_s=5.0 * passes, can_go_on=True
        )
    assert rungs.needed_s == pytest.approx(30.0 + 0.5 * (LOOKS[1] - LOOKS[0]))


def test_a_first_pass_that_checks_is_no_measure_of_the_others() -> None:
    rungs = _decided_at(0)
    rungs.budget_s = 50.0
    assert _climb(rungs, pass_s=1.0, first_s=30.0)[0] == LOOKS[0]
    assert rungs.ending is Ending.DECIDED


def test_a_budget_of_less_than_the_first_rung_ends_at_once_and_says_what_it_takes() -> None:
    rungs = _decided_at(0)
    rungs.budget_s = 10.0
    passes, spent_s = _climb(rungs, pass_s=4.0)
    assert passes == 2
    assert rungs.ending is Ending.OUT_OF_TIME
    assert rungs.needed_s == pytest.approx(spent_s + 4 * 4.0)


@pytest.mark.parametrize(
    ("durations_s", "pace_s"),
    [
        ([40.0], 40.0),
        ([40.0, 9.0], 9.0),
        ([40.0, 9.0, 9.0, 8.0, 9.0, 22.0], 9.0),
        ([2.0, 3.0, 5.0], 4.0),
    ],
)
def test_the_pace_is_the_middle_of_the_passes_without_the_first(
    durations_s: list[float], pace_s: float
) -> None:
    assert find_pace(durations_s) == pace_s


def test_one_slow_pass_does_not_end_it() -> None:
    rungs = _decided_at(1)
    rungs.budget_s = 240.0
    spent_s = 0.0
    assert not rungs.is_over(lambda: [(), ()], passes=0, spent_s=spent_s, can_go_on=True)
    for passes, lasted_s in enumerate([40.0, 9.0, 9.0, 9.0, 9.0, 30.0], start=1):
        spent_s += lasted_s
        assert not rungs.is_over(lambda: [(), ()], passes=passes, spent_s=spent_s, can_go_on=True)
    assert rungs.needed_s == pytest.approx(106.0 + 9.0 * (LOOKS[1] - LOOKS[0]))


def test_the_passes_of_a_rung_tell_of_those_that_are_left_of_it() -> None:
    rungs = _decided_at(2)
    rungs.cells = 10
    for passes in range(1, LOOKS[0] + 1):
        assert not rungs.is_over(
            lambda: [(), ()], passes=passes, spent_s=10.0 * passes, can_go_on=True
        )
    assert rungs.needed_s == pytest.approx(60.0 + 1.0 * (LOOKS[1] - LOOKS[0]))
    assert not rungs.is_over(lambda: [(), ()], passes=LOOKS[0] + 1, spent_s=65.0, can_go_on=True)
    assert rungs.needed_s == pytest.approx(65.0 + 5.0 * (LOOKS[1] - LOOKS[0] - 1))
