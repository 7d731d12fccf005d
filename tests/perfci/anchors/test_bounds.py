"""Readings that cannot be true, beside anchors: each bound by hand."""

from dataclasses import replace

import pytest
from records import cpu_anchors, gpu_anchors

from perfci.anchors.bounds import without_impossible
from perfci.history.model import Contract, Measurement, Metric, Pass, Status

_L2 = {"cold": "flushed", "hot": "resident", "host": "warm"}


def _row(
    timer: str, latency_ns: float, *, bytes_moved: float = 100.0, flops: float = 100.0
) -> Measurement:
    return Measurement(
        kernel="rope",
        case="headline",
        variant="tiled",
        contract=Contract(
            timer=timer, version=1, l2=_L2[timer], warm_up="steady", inputs="rotating"
        ),
        status=Status.PASSED,
        passes=(Pass(index=0, samples_ns=(latency_ns,)),),
        metrics=(
            Metric(name="bytes_moved", value=bytes_moved, unit="B"),
            Metric(name="flops", value=flops, unit=""),
        ),
    )


def _judged(row: Measurement, anchors: tuple[Measurement, ...] | None = None) -> Measurement:
    return without_impossible((*(gpu_anchors() if anchors is None else anchors), row))[-1]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (_row("hot", 8.0), "a kernel that does nothing takes 500 ns here"),
        (_row("cold", 990.0), "a kernel that does nothing takes 2.00 µs here"),
        (_row("cold", 4.9e4, bytes_moved=4e8), "copying 381 MiB takes 100 µs here"),
        (_row("cold", 4.9e4, flops=8e10), "the fastest product of as many operations takes 100 µs"),
        (_row("hot", 4.9e4, flops=8e10), "the fastest product of as many operations takes 100 µs"),
    ],
)
def test_what_cannot_be_true_is_no_latency(row: Measurement, reason: str) -> None:
    judged = _judged(row)
    assert judged.status is Status.INVALID_TIMING
    assert reason in judged.message
    assert judged.passes == ()
    assert judged.metrics == row.metrics


@pytest.mark.parametrize(
    "row",
    [
        _row("hot", 260.0),
        _row("cold", 1010.0),
        _row("cold", 5.1e4, bytes_moved=4e8),
        _row("cold", 5.1e4, flops=8e10),
        # How fast the L2 is, and what a launch from the host costs, is no bound.
        _row("hot", 300.0, bytes_moved=4e8),
        _row("host", 8.0),
        # Bounds are of one timer: the anchors know none of this name.
        replace(_row("cold", 8.0), contract=replace(_row("cold", 8.0).contract, timer="mine")),  # type: ignore[arg-type]
    ],
)
def test_what_is_possible_stays(row: Measurement) -> None:
    assert _judged(row) == row


def test_without_anchors_nothing_is_known_to_be_impossible() -> None:
    assert _judged(_row("hot", 8.0), ()) == _row("hot", 8.0)
    assert _judged(_row("hot", 8.0), cpu_anchors()) == _row("hot", 8.0)


def test_anchors_and_what_failed_are_left_alone() -> None:
    failed = Measurement(
        kernel="rope", case="x", variant="v", contract=None, status=Status.TIMEOUT, message="slow"
    )
    rows = (*gpu_anchors(), failed)
    assert without_impossible(rows) == rows
