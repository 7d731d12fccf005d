"""The canary: anchors that say whether the L2 was flushed, of a real H200 and by hand."""

from dataclasses import replace
from pathlib import Path

import pytest
from records import cpu_anchors, gpu_anchors, gpu_cells

from perfci.anchors.canary import find_fault, without_unflushed
from perfci.history.codec import read_run_file
from perfci.history.model import Measurement, Pass, Status
from perfci.history.summary import summarise
from perfci.timers import NOT_IN_L2

_KERNEL = gpu_cells(9e3, 4e3, 12e3, kernel="rope", variant="tiled", case="headline")


def _copy(cold_ns: float, hot_ns: float, message: str = "") -> tuple[Measurement, ...]:
    """Anchors of which an empty kernel takes 2 µs and 500 ns, and the copy within the L2 this."""
    copies = {"cold": cold_ns, "hot": hot_ns}
    return tuple(
        replace(row, message=message, passes=(Pass(index=0, samples_ns=(latency_ns,)),))
        if (row.kernel, row.case) == ("perfci_copy", "cache")
        and row.contract is not None
        and (latency_ns := copies.get(row.contract.timer))
        else row
        for row in gpu_anchors()
    )


@pytest.mark.parametrize(
    ("cold_ns", "hot_ns"),
    [(5000.0, 1250.0), (2939.0, 1250.0), (9e4, 1250.0), (2001.0, 499.0), (10.0, 10.0)],
)
def test_a_flush_that_works_or_of_which_nothing_is_known_is_not_accused(
    cold_ns: float, hot_ns: float
) -> None:
    rows = (*_copy(cold_ns, hot_ns), *_KERNEL)
    assert without_unflushed(rows) == rows


@pytest.mark.parametrize("cold_ns", [2936.0, 2750.0, 2000.0, 100.0])
def test_a_flush_that_does_not_work_leaves_no_latency_behind_one(cold_ns: float) -> None:
    rows = without_unflushed((*_copy(cold_ns, 1250.0), *_KERNEL))
    cold, *others = [row for row in rows if row.kernel == "rope"]
    assert (cold.status, cold.passes) == (Status.INVALID_TIMING, ())
    assert cold.message.startswith("the L2 was not flushed: the anchor's copy takes ")
    assert cold.message.endswith("behind the flush and 750 ns out of the L2, without the launch")
    assert tuple(others) == _KERNEL[1:]
    flushed = [row for row in rows if row.contract and row.contract.l2 == "flushed"]
    assert {row.status for row in flushed} == {Status.INVALID_TIMING}


def test_a_copy_that_does_not_fit_in_the_l2_says_nothing() -> None:
    rows = (*_copy(2000.0, 1250.0, NOT_IN_L2), *_KERNEL)
    assert without_unflushed(rows) == rows


def test_without_anchors_nothing_is_known() -> None:
    for anchors in ((), cpu_anchors(), gpu_anchors()[:6]):
        assert find_fault((*anchors, *_KERNEL)) == ""


def test_what_failed_already_keeps_its_reason() -> None:
    failed = replace(_KERNEL[0], status=Status.TIMEOUT, message="slow", passes=())
    assert without_unflushed((*_copy(2000.0, 1250.0), failed))[-1] == failed


def test_the_flush_of_a_recorded_h200_works_and_would_not_if_the_copy_took_no_longer() -> None:
    folder = Path(__file__).parents[3] / "examples" / "h200"
    run = read_run_file(folder / "750e966029-20261130T044328-279eb1df.json.gz")
    assert find_fault(run.measurements) == ""
    latencies_ns = {
        (row.kernel, row.case, row.contract.timer): summarise(row.passes).typical_ns
        for row in run.measurements
        if row.contract and row.passes
    }
    out_of_the_l2_ns = (
        latencies_ns["perfci_copy", "cache", "hot"] - latencies_ns["perfci_empty", "launch", "hot"]
    )
    served_ns = latencies_ns["perfci_empty", "launch", "cold"] + out_of_the_l2_ns
    assert latencies_ns["perfci_copy", "cache", "cold"] > 1.1 * served_ns
    served = (Pass(index=0, samples_ns=(served_ns,)),)
    rows = [
        replace(row, passes=served)
        if row.contract and (row.case, row.contract.timer) == ("cache", "cold")
        else row
        for row in run.measurements
    ]
    assert "was not flushed" in find_fault(rows)
