"""Passes that the GPU's state has spoilt: which, and that some always stay."""

import itertools
import random
from dataclasses import replace

import pytest

from perfci.history.model import Pass
from perfci.history.summary import summarise
from perfci.quarantine import (
    describe_passes,
    describe_state,
    set_apart,
    set_apart_with,
)


def _passes(
    *clocks_mhz: float | None, others: tuple[int | None, ...] = (), latency_ns: float = 5.0
) -> list[Pass]:
    return [
        Pass(index=index, samples_ns=(latency_ns,), sm_mhz=mhz, other_processes=count)
        for index, (mhz, count) in enumerate(itertools.zip_longest(clocks_mhz, others))
    ]


def _spoilt(passes: list[Pass]) -> list[int]:
    return [each.index for each in set_apart(passes) if each.quarantine]


@pytest.mark.parametrize(
    ("clocks_mhz", "spoilt"),
    [
        ((1980, 1980, 1980), []),
        ((1980, 1490, 1980), []),
        ((1980, 1480, 1980), [1]),
        ((345, 1980, 1980, 1965, 1410), [0, 4]),
        ((1410, 1395, 1410, 1425), []),  # what this kernel draws, or an operator has set
        ((345, 1980), []),  # which of the two is odd, nobody can say
        ((345,), []),
        ((None, None, None, None), []),
        ((None, 345, 1980, None), []),
        ((345, None, 1980, 1980), [0]),
        ((9999, 1980, 1980), []),
        ((1980, 1980, 0), []),
    ],
)
def test_a_pass_at_a_low_clock_is_set_apart(
    clocks_mhz: tuple[float | None, ...], spoilt: list[int]
) -> None:
    assert _spoilt(_passes(*clocks_mhz)) == spoilt


@pytest.mark.parametrize(
    ("others", "spoilt"),
    [
        ((0, 0, 0), []),
        ((None, None, None), []),
        ((0, 2, 1), [1, 2]),
        ((None, 1, None), [1]),
        ((1, 1, 1), []),  # nothing is left to go by: the row says so, and is not compared
    ],
)
def test_a_pass_beside_others_is_set_apart_from_those_without(
    others: tuple[int | None, ...], spoilt: list[int]
) -> None:
    assert _spoilt(_passes(*[1980] * len(others), others=others)) == spoilt


def test_clocks_are_expected_of_passes_that_others_have_left_alone() -> None:
    passes = _passes(1980, 1980, 1980, 900, 900, 900, others=(1, 1, 1, 0, 0, 0))
    assert _spoilt(passes) == [0, 1, 2]


def test_whatever_was_read_some_passes_stay() -> None:
    source = random.Random(5)
    readings = (None, 0.0, 1.0, 345.0, 1410.0, 1980.0, 9999.0)
    for _ in range(3000):
        count = source.randint(1, 7)
        passes = _passes(
            *(source.choice(readings) for _ in range(count)),
            others=tuple(source.choice((None, 0, 0, 1, 3)) for _ in range(count)),
        )
        kept = [each for each in set_apart(passes) if not each.quarantine]
        assert kept
        assert summarise(set_apart(passes)).sample_count == len(kept)


def test_a_row_says_how_many_and_why() -> None:
    low = set_apart(_passes(1980, 1200, 1980, 1980))
    assert describe_passes(low) == (
        "1 of 4 passes in quarantine: the SM clock was at 1,200 MHz, 1,980 MHz in most passes"
    )
    beside = set_apart(_passes(1980, 1980, others=(0, 1)))
    assert describe_passes(beside) == (
        "1 of 2 passes in quarantine: another process was on the GPU"
    )
    shared = set_apart(_passes(1980, 1980, others=(3, 1)))
    assert describe_passes(shared) == (
        "measured while 3 other processes were on the GPU: not compared"
    )
    assert describe_passes(set_apart(_passes(1980, None, others=(0, None)))) == ""


def test_a_row_keeps_the_clock_of_what_counts() -> None:
    def figures(passes: list[Pass]) -> dict[str, float]:
        return {each.name: each.value for each in describe_state(set_apart(passes))}

    assert figures(_passes(1980, 1200, 1965, 1980)) == {"sm_mhz": 1980, "quarantined_passes": 1}
    assert figures(_passes(1980, 1980, others=(2, 1))) == {"sm_mhz": 1980, "other_processes": 2}
    assert figures(_passes(None, None)) == {}


def test_what_spoilt_one_side_is_no_figure_of_the_other() -> None:
    calm, slow = (_passes(*clocks) for clocks in ((1980,) * 4, (1980, 1980, 345, 1980)))
    shared = set_apart_with(set_apart(calm), set_apart(slow))
    assert [each.quarantine for each in shared] == [
        "",
        "",
        "on the other side the SM clock was at 345 MHz, 1,980 MHz in most passes",
        "",
    ]
    assert set_apart_with(set_apart(slow), set_apart(calm)) == set_apart(slow)


def test_of_two_sides_that_were_spoilt_in_turns_something_stays() -> None:
    one = [replace(each, quarantine="x" * (each.index < 2)) for each in _passes(*(1980,) * 4)]
    other = [replace(each, quarantine="x" * (each.index >= 2)) for each in one]
    assert set_apart_with(one, other) == one
