"""Figures: rows in, plotly's figures out, as the plain values that plotly.js reads.

No store, no request, no clock, and no import of plotly, which would take longer than the page.
Text from the store is escaped, since plotly reads some HTML in hover texts and names.
"""

from collections.abc import Sequence
from html import escape
from itertools import accumulate
from typing import Any

from perfci import units
from perfci.dashboard import urls
from perfci.dashboard.lines import ERROR, YARDSTICK, History, Line, Point
from perfci.dashboard.states import Scale
from perfci.history.model import LatencySummary, Pass, Status

Values = dict[str, Any]

# Okabe and Ito's palette without black and yellow, which vanish on a dark or a light page.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F")
MARKERS = (
    "circle",
    "square",
    "diamond",
    "triangle-up",
    "triangle-down",
    "pentagon",
    "star",
    "hexagon",
)
DASHES = ("solid", "dash", "dot", "dashdot")
MOST_DRAWN_SAMPLES = 6000
_MOST_TICKS = 14
_LONGEST_HOVER = 160
_GREY = "#7F7F7F"
_AXIS: Values = {
    "gridcolor": "#e5e7eb",
    "zeroline": False,
    "linecolor": "#9ca3af",
    "showline": True,
}


def history_figure(history: History, *, scale: Scale = "linear") -> Values:
    """Draw latencies, failures and errors along a branch, three panels over one axis.

    The latency axis is in µs and starts at zero unless ``scale`` is ``log``. A failed cell is an ✕
    in the strip below, never a number; a missing one is a gap there marked by a dash.
    """
    styles = _styles(history.lines)
    traces = []
    for index, line in enumerate(history.lines):
        style = styles[line.testbed, line.variant]
        traces += [
            _latency_trace(history, line, style),
            _failure_trace(history, line, index, style),
            _error_trace(history, line, style),
        ]
    return {
        "data": traces + _yardstick_traces(history),
        "layout": _history_layout(history, scale),
    }


