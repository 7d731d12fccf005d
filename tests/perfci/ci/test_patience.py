"""Bounded waiting: how long, how often, and when it ends."""

import pytest

from perfci.ci.patience import Patience, RefusedError, UnavailableError


def test_it_waits_longer_each_time_and_goes_on_where_it_was() -> None:
    waits: list[float] = []
    answers = [UnavailableError("500"), UnavailableError("500"), False, True]

    def step() -> bool:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    Patience(sleep=waits.append).settle(step)
    assert waits == [1.0, 2.0]
    assert answers == []


def test_it_waits_as_long_as_it_is_asked_to() -> None:
    waits: list[float] = []
    answers = [UnavailableError("429", wait_s=17.0)]

    def step() -> bool:
        if answers:
            raise answers.pop()
        return True

    Patience(sleep=waits.append).settle(step)
    assert waits == [17.0]


@pytest.mark.parametrize("wait_s", [None, 60.0])
def test_all_waits_together_are_bounded(wait_s: float | None) -> None:
    waits: list[float] = []
    patience = Patience(sleep=waits.append, longest_s=100.0)

    def step() -> bool:
        raise UnavailableError("503 for ever", wait_s=wait_s)

    for _ in range(2):  # what one report does next has no more time either
        with pytest.raises(UnavailableError, match="503 for ever"):
            patience.settle(step)
    assert 0 < sum(waits) <= 100.0


def test_an_hour_is_not_waited_for() -> None:
    waits: list[float] = []

    def step() -> bool:
        raise UnavailableError("429", wait_s=3600.0)

    with pytest.raises(UnavailableError):
        Patience(sleep=waits.append).settle(step)
    assert waits == []


def test_a_refusal_is_not_repeated() -> None:
    steps: list[int] = []

    def step() -> bool:
        steps.append(1)
        raise RefusedError("403")

    with pytest.raises(RefusedError):
        Patience(sleep=lambda _: None).settle(step)
    assert len(steps) == 1


def test_what_never_settles_is_given_up() -> None:
    with pytest.raises(UnavailableError, match="still not as it should be"):
        Patience(sleep=lambda _: None).settle(lambda: False)
