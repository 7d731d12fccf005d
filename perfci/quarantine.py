"""Passes of a cell that the GPU's state has spoilt: kept, and nothing derived from them. Pure.

What is looked at is one timer's reading of one cell in one pass, since the clocks are read ten
times a second and samples are not.
"""

import statistics
from collections.abc import Sequence
from dataclasses import replace

from perfci import units
from perfci.history.model import Cell, Direction, Metric, Pass

LEAST_CLOCK = 0.75
"""Below this share of the expected SM clock a pass is not believed."""

FEWEST_CLOCKS = 3
"""Of fewer passes nobody can say which of them is the odd one."""

SM_CLOCK = "sm_mhz"
OTHERS = "other_processes"
QUARANTINED = "quarantined_passes"


def set_apart(passes: Sequence[Pass]) -> list[Pass]:
    """The passes of one cell, those in quarantine that were spoilt.

    A pass during which others had a process on the GPU is, if there is any other; so is one whose
    SM clock was below 75 % of the median over the passes that are left. At least half of these
    stay, whatever was read.
    """
    if any(not each.other_processes for each in passes):
        passes = [replace(each, quarantine=_name_others(each)) for each in passes]
    clocks_mhz = [each.sm_mhz for each in passes if each.sm_mhz and not each.quarantine]
    if len(clocks_mhz) < FEWEST_CLOCKS:
        return list(passes)
    expected_mhz = statistics.median(clocks_mhz)
    return [
        each if each.quarantine else replace(each, quarantine=_name_clock(each, expected_mhz))
        for each in passes
    ]


def set_apart_with(passes: Sequence[Pass], beside: Sequence[Pass]) -> list[Pass]:
    """The passes of one side, those also in quarantine that are so on the other side.

    Two sides are compared pass by pass, so that what spoilt one of them took both. None is added
    where no pass would be left.
    """
    spoilt = {each.index: each.quarantine for each in beside if each.quarantine}
    if not any(each.index not in spoilt and not each.quarantine for each in passes):
        return list(passes)
    return [
        each
        if each.quarantine or each.index not in spoilt
        else replace(each, quarantine=f"on the other side {spoilt[each.index]}")
        for each in passes
    ]


def describe_passes(passes: Sequence[Pass]) -> str:
    """What a row says of its passes; nothing where all are as they should be."""
    reasons = [each.quarantine for each in passes if each.quarantine]
    if reasons:
        total = units.count_things(len(passes), "pass", "passes")
        return f"{units.format_count(len(reasons))} of {total} in quarantine: {reasons[0]}"
    most = max((each.other_processes or 0 for each in passes), default=0)
    return f"measured while {_count_others(most)} on the GPU: not compared" if most else ""


def describe_state(passes: Sequence[Pass]) -> tuple[Metric, ...]:
    """What a row keeps of the GPU's state: the SM clock, spoilt passes, others that were there."""
    good = [each for each in passes if not each.quarantine]
    clocks_mhz = [each.sm_mhz for each in good if each.sm_mhz]
    figures = (
        (SM_CLOCK, statistics.median(clocks_mhz) if clocks_mhz else 0.0, "MHz"),
        (QUARANTINED, len(passes) - len(good), ""),
        (OTHERS, max((each.other_processes or 0 for each in good), default=0), ""),
    )
    return tuple(
        Metric(name=name, value=float(value), unit=unit, direction=Direction.NEUTRAL)
        for name, value, unit in figures
        if value
    )


def is_shared(cell: Cell) -> bool:
    """Whether others had a process on the GPU in all passes of a cell: it proves nothing."""
    return cell.metric(OTHERS) is not None


def has_quarantine(cell: Cell) -> bool:
    """Whether some passes of a cell are in quarantine."""
    return cell.metric(QUARANTINED) is not None


def _name_others(each: Pass) -> str:
    return f"{_count_others(each.other_processes)} on the GPU" if each.other_processes else ""


def _count_others(count: int) -> str:
    one = count == 1
    return "another process was" if one else f"{units.format_count(count)} other processes were"


def _name_clock(each: Pass, expected_mhz: float) -> str:
    if not each.sm_mhz or each.sm_mhz >= LEAST_CLOCK * expected_mhz:
        return ""
    read, expected = (units.format_count(round(mhz)) for mhz in (each.sm_mhz, expected_mhz))
    return f"the SM clock was at {read} MHz, {expected} MHz in most passes"