def samples_figure(passes: Sequence[Pass], pass_means_ns: Sequence[float]) -> Values:
    """Draw the samples of one cell in reading order, and each pass's interquartile mean.

    ``pass_means_ns`` has one mean a pass. Above a few thousand samples every n-th is drawn; the
    means are over all of them.
    """
    count = sum(len(each.samples_ns) for each in passes)
    step = max(1, -(-count // MOST_DRAWN_SAMPLES))
    starts = accumulate((len(each.samples_ns) for each in passes), initial=0)
    traces = []
    for order, (each, start, mean_ns) in enumerate(
        zip(passes, starts, pass_means_ns, strict=False)
    ):
        colour = COLOURS[order % 2]
        traces += [
            _sample_trace(each, start, step, colour),
            _mean_trace(each, start, mean_ns, colour),
        ]
    title = "sample, in reading order" + (f" (every {step}th drawn)" if step > 1 else "")
    layout = _layout(320)
    layout["xaxis"] = _AXIS | {"title": {"text": title}, "range": [0, count + 1]}
    layout["yaxis"] = _AXIS | {"title": {"text": "latency (µs), not from 0"}}
    return {"data": traces, "layout": layout}


def _sample_trace(each: Pass, start: int, step: int, colour: str) -> Values:
    indices = range(0, len(each.samples_ns), step)
    latencies = [each.samples_ns[index] for index in indices]
    return {
        "type": "scatter",
        "x": [start + index + 1 for index in indices],
        "y": [latency_ns / 1e3 for latency_ns in latencies],
        "mode": "markers",
        "marker": {"color": colour, "size": 4, "opacity": 0.6},
        "hovertext": [
            f"pass {each.index}, sample {index + 1}<br>{units.format_latency(latency_ns)}"
            for index, latency_ns in zip(indices, latencies, strict=True)
        ],
        "hoverinfo": "text",
        "showlegend": False,
    }


def _mean_trace(each: Pass, start: int, mean_ns: float, colour: str) -> Values:
    return {
        "type": "scatter",
        "x": [start + 1, start + len(each.samples_ns)],
        "y": [mean_ns / 1e3] * 2,
        "mode": "lines",
        "line": {"color": colour, "width": 2.5},
        "hovertext": f"pass {each.index}, interquartile mean<br>{units.format_latency(mean_ns)}",
        "hoverinfo": "text",
        "showlegend": False,
    }


def _styles(lines: Sequence[Line]) -> dict[tuple[str, str], Values]:
    """Give every variant a colour and a marker, every testbed a dash."""
    variants = list(dict.fromkeys(line.variant for line in lines))
    testbeds = list(dict.fromkeys(line.testbed for line in lines))
    return {
        (testbed, variant): {
            "mode": "lines+markers",
            "line": {
                "color": COLOURS[column % len(COLOURS)],
                "dash": DASHES[row % len(DASHES)],
                "width": 1.5,
            },
            "marker": {
                "color": COLOURS[column % len(COLOURS)],
                "symbol": MARKERS[column % len(MARKERS)],
                "size": 6,
            },
        }
        for row, testbed in enumerate(testbeds)
        for column, variant in enumerate(variants)
    }


def _line_trace(history: History, line: Line) -> Values:
    return {
        "type": "scatter",
        "x": _shas(history),
        "name": escape(_name(history, line)),
        "legendgroup": _name(history, line),
        "connectgaps": False,
        "hovertext": [_hover(line, point) for point in line.points],
        "hoverinfo": "text",
        "customdata": [
            None if point is None else urls.run_url(point.run.run_id) for point in line.points
        ],
    }


def _latency_trace(history: History, line: Line, style: Values) -> Values:
    latencies = [_latency(point) for point in line.points]
    return {
        **_line_trace(history, line),
        **style,
        "y": [None if each is None else each.median_ns / 1e3 for each in latencies],
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [
                None if each is None else (each.upper_quartile_ns - each.median_ns) / 1e3
                for each in latencies
            ],
            "arrayminus": [
                None if each is None else (each.median_ns - each.lower_quartile_ns) / 1e3
                for each in latencies
            ],
            "thickness": 1,
            "width": 2,
        },
    }


def _failure_trace(history: History, line: Line, index: int, style: Values) -> Values:
    colour = style["marker"]["color"]
    # Points that passed stay as gaps: plotly draws an axis without any points at no place at all.
    marked = [
        None if point is None or point.status is Status.PASSED else point for point in line.points
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
        "showlegend": False,
        "hovertext": ["" if point is None else _hover(line, point) for point in marked],
    }


def _error_trace(history: History, line: Line, style: Values) -> Values:
    return {
        **_line_trace(history, line),
        **style,
        "y": [_metric(point, ERROR) for point in line.points],
        "hovertext": [_error_hover(line, point) for point in line.points],
        "yaxis": "y3",
        "showlegend": False,
    }


def _yardstick_traces(history: History) -> list[Values]:
    """Draw the yardstick's error once a testbed: it does not depend on the variant."""
    traces = []
    for testbed in dict.fromkeys(line.testbed for line in history.lines):
        rows = [line.points for line in history.lines if line.testbed == testbed]
        columns = [
            [_metric(point, YARDSTICK) for point in column] for column in zip(*rows, strict=True)
        ]
        errors = [next((each for each in column if each is not None), None) for column in columns]
        if all(error is None for error in errors):
            continue
        hover = f"yardstick, {escape(testbed)}<br>error"
        traces.append(
            {
                "type": "scatter",
                "x": _shas(history),
                "y": errors,
                "yaxis": "y3",
                "name": f"yardstick’s error, {escape(testbed)}",
                "mode": "lines",
                "line": {"color": _GREY, "dash": "dot", "width": 1.5},
                "hovertext": [f"{hover} {units.format_error(error)}" for error in errors],
                "hoverinfo": "text",
            }
        )
    return traces


def _history_layout(history: History, scale: Scale) -> Values:
    strip = 14 * max(len(history.lines), 2)
    heights = (170, 18, strip, 18, 330)
    layout = _layout(sum(heights) + 110)
    ends = list(accumulate((height / sum(heights) for height in heights), initial=0.0))
    layout["legend"] = {"orientation": "h", "yanchor": "bottom", "y": 1.01, "x": 0}
    layout["xaxis"] = _commit_axis(_shas(history))
    latency = {"type": "log"} if scale == "log" else {"rangemode": "tozero"}
    layout["yaxis"] = (
        _AXIS | latency | {"title": {"text": "latency (µs)"}, "domain": [ends[4], 1.0]}
    )
    layout["yaxis2"] = _strip_axis(len(history.lines)) | {"domain": [ends[2], ends[3]]}
    layout["yaxis3"] = _error_axis(history) | {"domain": [0.0, ends[1]]}
    layout["shapes"] = [
        {
            "type": "line",
            "x0": history.commits[event.index].sha,
            "x1": history.commits[event.index].sha,
            "y0": 0,
            "y1": 1,
            "xref": "x",
            "yref": "paper",
            "line": {"color": _GREY, "dash": "dot", "width": 1.5},
        }
        for event in history.events
    ]
    return layout


def _commit_axis(shas: Sequence[str]) -> Values:
    ticks = shas[:: max(1, -(-len(shas) // _MOST_TICKS))]
    return _AXIS | {
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
    return _AXIS | {
        "title": {"text": "failed", "font": {"size": 11}},
        "range": [line_count - 0.5, -0.5],
        "showticklabels": False,
        "showgrid": False,
        "fixedrange": True,
    }


def _error_axis(history: History) -> Values:
    errors = [_metric(point, ERROR) for line in history.lines for point in line.points]
    is_positive = all(error > 0 for error in errors if error is not None)
    return _AXIS | {
        "title": {"text": "max. abs. error"},
        "type": "log" if is_positive else "linear",
        "exponentformat": "e",
        "nticks": 5,
    }


def _layout(height: int) -> Values:
    return {
        "height": height,
        "font": {"family": "system-ui, sans-serif", "size": 12, "color": "#4b5563"},
        "margin": {"l": 72, "r": 12, "t": 12, "b": 64},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "hovermode": "closest",
        "hoverlabel": {"align": "left"},
    }


def _shas(history: History) -> list[str]:
    return [commit.sha for commit in history.commits]


def _name(history: History, line: Line) -> str:
    several = len({each.testbed for each in history.lines}) > 1
    return f"{line.variant} · {line.testbed}" if several else line.variant


def _latency(point: Point | None) -> LatencySummary | None:
    return None if point is None or point.cell is None else point.cell.latency


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
        rows.append(
            f"median {units.format_latency(latency.median_ns)}, quartiles "
            f"{units.format_latency(latency.lower_quartile_ns)} to "
            f"{units.format_latency(latency.upper_quartile_ns)}"
        )
        rows.append(
            f"{units.format_count(latency.sample_count)} samples in "
            f"{units.format_count(len(latency.pass_means_ns))} passes"
        )
    return rows + _errors(point)


def _errors(point: Point) -> list[str]:
    error, yardstick = _metric(point, ERROR), _metric(point, YARDSTICK)
    if error is None:
        return []
    return [f"error {units.format_error(error)}, yardstick {units.format_error(yardstick)}"]
