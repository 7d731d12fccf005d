"""What Nsight Compute says of launched kernels, as lines for a terminal, at most 80 wide."""

from collections.abc import Sequence
from pathlib import Path

from perfci import units
from perfci.reports.columns import Column, lay_out, wrap
from perfci.reports.text import head
from perfci.tools.profiler import Profile, ProfiledLaunch

_COLUMNS = (
    Column("variant, launches", shrinks=True),
    Column("time", align="right"),
    Column("DRAM", align="right"),
    Column("L2", align="right"),
    Column("SM", align="right"),
    Column("occ.", align="right"),
    Column("regs", align="right"),
    Column("waits for", shrinks=True),
)
_EMPTY = ("",) * (len(_COLUMNS) - 1)


def profile_table(profiles: Sequence[Profile], folder: Path) -> list[str]:
    """Write a table a kernel and case: each variant, then a line for each kernel it launched.

    DRAM, L2 and SM are throughputs as shares of their peaks, occ. is the achieved occupancy, regs
    are registers a thread; a warp waits for what is named longer than for anything else.
    """
    lines: list[str] = []
    for kernel, case in dict.fromkeys((each.kernel, each.case) for each in profiles):
        rows: list[tuple[str, ...]] = []
        for each in profiles:
            if (each.kernel, each.case) == (kernel, case) and each.launches:
                rows += [(each.variant, *_EMPTY), *map(_write, each.launches)]
        lines += [head(kernel, case), *lay_out(_COLUMNS, rows), ""]
    without = [each for each in profiles if each.report is None]
    for each in without:
        first_line = next(iter(each.message.strip().splitlines()), "no message")
        name = f"{each.kernel}/{each.variant}/{each.case}"
        lines += [head("✗ no profile", name), *wrap(first_line, indent=4)]
    lines += [""] if without else []
    count = units.format_count(len(profiles) - len(without))
    return [*lines, *wrap(f"reports: {count} in {folder}", indent=0)]


def _write(launch: ProfiledLaunch) -> tuple[str, ...]:
    shares = (launch.dram_share, launch.l2_share, launch.sm_share, launch.occupancy_share)
    return (
        f"└ {launch.function}",
        units.format_latency(launch.duration_ns),
        *map(units.format_share, shares),
        units.ABSENT if launch.registers is None else units.format_count(launch.registers),
        launch.stall or units.ABSENT,
    )
