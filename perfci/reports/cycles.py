"""A latency in cycles of the SM's clock, where that is not the same in two runs."""

from perfci import units
from perfci.history.model import Cell
from perfci.quarantine import SM_CLOCK

_NOTICEABLE = 0.01


def describe_cycles(before: Cell, after: Cell) -> tuple[str, ...]:
    """Say how the SM clock differs and what that leaves of a change; nothing where it does not.

    A change in time without one in cycles is the machine's. (One of a kernel that waits for the
    memory, whose clock is another, may be the machine's without that.)
    """
    clocks = [each.metric(SM_CLOCK) for each in (before, after)]
    if before.latency is None or after.latency is None or None in clocks:
        return ()
    before_mhz, after_mhz = (each.value for each in clocks if each is not None)
    if not (before_mhz > 0 and abs(after_mhz / before_mhz - 1.0) > _NOTICEABLE):
        return ()
    cycles = after.latency.typical_ns * after_mhz / (before.latency.typical_ns * before_mhz)
    clock = " → ".join(units.format_count(round(each)) for each in (before_mhz, after_mhz))
    verdict = ", so that it is the machine" if abs(cycles - 1.0) <= _NOTICEABLE else ""
    return (f"SM clock {clock} MHz: {units.format_change(cycles)} in cycles{verdict}",)
