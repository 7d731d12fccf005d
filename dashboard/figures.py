"""Figures: rows in, plotly's figures out, as the plain values that plotly.js reads.

No store, no request, no clock, and no import of plotly, which would take longer than the page.
Text from the store is escaped, since plotly reads some HTML in hover texts and names.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from html import escape
from itertools import accumulate

from perfci import units
from perfci.dashboard import urls
from perfci.dashboard.edges import Edges, find_edges
from perfci.dashboard.lines import ERROR, YARDSTICK, Event, History, Line, Point, order_variants
from perfci.dashboard.plots import AXIS, GREY, Values, base_layout, colour_of, dash_of, marker_of
from perfci.dashboard.states import Scale
from perfci.history.latency import LatencySummary
from perfci.history.model import Status
from perfci.reports.passes import describe_interval, describe_passes

_MOST_TICKS = 14
_LONGEST_HOVER = 160


def history_figure(
    history: History, *, scale: Scale = "linear", variants: Collection[str] | None = None
) -> Values:
    """Draw latencies, failures and errors along a branch, three panels over one axis.

    The latency axis is in µs and starts at zero unless ``scale`` is ``log``. A failed cell is an ✕
    in the strip below, never a number; a missing one is a gap there marked by a dash. Only
    ``variants`` are drawn, or all where it is None; each has its colour and mark either way. An
    interval out of all proportion is cut at the edge, as its point says under the pointer.
    """
    styles = _styles(history.lines)
    drawn = [line for line in history.lines if variants is None or line.variant in variants]
    shown = replace(history, lines=tuple(drawn))
    edges = find_edges(
        (point.latency for line in drawn for point in line.points if point and point.latency),
        scale,
    )
    traces = []
    for index, line in enumerate(drawn):
        style = styles[line.testbed, line.variant]
        traces += [
            _interval_trace(shown, line, style),
            _latency_trace(shown, line, style, edges),
            _failure_trace(shown, line, index, style),
            _error_trace(shown, line, style),
        ]
    return {
        "data": traces + _yardstick_traces(shown),
        "layout": _history_layout(shown, scale, edges),
    }


def _styles(lines: Sequence[Line]) -> dict[tuple[str, str], Values]:
    """Give every variant a colour and a marker, every testbed a dash."""
    variants = order_variants(lines)
    testbeds = list(dict.fromkeys(line.testbed for line in lines))
    return {
        (testbed, variant): {
            "mode": "lines+markers",
            "line": {"color": colour_of(column), "dash": dash_of(row), "width": 1.75},
            "marker": {"color": colour_of(column), "symbol": marker_of(column), "size": 7},
        }
        for row, testbed in enumerate(testbeds)
        for column, variant in enumerate(variants)
    }


def _path(history: History, line: Line) -> list[tuple[str, Point | None]]:
    """The commits (SHAs) of a line with their points.

    None is a gap where the workload changed: plotly joins what has nothing between it. Commits
    about which there is nothing to say are left out, so that the line goes on across them.
    """
    breaks = line.breaks
    path: list[tuple[str, Point | None]] = []
    for index, (commit, point) in enumerate(zip(history.commits, line.points, strict=True)):
        if index in breaks:
            path.append((commit.sha, None))
        if point is not None:
            path.append((commit.sha, point))
    return path


def _line_trace(history: History, line: Line) -> Values:
    path = _path(history, line)
    return {
        "type": "scatter",
        "x": [sha for sha, _ in path],
        "name": escape(_name(history, line)),
        "connectgaps": False,
        "hovertext": [_hover(line, point) for _, point in path],
        "hoverinfo": "text",
        "customdata": [
            None if point is None else urls.run_url(point.run.run_id) for _, point in path
        ],
    }


def _latency_trace(history: History, line: Line, style: Values, edges: Edges) -> Values:
    path = _path(history, line)
    latencies = [None if point is None else point.latency for _, point in path]
    return {
        **_line_trace(history, line),
        **style,
        "y": [None if each is None else each.typical_ns / 1e3 for each in latencies],
        "hovertext": [_latency_hover(line, point, edges) for _, point in path],
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [
                None if each is None else (_interval_ns(each)[1] - each.typical_ns) / 1e3
                for each in latencies
            ],
            "arrayminus": [
                None if each is None else (each.typical_ns - _interval_ns(each)[0]) / 1e3
                for each in latencies
            ],
            "thickness": 1.5,
            "width": 3,
        },
    }


def _interval_ns(latency: LatencySummary) -> tuple[float, float]:
    """The interval of a latency; without one, as of a single pass, nothing on either side."""
    return latency.interval_ns or (latency.typical_ns, latency.typical_ns)


def _interval_trace(history: History, line: Line, style: Values) -> Values:
    """Fill the intervals of the latencies, one shape for each unbroken stretch."""
    shas: list[str | None] = []
    edges_us: list[float | None] = []
    for segment in line.segments:
        summaries = [
            (history.commits[index].sha, latency)
            for index in segment
            if (point := line.points[index]) and (latency := point.latency)
        ]
        back = summaries[::-1]
        shas += [sha for sha, _ in (*summaries, *back)] + [None]
        edges_us += [_interval_ns(latency)[1] / 1e3 for _, latency in summaries]
        edges_us += [_interval_ns(latency)[0] / 1e3 for _, latency in back]
        edges_us.append(None)
    return {
        "type": "scatter",
        "x": shas,
        "y": edges_us,
        "name": f"intervals of {escape(_name(history, line))}",
        "mode": "lines",
        "fill": "toself",
        "fillcolor": f"{style['line']['color']}38",
        "line": {"width": 0},
        "hoverinfo": "skip",
        "connectgaps": False,
    }


def _failure_trace(history: History, line: Line, index: int, style: Values) -> Values:
    colour = style["marker"]["color"]
    # Points that passed stay as gaps: plotly draws an axis without any points at no place at all.
    marked = [
        None if point is None or point.status is Status.PASSED else point
        for _, point in _path(history, line)
    ]
    return {
        **_line_trace(history, line),
        "y": [None if point is None else index for point in marked],
        "yaxis": "y2",
        "mode": "markers",
        "marker": {
            "symbol": ["x" if _has_failed(point) else "line-ew-open" for point in marked],
            "color": colour,
            "size": 8,
            "line": {"width": 1.5, "color": colour},
        },
        "hovertext": ["" if point is None else _hover(line, point) for point in marked],
    }


def _error_trace(history: History, line: Line, style: Values) -> Values:
    path = _path(history, line)
    return {
        **_line_trace(history, line),
        **style,
        "y": [_metric(point, ERROR) for _, point in path],
        "hovertext": [_error_hover(line, point) for _, point in path],
        "yaxis": "y3",
    }


def _yardstick_traces(history: History) -> list[Values]:
    """Draw the yardstick's error once a testbed: it does not depend on the variant."""
    traces = []
    for testbed in dict.fromkeys(line.testbed for line in history.lines):
        rows = [line.points for line in history.lines if line.testbed == testbed]
        breaks = {event.index for event in history.breaks if event.testbed == testbed}
        shas: list[str] = []
        errors: list[float | None] = []
        for index, column in enumerate(zip(*rows, strict=True)):
            known = (_metric(point, YARDSTICK) for point in column)
            error = next((each for each in known if each is not None), None)
            gap = [None] if index in breaks else []
            errors += [*gap, error]
            shas += [history.commits[index].sha] * (len(gap) + 1)
        if all(error is None for error in errors):
            continue
        hover = f"yardstick, {escape(testbed)}<br>error"
        traces.append(
            {
                "type": "scatter",
                "x": shas,
                "y": errors,
                "yaxis": "y3",
                "name": f"yardstick’s error, {escape(testbed)}",
                "mode": "lines",
                "line": {"color": GREY, "dash": "dot", "width": 1.5},
                "hovertext": [f"{hover} {units.format_error(error)}" for error in errors],
                "hoverinfo": "text",
            }
        )
    return traces


