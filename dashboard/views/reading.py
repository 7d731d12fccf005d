"""One cell of the overview's tables: its latency, how it compares, and its last commits."""

from dash import html
from dash.development.base_component import Component

from perfci import units
from perfci.dashboard import components, sparkline
from perfci.dashboard.components import Child
from perfci.dashboard.lines import PEER
from perfci.dashboard.snapshot import Place, Snapshot
from perfci.history.model import Cell, Comparison, Status, Verdict
from perfci.reports.passes import describe_interval, describe_passes, write_latency

_SPEED_UP = f"how many times as fast as {PEER} in the same run"


def show(snapshot: Snapshot, place: Place, cell: Cell | None) -> Component:
    """Show what stands at a place; ``cell`` is None where it is missing now."""
    comparison = snapshot.comparisons.get(place)
    if cell is None:
        reason = comparison.reason if comparison else ""
        title = f"known at the commit before, not in this run. {reason}".strip()
        return html.Td(components.status_mark(Status.MISSING), className="reading", title=title)
    if cell.latency is None:
        mark = components.status_mark(cell.status)
        return html.Td(mark, className="reading", title=_explain(snapshot, cell, comparison))
    notes: list[Child] = []
    if comparison is not None:
        notes += [_change(comparison), " "]
    if speed_up := snapshot.speed_up(place):
        times = f"{units.format_multiple(speed_up)} as fast as eager"
        notes.append(html.Span(times, className="speed-up", title=_SPEED_UP))
    measured = html.Div(
        [
            html.Div(
                [
                    html.Span(write_latency(cell.latency), className="latency"),
                    _bar(snapshot.share(place)),
                ],
                className="measure",
            ),
            html.Div(notes, className="notes"),
        ],
        className="measured-cell",
    )
    parts = [measured, _trend(snapshot, place)]
    return html.Td(
        html.Div(parts, className="reading-box"),
        className="reading",
        title=_explain(snapshot, cell, comparison),
    )


def _bar(share: float | None) -> Child:
    if share is None:
        return ""
    filled = html.Span(style={"width": f"{100 * share:.1f}%"}, className="bar-fill")
    return components.aria(html.Span(filled, className="bar"), hidden="true")


def _trend(snapshot: Snapshot, place: Place) -> Child:
    line = snapshot.trends.get(place)
    address = sparkline.draw(line) if line is not None else ""
    if line is None or not address:
        return ""
    words = sparkline.describe(line)
    return html.Img(
        src=address,
        alt=words,
        title=words,
        width=sparkline.WIDTH,
        height=sparkline.HEIGHT,
        className="trend",
    )


def _change(comparison: Comparison) -> Component:
    if comparison.verdict is Verdict.NEW:
        return html.Span("no earlier figure", className="verdict neutral")
    change = "" if comparison.ratio is None else units.format_change(comparison.ratio)
    return components.verdict_mark(comparison.verdict, change)


def _explain(snapshot: Snapshot, cell: Cell, comparison: Comparison | None) -> str:
    lines = []
    if cell.latency is not None:
        if cell.latency.interval_ns is not None:
            lines.append(f"95 % interval {describe_interval(cell.latency)}")
        lines.append(describe_passes(cell.latency.span))
    if cell.message:
        lines.append(cell.message)
    if comparison is not None and comparison.ratio is not None and len(snapshot.runs) > 1:
        lines.append("latency of the newest run, change of all runs at this commit")
    if comparison is not None and comparison.interval is not None:
        lines.append(f"change {units.format_interval(comparison.interval)}")
    if comparison is not None and comparison.smallest_visible_change is not None:
        visible = units.format_visible(comparison.smallest_visible_change)
        lines.append(f"smallest visible change {visible}")
    if comparison is not None and comparison.reason:
        lines.append(comparison.reason)
    return "\n".join(lines)
