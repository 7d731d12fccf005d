"""Anchors as lines for a terminal: what the machine reaches, and how it has moved."""

from collections.abc import Sequence

from perfci import units
from perfci.history.model import ANCHOR_PREFIX, Cell, Comparison
from perfci.machine import find_moved
from perfci.reports.columns import Column, lay_out, wrap
from perfci.reports.text import head
from perfci.roofline import reached_bytes_per_s, reached_flops_per_s

_HEADING = "this machine: anchors"
_MOVE_COLUMNS = (
    Column("anchor"),
    Column("case", shrinks=True),
    Column("timer"),
    Column("baseline", align="right"),
    Column("change", align="right"),
    Column("interval", align="right"),
)


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
    return [_HEADING, *lay_out(columns, rows), ""]


def moves_table(comparisons: Sequence[Comparison]) -> list[str]:
    """Write how far each anchor moved, a table a testbed, and whether the machine itself did.

    Nothing where no anchor was compared.
    """
    groups: dict[str, list[Comparison]] = {}
    for each in comparisons:
        groups.setdefault(f"{each.key.testbed} · {each.key.device_model}", []).append(each)
    lines: list[str] = []
    for where, group in groups.items():
        rows = [_write_move(each) for each in group]
        lines += [head(_HEADING, where), *lay_out(_MOVE_COLUMNS, rows), ""]
        if moved := find_moved(group):
            lines += [*wrap(describe_moves(moved), indent=0), ""]
    return lines


def describe_moves(moved: Sequence[Comparison]) -> str:
    """Say in a sentence that the machine moved, by the first of these anchors."""
    first, *others = moved
    key = first.key
    name = f"{key.kernel}/{key.case} {key.contract}"
    more = f", and {units.format_count(len(others))} more" if others else ""
    return f"the machine itself moved: {name} {units.format_change(first.ratio)}{more}"


def name_anchor(kernel: str) -> str:
    """Write an anchor's name without the beginning that all of them have."""
    return kernel.removeprefix(ANCHOR_PREFIX)


def write_reached(cell: Cell | None) -> str:
    """Write the rate of a product or the bandwidth of a copy; a launch of nothing has neither."""
    flops_per_s = reached_flops_per_s(cell)
    if flops_per_s is not None:
        return units.format_rate(flops_per_s)
    return units.format_bandwidth(reached_bytes_per_s(cell))


def _write_move(comparison: Comparison) -> tuple[str, ...]:
    key = comparison.key
    return (
        name_anchor(key.kernel),
        key.case,
        key.contract,
        units.format_latency(comparison.baseline_ns),
        units.format_change(comparison.ratio),
        units.format_interval(comparison.interval),
    )


def _write_latency(cell: Cell | None) -> str:
    latency = None if cell is None else cell.latency
    return units.format_latency(None if latency is None else latency.median_ns)
