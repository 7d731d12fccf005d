"""Whose turn it is at a cell that two processes have: every side's course, and who hears what."""

from collections.abc import Iterator

import pytest

from perfci.history.model import Status
from perfci.outcome import MalformedOutcomeError
from perfci.workers.turns import (
    Heard,
    Said,
    Turns,
    decode_heard,
    decode_said,
    encode_heard,
    encode_said,
)

_STEP = Said()
_BLOCK = Said(block=True, few=True)
_LAST = Said(block=True, enough=True, few=True)


def _turns(*draws: float) -> Turns:
    """Turns whose first holder, and who begins each later round, is drawn so: below 0.5 is 1."""
    source: Iterator[float] = iter(draws)
    return Turns(1.0, draw=lambda: next(source))


def _after_the_first_step(*draws: float) -> Turns:
    turns = _turns(0.9, *draws)
    for _ in range(2):
        turns.hear()
        turns.say(_STEP, 0.0)
    assert (turns.holder, turns.hear()) == (0, Heard())
    return turns


def _read(turns: Turns, said: Said, now_s: float = 0.0) -> tuple[int, Heard]:
    """A block of the holder; who comes next, and what it hears."""
    turns.say(said, now_s)
    return turns.holder, turns.hear()


def test_steps_go_to_and_fro() -> None:
    turns = _turns(0.1)
    holders = []
    for _ in range(4):
        holders.append(turns.holder)
        turns.hear()
        turns.say(_STEP, 0.0)
    assert holders == [1, 0, 1, 0]


def test_blocks_are_read_there_and_back_again() -> None:
    turns = _after_the_first_step(0.1, 0.9)
    holders = [0]
    for _ in range(11):
        holder, _ = _read(turns, _BLOCK)
        holders.append(holder)
    assert holders == [0, 1, 1, 0, 1, 0, 0, 1, 0, 1, 1, 0]


def test_both_end_together_once_both_have_enough() -> None:
    turns = _after_the_first_step(0.9)
    said = [_LAST, _LAST, _BLOCK, _LAST, _LAST, _LAST, _LAST]
    heard = [_read(turns, each) for each in said]
    assert [each.stop for _, each in heard] == [False] * 7
    holder, last = _read(turns, _LAST)
    assert (holder, last) == (0, Heard(stop=True))
    turns.say(_STEP, 0.0)
    assert (turns.holder, turns.hear()) == (1, Heard(stop=True))


def test_time_ends_a_reading_that_has_the_least_of_samples() -> None:
    turns = _after_the_first_step(0.9, 0.9)
    for _ in range(3):
        _read(turns, _BLOCK)
    assert _read(turns, _BLOCK, 1.9)[1] == Heard()
    for _ in range(3):
        _read(turns, Said(block=True))
    assert _read(turns, Said(block=True), 2.1)[1] == Heard()
    for _ in range(3):
        _read(turns, _BLOCK)
    assert _read(turns, _BLOCK, 2.1)[1] == Heard(stop=True)


def test_what_one_says_at_a_step_the_other_hears_at_the_same_step() -> None:
    turns = _turns(0.9)
    turns.hear()
    turns.say(Said(invalid="waits for the device"), 0.0)
    assert turns.hear() == Heard()  # it has only begun
    turns.say(_STEP, 0.0)
    assert turns.hear() == Heard()
    turns.say(_STEP, 0.0)  # already at the next step
    assert turns.hear() == Heard(invalid="waits for the device")


@pytest.mark.parametrize("blocks", [0, 1, 3])
def test_a_side_that_cannot_be_read_any_more_ends_the_blocks_of_both(blocks: int) -> None:
    turns = _after_the_first_step(0.9)
    for _ in range(blocks):
        _read(turns, _BLOCK)
    reader = turns.holder
    assert _read(turns, Said(block=True, invalid="no")) == (reader, Heard(stop=True))
    turns.say(_STEP, 0.0)
    heard = turns.hear()
    if heard == Heard():  # the other had not read a block yet, and does so first
        _, heard = _read(turns, _BLOCK)
    assert (turns.holder, heard) == (1 - reader, Heard(stop=True, invalid="no"))


@pytest.mark.parametrize("status", [Status.WRONG_VALUES, Status.TIMEOUT, Status.MISSING])
def test_a_side_that_has_ended_without_figures_is_heard_of(status: Status) -> None:
    turns = _after_the_first_step(0.9)
    _read(turns, _BLOCK)
    turns.end(1, status)
    assert (turns.holder, turns.hear()) == (0, Heard(ended=status))
    turns.end(0, Status.MISSING)
    assert turns.is_over


def test_a_side_that_was_ready_first_ends_first() -> None:
    turns = _turns(0.9)
    for _ in range(2):
        turns.hear()
        turns.say(_STEP, 0.0)
    turns.hear()
    turns.end(0, Status.PASSED)
    assert (turns.holder, turns.hear(), turns.is_over) == (1, Heard(), False)
    turns.end(1, Status.PASSED)
    assert turns.is_over


@pytest.mark.parametrize("said", [_STEP, _LAST, Said(invalid="waits for the device")])
def test_what_is_said_crosses_a_pipe(said: Said) -> None:
    assert decode_said(encode_said(said, 3)) == (3, said)


@pytest.mark.parametrize(
    "heard", [Heard(), Heard(stop=True, invalid="no"), Heard(ended=Status.TIMEOUT)]
)
def test_what_is_heard_crosses_a_pipe(heard: Heard) -> None:
    assert decode_heard(encode_heard(heard)) == heard


def test_other_messages_are_none_of_a_turn() -> None:
    assert decode_said(b'["done", 3, null]\n') is None


@pytest.mark.parametrize("line", [b"5", b"[", b'["turn", 1, null]', b'["turn", "x", {}]', b"[1]"])
def test_what_code_under_test_may_write_is_malformed(line: bytes) -> None:
    with pytest.raises(MalformedOutcomeError):
        decode_said(line)
