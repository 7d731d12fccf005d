"""Cycles beside time: what is said where the SM clock of two runs is not the same."""

from dataclasses import replace

import pytest
from records import cell, summary

from perfci.decision.compare import Side
from perfci.history.model import Cell, Metric, Status
from perfci.reports.cycles import describe_cycles
from perfci.reports.differences import find_differences


def _cell(latency_ns: float, sm_mhz: float | None, run_id: str = "a") -> Cell:
    metrics = () if sm_mhz is None else (Metric(name="sm_mhz", value=sm_mhz, unit="MHz"),)
    return replace(cell((latency_ns, latency_ns), run_id=run_id), metrics=metrics)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (
            (1000.0, 1980.0),
            (1404.0, 1410.0),
            ("SM clock 1,980 → 1,410 MHz: 0.0 % in cycles, so that it is the machine",),
        ),
        (
            (1404.0, 1410.0),
            (1000.0, 1980.0),
            ("SM clock 1,410 → 1,980 MHz: 0.0 % in cycles, so that it is the machine",),
        ),
        (
            (1000.0, 1980.0),
            (2000.0, 1410.0),
            ("SM clock 1,980 → 1,410 MHz: +42.4 % in cycles",),
        ),
        ((1000.0, 1980.0), (2000.0, 1965.0), ()),  # the clock explains none of it
        ((1000.0, None), (2000.0, 1410.0), ()),
        ((1000.0, 1980.0), (2000.0, None), ()),
        ((1000.0, 0.0), (2000.0, 1410.0), ()),
    ],
)
def test_what_the_clock_explains_is_said(
    before: tuple[float, float | None], after: tuple[float, float | None], words: tuple[str, ...]
) -> None:
    assert describe_cycles(_cell(*before), _cell(*after)) == words


def test_without_a_latency_there_are_no_cycles() -> None:
    failed = replace(_cell(1.0, 1980.0), latency=None, status=Status.TIMEOUT)
    assert describe_cycles(failed, _cell(1.0, 1410.0)) == ()


def test_it_stands_behind_what_differs_in_the_code() -> None:
    code = (("source", "same"),)
    sides = [
        Side([summary(run_id)], [replace(_cell(latency_ns, mhz, run_id), identity=code)])
        for run_id, latency_ns, mhz in (("a", 1000.0, 1980.0), ("b", 1404.0, 1410.0))
    ]
    (told,) = find_differences(*sides).values()
    assert told[0] == "the same code"
    assert told[1].startswith("SM clock 1,980 → 1,410 MHz")
