from dataclasses import replace

import pytest
from records import CPU, cpu_anchors, measurement, summary

from perfci.history.model import Status
from perfci.history.summary import cell
from perfci.reports.anchors import anchor_table
from perfci.reports.run import run_table

_ANCHORS = [cell("r", each) for each in cpu_anchors()]


def test_anchors_stand_at_the_end_of_a_run_and_are_not_counted() -> None:
    cells = [*_ANCHORS, cell("r", measurement((12_300.0,)))]
    lines = run_table(summary(), cells)
    assert lines[4].startswith("rope · headline")
    assert lines[-6:] == [
        "this machine: anchors",
        "  anchor   case               cpu      reaches",
        "  copy     memory_small   1.00 ms    20.0 GB/s",
        "  product  float32_small  2.00 ms  100 Gflop/s",
        "",
        "1 passed, 0 failed, 0 skipped",
    ]


def test_an_anchor_that_failed_is_named_with_its_reason() -> None:
    failed = measurement(kernel="perfci_copy", status=Status.TIMEOUT, message="no answer")
    lines = run_table(summary(), [cell("r", failed)])
    assert "  copy    headline    –        –" in lines
    assert "    no answer" in lines
    assert lines[-1] == "0 passed, 0 failed, 0 skipped"


@pytest.mark.parametrize("timers", [("cold", "hot", "host")])
def test_every_timer_has_a_column(timers: tuple[str, ...]) -> None:
    cells = [
        cell("r", measurement((2000.0,), kernel="perfci_empty", case="launch")) for _ in timers
    ]
    table = anchor_table(
        [
            replace(each, contract=replace(CPU, timer=timer))
            for each, timer in zip(cells, timers, strict=True)
        ]
    )
    assert table[1:3] == [
        "  anchor  case       cold      hot     host  reaches",
        "  empty   launch  2.00 µs  2.00 µs  2.00 µs        –",
    ]