def _history_layout(history: History, scale: Scale, edges: Edges) -> Values:
    strip = 11 * max(len(history.lines), 3)
    heights = (150, 16, strip, 16, 330)
    layout = base_layout(sum(heights) + 92)
    ends = list(accumulate((height / sum(heights) for height in heights), initial=0.0))
    layout["showlegend"] = False
    layout["xaxis"] = _commit_axis(_shas(history))
    latency = {"type": "log"} if scale == "log" else {"rangemode": "tozero"}
    place = {"title": {"text": "latency (µs)"}, "domain": [ends[4], 1.0]}
    numbers = {"exponentformat": "none", "separatethousands": True}
    span_us = edges.span_us(scale)
    reach = {} if span_us is None else {"range": list(span_us)}
    layout["yaxis"] = AXIS | latency | place | numbers | reach
    layout["yaxis2"] = _strip_axis(len(history.lines)) | {"domain": [ends[2], ends[3]]}
    layout["yaxis3"] = _error_axis(history) | {"domain": [0.0, ends[1]]}
    layout["shapes"] = [
        *(_upright(event, "dot", 1.0) for event in history.events),
        *(_upright(event, "solid", 1.5) for event in history.breaks),
    ]
    layout["annotations"] = [
        *(_sign(event, "env") for event in history.events),
        *(_sign(event, "≠ case") for event in history.breaks),
    ]
    return layout


