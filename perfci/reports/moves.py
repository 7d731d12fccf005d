"""How far the anchors moved between two commits, as lines for a terminal."""

from collections.abc import Sequence

from perfci import units
from perfci.anchors.machine import find_moved
from perfci.history.model import Comparison
from perfci.reports.anchors import HEADING, name_anchor
from perfci.reports.columns import Column, lay_out, wrap
from perfci.reports.passes import write_baseline, write_change
from perfci.reports.text import head

_COLUMNS = (
    Column("anchor"),
    Column("case", shrinks=True),
    Column("timer"),
    Column("baseline", align="right"),
    Column("change", align="right"),
    Column("interval", align="right"),
)


def moves_table(comparisons: Sequence[Comparison]) -> list[str]:
    """Write how far each anchor moved, a table a testbed, and whether the machine itself did.

    Why a change is not told is said once. Nothing where no anchor was compared.
    """
    groups: dict[str, list[Comparison]] = {}
    for each in comparisons:
        groups.setdefault(f"{each.key.testbed} · {each.key.device_model}", []).append(each)
    lines: list[str] = []
    for where, group in groups.items():
        rows = [_write(each) for each in group]
        lines += [head(HEADING, where), *lay_out(_COLUMNS, rows), ""]
        for reason in dict.fromkeys(each.reason for each in group if each.ratio is None):
            lines += [*wrap(reason, indent=4), ""]
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


def _write(comparison: Comparison) -> tuple[str, ...]:
    key = comparison.key
    return (
        name_anchor(key.kernel),
        key.case,
        key.contract,
        write_baseline(comparison),
        write_change(comparison),
        units.format_interval(comparison.interval),
    )
