"""A latency as text, and what is said where its passes disagree: no one figure speaks for them."""

from collections.abc import Iterable

from perfci import units
from perfci.history.latency import LatencySummary
from perfci.reports.columns import Column, lay_out

MARK = "!"
_COLUMNS = (
    Column("cell", shrinks=True),
    Column("timer"),
    Column("far", align="right"),
    Column("lowest", align="right"),
    Column("highest", align="right"),
)


def write_latency(latency: LatencySummary | None) -> str:
    """Write a latency, with a mark before it where passes lie far from it: ``! 21.5 µs``."""
    if latency is None:
        return units.ABSENT
    text = units.format_latency(latency.typical_ns)
    return f"{MARK} {text}" if latency.far_passes else text


def describe_passes(latency: LatencySummary) -> str:
    """Say between what the passes lie: ``8 passes: 10.0 µs to 1.00 ms, 2 far from the latency``."""
    counted = units.count_things(len(latency.pass_means_ns), "pass", "passes")
    far = f", {units.format_count(latency.far_passes)} far from the latency"
    return f"{counted}: {_write_span(latency)}{far if latency.far_passes else ''}"


def describe_interval(latency: LatencySummary) -> str:
    """Say in which interval a latency lies: ``9.98 µs to 10.1 µs``; absent from a single pass."""
    if latency.interval_ns is None:
        return units.ABSENT
    return " to ".join(units.format_latency(each) for each in latency.interval_ns)


def far_table(cells: Iterable[tuple[str, str, LatencySummary | None]]) -> list[str]:
    """Write of which cells (name, timer, latency) passes lie far from the latency that is shown.

    Nothing where there are none.
    """
    rows = [
        (
            name,
            timer,
            " of ".join(map(units.format_count, (latency.far_passes, len(latency.pass_means_ns)))),
            units.format_latency(min(latency.pass_means_ns)),
            units.format_latency(max(latency.pass_means_ns)),
        )
        for name, timer, latency in cells
        if latency is not None and latency.far_passes
    ]
    if not rows:
        return []
    return [f"{MARK} passes far from the latency that is shown", *lay_out(_COLUMNS, rows), ""]


def _write_span(latency: LatencySummary) -> str:
    means_ns = latency.pass_means_ns
    lowest, highest = (units.format_latency(each) for each in (min(means_ns), max(means_ns)))
    return lowest if lowest == highest else f"{lowest} to {highest}"