def _upright(event: Event, dash: str, width: float) -> Values:
    """A line between the commit of a change and the one before."""
    return {
        "type": "line",
        "x0": event.index - 0.5,
        "x1": event.index - 0.5,
        "y0": 0,
        "y1": 1,
        "xref": "x",
        "yref": "paper",
        "line": {"color": GREY, "dash": dash, "width": width},
    }


def _sign(event: Event, text: str) -> Values:
    """The sign at the upper end of such a line, which says under the pointer what changed."""
    return {
        "x": event.index - 0.5,
        "y": 1,
        "xref": "x",
        "yref": "paper",
        "yanchor": "bottom",
        "showarrow": False,
        "text": text,
        "font": {"size": 11, "color": GREY},
        "hovertext": escape(f"{event.testbed}: {event.what}"[:_LONGEST_HOVER]),
    }


def _commit_axis(shas: Sequence[str]) -> Values:
    ticks = shas[:: max(1, -(-len(shas) // _MOST_TICKS))]
    return AXIS | {
        "type": "category",
        "anchor": "y3",
        "categoryorder": "array",
        "categoryarray": shas,
        "range": [-0.5, len(shas) - 0.5],
        "tickvals": ticks,
        "ticktext": [escape(sha[:7]) for sha in ticks],
        "tickangle": -45,
    }


def _strip_axis(line_count: int) -> Values:
    return AXIS | {
        "title": {"text": "failed", "font": {"size": 11}},
        "range": [line_count - 0.5, -0.5],
        "showticklabels": False,
        "showgrid": False,
        "fixedrange": True,
    }


def _error_axis(history: History) -> Values:
    errors = [_metric(point, ERROR) for line in history.lines for point in line.points]
    is_positive = all(error > 0 for error in errors if error is not None)
    return AXIS | {
        "title": {"text": "max. abs. error"},
        "type": "log" if is_positive else "linear",
        "exponentformat": "e",
        "nticks": 5,
    }


def _shas(history: History) -> list[str]:
    return [commit.sha for commit in history.commits]


def _name(history: History, line: Line) -> str:
    several = len({each.testbed for each in history.lines}) > 1
    return f"{line.variant} · {line.testbed}" if several else line.variant


def _metric(point: Point | None, name: str) -> float | None:
    metric = point.cell.metric(name) if point is not None and point.cell is not None else None
    return None if metric is None else metric.value


def _has_failed(point: Point | None) -> bool:
    return point is not None and point.status.is_failure and point.status is not Status.MISSING


def _hover(line: Line, point: Point | None) -> str:
    if point is None:
        return ""
    commit = point.run.commit
    rows = [
        f"{line.variant} · {line.testbed}",
        f"{units.shorten_sha(commit.sha)} {commit.subject}",
        units.format_date(commit.committed_at),
        *_figures(point),
    ]
    if point.attempts > 1:
        rows.append(f"newest of {point.attempts} runs at this commit")
    return "<br>".join(escape(row[:_LONGEST_HOVER]) for row in rows)


def _latency_hover(line: Line, point: Point | None, edges: Edges) -> str:
    text = _hover(line, point)
    latency = None if point is None else point.latency
    is_cut = latency is not None and edges.cut(latency)
    return f"{text}<br>the interval is cut at the edge of the figure" if is_cut else text


def _error_hover(line: Line, point: Point | None) -> str:
    if point is None or point.cell is None:
        return ""
    sha = units.shorten_sha(point.run.commit.sha)
    return "<br>".join(escape(row) for row in (f"{line.variant} · {sha}", *_errors(point)))


def _figures(point: Point) -> list[str]:
    if point.cell is None:
        return ["missing: measured before, not in this run"]
    rows = []
    if point.status is not Status.PASSED:
        rows.append(f"{point.status.value.replace('_', ' ')}: {point.cell.message}")
    latency = point.cell.latency
    if latency is not None:
        interval = f", 95 % interval {describe_interval(latency)}" if latency.interval_ns else ""
        rows.append(f"latency {units.format_latency(latency.typical_ns)}{interval}")
        rows.append(describe_passes(latency.span))
    return rows + _errors(point)


def _errors(point: Point) -> list[str]:
    error, yardstick = _metric(point, ERROR), _metric(point, YARDSTICK)
    if error is None:
        return []
    return [f"error {units.format_error(error)}, yardstick {units.format_error(yardstick)}"]
