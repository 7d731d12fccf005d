"""How busy others keep the processor's cores while something is measured on them."""

import math
import os
import resource
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfci import units
from perfci.history.model import Cell, Direction, Metric

BUSY_SHARE = 0.25
"""Of what others use less than this nobody is told: a machine is never quite idle."""

OTHERS_SHARE = "others_core_share"

_STAT = Path("/proc/stat")
_SHORTEST_S = 0.2  # the system counts in hundredths of a second, for each core
_IDLE = (3, 4)  # idle, and waiting for a disk
_GUESTS = 8  # from here on what has been counted as the user's already


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreTimes:
    """How long the cores that this process may use have been busy, and it itself on them.

    ``own_s`` has its threads in it and its children that have ended.
    """

    busy_s: float
    own_s: float


def read_core_times() -> CoreTimes | None:
    """Read them now; None where the system does not tell."""
    cores = os.sched_getaffinity(0)
    try:
        busy_s = busy_in(_STAT.read_text(encoding="ascii"), cores) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError):
        return None
    used = [resource.getrusage(of) for of in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return CoreTimes(busy_s=busy_s, own_s=sum(each.ru_utime + each.ru_stime for each in used))


def busy_in(stat: str, cores: Collection[int]) -> int:
    """The ticks for which some cores were busy, by the text of /proc/stat."""
    wanted = {f"cpu{core}" for core in cores}
    rows = [line.split() for line in stat.splitlines()]
    ticks = [[int(each) for each in row[1:]] for row in rows if row and row[0] in wanted]
    return sum(
        count
        for counts in ticks
        for index, count in enumerate(counts[:_GUESTS])
        if index not in _IDLE
    )


def used_by_others_s(before: CoreTimes | None, after: CoreTimes | None) -> float | None:
    """For how long others used the cores between two readings; None without a reading.

    Over a short time it may be a hundredth of a second too little, even below 0, or too much.
    """
    if before is None or after is None:
        return None
    return (after.busy_s - before.busy_s) - (after.own_s - before.own_s)


def describe_load(
    used: Sequence[tuple[float, float]], core_count: int | None
) -> tuple[str, tuple[Metric, ...]]:
    """What a row says, where it is much, and keeps of how much others used the cores.

    ``used`` is, for each pass, for how long others did, and how long the pass took. It is no
    verdict, and nothing is left out for it.
    """
    took_s = math.fsum(each for _, each in used)
    if took_s < _SHORTEST_S or not core_count:
        return "", ()
    share = math.fsum(others_s for others_s, _ in used) / (took_s * core_count)
    share = min(1.0, max(0.0, share))
    metric = Metric(name=OTHERS_SHARE, value=share, unit="", direction=Direction.NEUTRAL)
    words = f"others used {units.format_share(share)} of the cores while it was measured"
    return words if share >= BUSY_SHARE else "", (metric,)


def find_load(cell: Cell) -> float | None:
    """The share of the cores that others used while a cell was measured, where it was much."""
    metric = cell.metric(OTHERS_SHARE)
    return metric.value if metric is not None and metric.value >= BUSY_SHARE else None


def say_load(sides: Mapping[str, Sequence[Cell]]) -> str:
    """Say in a sentence how busy others kept a CPU while latencies were measured.

    Empty where it was not much. ``sides`` are cells by the name of what they are of, which is empty
    where there is no other. Each side is said by itself, unless the same is true of all.
    """
    told = {name: said for name, cells in sides.items() if (said := sum_up_load(cells))}
    if len(sides) > 1 and len(told) == len(sides) and len(set(told.values())) == 1:
        return say_load({"": [cell for cells in sides.values() for cell in cells]})
    clauses = [sum_up_load(sides[name], of=name) for name in told]
    return f"A busy machine: others used {', and '.join(clauses)}." if clauses else ""


def sum_up_load(cells: Sequence[Cell], *, of: str = "") -> str:
    """Write what share others used, and of how many latencies; empty where it was not much.

    ``27 % to 59 % of the cores while 2 of 3 latencies were measured``, or ``latencies of the base``
    where ``of`` is ``the base``.
    """
    shares = sorted(share for cell in cells if (share := find_load(cell)) is not None)
    if not shares:
        return ""
    least, most = (units.format_share(each) for each in (shares[0], shares[-1]))
    used = least if least == most else f"{least} to {most}"
    timed = sum(cell.latency is not None for cell in cells)
    some = "" if len(shares) == timed else f"{units.format_count(len(shares))} of "
    latencies = units.count_things(timed, "latency", "latencies") + (f" of {of}" if of else "")
    were = units.choose_number(len(shares), "was", "were")
    return f"{used} of the cores while {some}{latencies} {were} measured"
