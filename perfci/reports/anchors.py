"""Anchors as lines for a terminal: what the machine reaches."""

from collections.abc import Sequence

from perfci import units
from perfci.anchors.roofline import reached_bytes_per_s, reached_flops_per_s
from perfci.history.model import ANCHOR_PREFIX, Cell
from perfci.reports.columns import Column, lay_out
from perfci.reports.passes import write_latency

HEADING = "this machine: anchors"


def anchor_table(cells: Sequence[Cell]) -> list[str]:
    """Write what each anchor took by each timer, and what it reached by the first.

    Nothing where there are no anchors.
    """
    timers = list(dict.fromkeys(cell.contract.timer for cell in cells if cell.contract))
    places = dict.fromkeys((cell.kernel, cell.case) for cell in cells)
    rows = []
    for place in places:
        by_timer = {
            cell.contract.timer: cell
            for cell in cells
            if cell.contract and (cell.kernel, cell.case) == place
        }
        kernel, case = place
        own = [by_timer.get(each) for each in timers]
        latencies = [_write_latency(each) for each in own]
        rows.append((name_anchor(kernel), case, *latencies, write_reached(own[0])))
    if not rows:
        return []
    columns = (
        Column("anchor"),
        Column("case", shrinks=True),
        *(Column(each, align="right") for each in timers),
        Column("reaches", align="right"),
    )
    return [HEADING, *lay_out(columns, rows), ""]


def name_anchor(kernel: str) -> str:
    """Write an anchor's name without the beginning that all of them have."""
    return kernel.removeprefix(ANCHOR_PREFIX)


def write_reached(cell: Cell | None) -> str:
    """Write the rate of a product or the bandwidth of a copy; a launch of nothing has neither."""
    flops_per_s = reached_flops_per_s(cell)
    if flops_per_s is not None:
        return units.format_rate(flops_per_s)
    return units.format_bandwidth(reached_bytes_per_s(cell))


def _write_latency(cell: Cell | None) -> str:
    return write_latency(None if cell is None else cell.latency)
