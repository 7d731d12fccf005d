"""A latency as text, and what is said where its passes disagree: no one figure speaks for them.

Of two sides that are compared this is said by the same mark. An unchanged cell has it only where
more passes lie far off than a trimmed mean leaves out: else they had no part in the verdict.
"""

from collections.abc import Iterable, Iterator, Sequence

from perfci import units
from perfci.history.latency import LatencySummary, PassSpan
from perfci.history.model import Comparison, Verdict
from perfci.reports.columns import Column, lay_out

MARK = "!"
_HEADING = f"{MARK} passes far from the latency that is shown"
HEADING_OF_SIDES = f"{MARK} passes far from the latency of their side"
_PLACE_COLUMNS = (Column("cell", names=True), Column("timer"))
_SPAN_COLUMNS = (
    Column("far", align="right"),
    Column("lowest", align="right"),
    Column("highest", align="right"),
)


def write_latency(latency: LatencySummary | None) -> str:
    """Write a latency, with a mark before it where passes lie far from it: ``! 21.5 µs``."""
    if latency is None:
        return units.ABSENT
    return _mark(units.format_latency(latency.typical_ns), is_far=bool(latency.span.far))


def write_baseline(comparison: Comparison) -> str:
    """Write a baseline's latency, with a mark before it where its passes are to be told."""
    told, _ = _find_told(comparison)
    return _mark(units.format_latency(comparison.baseline_ns), is_far=told is not None)


def write_change(comparison: Comparison) -> str:
    """Write a change, with a mark before it where the contender's passes are to be told."""
    _, told = _find_told(comparison)
    return _mark(units.format_change(comparison.ratio), is_far=told is not None)


def describe_passes(passes: PassSpan) -> str:
    """Say between what passes lie: ``8 passes: 10.0 µs to 1.00 ms, 2 far from the latency``."""
    counted = units.count_things(passes.count, "pass", "passes")
    far = f", {units.format_count(passes.far)} far from the latency"
    return f"{counted}: {_write_span(passes)}{far if passes.far else ''}"


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
        (name, timer, *_write_far(latency.span))
        for name, timer, latency in cells
        if latency is not None and latency.span.far
    ]
    if not rows:
        return []
    return [_HEADING, *lay_out((*_PLACE_COLUMNS, *_SPAN_COLUMNS), rows), ""]


def far_table_of_sides(comparisons: Iterable[Comparison]) -> list[str]:
    """Write of which sides passes lie far from the latency, of the cells that are marked for it.

    Nothing where there are none.
    """
    rows = [
        (f"{key.kernel}/{key.variant}/{key.case}", key.contract, side, *_write_far(passes))
        for each in comparisons
        for key in [each.key]
        for side, passes in find_far(each, ("baseline", "contender"))
    ]
    if not rows:
        return []
    columns = (*_PLACE_COLUMNS, Column("side"), *_SPAN_COLUMNS)
    return [HEADING_OF_SIDES, *lay_out(columns, rows), ""]


def find_far(comparison: Comparison, names: tuple[str, str]) -> Iterator[tuple[str, PassSpan]]:
    """The sides of a cell, by their names, that are marked, and between what their passes lie."""
    told = zip(names, _find_told(comparison), strict=True)
    return ((name, passes) for name, passes in told if passes is not None)


def describe_left_out(comparisons: Sequence[Comparison]) -> str:
    """Say how many unchanged cells are not marked though passes lie far off; empty if none is."""
    count = sum(_is_left_out(each) for each in comparisons)
    if not count:
        return ""
    cells = units.count_things(count, "unchanged cell has", "unchanged cells have")
    whose = units.choose_number(count, "its", "their")
    return f"{cells} passes far from {whose} latency, no more than the fifth that it leaves out"


def _mark(text: str, *, is_far: bool) -> str:
    return f"{MARK} {text}" if is_far else text


def _find_told(comparison: Comparison) -> tuple[PassSpan | None, PassSpan | None]:
    """The passes of the baseline and of the contender, each where it is marked for them.

    The contender's latency shows in nothing but the change.
    """
    baseline, contender = comparison.baseline_passes, comparison.contender_passes
    return (
        _tell(comparison, baseline),
        None if comparison.ratio is None else _tell(comparison, contender),
    )


def _tell(comparison: Comparison, passes: PassSpan | None) -> PassSpan | None:
    if passes is None or not passes.far:
        return None
    counts = comparison.verdict is not Verdict.UNCHANGED or passes.is_beyond_trimming
    return passes if counts else None


def _is_left_out(comparison: Comparison) -> bool:
    """Whether passes of an unchanged cell lie far off and it is not marked for them."""
    sides = (comparison.baseline_passes, comparison.contender_passes)
    has_far = any(each is not None and each.far for each in sides)
    is_unchanged = comparison.verdict is Verdict.UNCHANGED
    return is_unchanged and has_far and not any(_find_told(comparison))


def _write_far(passes: PassSpan) -> tuple[str, str, str]:
    far = " of ".join(map(units.format_count, (passes.far, passes.count)))
    return far, *_write_ends(passes)


def _write_span(passes: PassSpan) -> str:
    lowest, highest = _write_ends(passes)
    return lowest if lowest == highest else f"{lowest} to {highest}"


def _write_ends(passes: PassSpan) -> tuple[str, str]:
    return units.format_latency(passes.lowest_ns), units.format_latency(passes.highest_ns)
