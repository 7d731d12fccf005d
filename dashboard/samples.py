"""The figure of one row's samples: passes in, plotly's figure out. Pure."""

from collections.abc import Sequence
from itertools import accumulate

from perfci import units
from perfci.dashboard.plots import AXIS, COLOURS, Values, base_layout
from perfci.history.latency import interquartile_mean
from perfci.history.model import Pass

MOST_DRAWN_SAMPLES = 6000


def samples_figure(passes: Sequence[Pass]) -> Values:
    """Draw the samples of one cell in reading order, and each pass's interquartile mean.

    Above a few thousand samples every n-th is drawn; the means are over all of them. Passes in
    quarantine are drawn as well, hollow, and without a mean.
    """
    count = sum(len(each.samples_ns) for each in passes)
    step = max(1, -(-count // MOST_DRAWN_SAMPLES))
    starts = accumulate((len(each.samples_ns) for each in passes), initial=0)
    traces = []
    for order, (each, start) in enumerate(zip(passes, starts, strict=False)):
        colour = COLOURS[order % 2]
        traces.append(_sample_trace(each, start, step, colour))
        if not each.quarantine:
            traces.append(_mean_trace(each, start, interquartile_mean(each.samples_ns), colour))
    title = "sample, in reading order" + (f" (one of {step} drawn)" if step > 1 else "")
    layout = base_layout(320)
    layout["xaxis"] = AXIS | {"title": {"text": title}, "range": [0, count + 1]}
    layout["yaxis"] = AXIS | {"title": {"text": "latency (µs), not from 0"}}
    return {"data": traces, "layout": layout}


def _sample_trace(each: Pass, start: int, step: int, colour: str) -> Values:
    indices = range(0, len(each.samples_ns), step)
    latencies = [each.samples_ns[index] for index in indices]
    return {
        "type": "scatter",
        "x": [start + index + 1 for index in indices],
        "y": [latency_ns / 1e3 for latency_ns in latencies],
        "mode": "markers",
        "marker": {
            "color": colour,
            "size": 4,
            "opacity": 0.6,
            "symbol": "circle-open" if each.quarantine else "circle",
        },
        "hovertext": [
            f"pass {each.index + 1}, sample {index + 1}<br>{units.format_latency(latency_ns)}"
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
        "hovertext": f"pass {each.index + 1}, interquartile mean<br>"
        f"{units.format_latency(mean_ns)}",
        "hoverinfo": "text",
        "showlegend": False,
    }
