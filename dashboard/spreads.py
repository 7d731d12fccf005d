"""The figure of a study of noise, as the plain values that plotly.js reads."""

import math
from collections.abc import Sequence
from html import escape

from perfci import units
from perfci.dashboard.plots import AXIS, Values, base_layout, colour_of
from perfci.decision.noise import CellNoise

_ROW_PX = 22
_FRAME_PX = 96
_LONGEST_NAME = 28
_ROOM = 0.1


def scale_of(noise: Sequence[CellNoise]) -> tuple[float, float]:
    """Return the logarithms of the least and the largest spread in percent, with some room."""
    spreads = [
        spread.value for each in noise for spread in (each.floor.unpaired, each.floor.paired)
    ]
    shown = [math.log10(100.0 * each) for each in spreads if each > 0.0] or [0.0]
    return min(shown) - _ROOM, max(shown) + _ROOM


def spread_figure(noise: Sequence[CellNoise], *, scale: tuple[float, float]) -> Values:
    """Draw the two spreads of each cell of a kernel in percent, in the order given.

    On a logarithmic axis, which stands above: the figure may be higher than a screen.
    """
    rows = list(range(len(noise)))
    names = [_name(each) for each in noise]
    sides = (
        ("apart", "circle", [each.floor.unpaired.value for each in noise]),
        ("paired", "diamond", [each.floor.paired.value for each in noise]),
    )
    traces = [
        {
            "type": "scatter",
            "name": label,
            "mode": "markers",
            "x": [100.0 * value for value in values],
            "y": rows,
            "marker": {"color": colour_of(index), "symbol": symbol, "size": 9},
            "hoverinfo": "text",
            "hovertext": [
                f"{name}<br>{label} {units.format_spread(value)}"
                for name, value in zip(names, values, strict=True)
            ],
        }
        for index, (label, symbol, values) in enumerate(sides)
    ]
    layout = {
        **base_layout(_FRAME_PX + _ROW_PX * len(noise)),
        "showlegend": True,
        "legend": {"orientation": "h", "x": 1, "xanchor": "right", "y": 0, "yref": "container"},
        "xaxis": {
            **AXIS,
            "type": "log",
            "range": list(scale),
            "dtick": 1,
            "minor": {"dtick": "D2", "showgrid": True, "gridcolor": "#f0f1f3"},
            "side": "top",
            "title": {"text": "spread, %"},
            "automargin": True,
        },
        "yaxis": {
            **AXIS,
            "range": [len(noise) - 0.5, -0.5],
            "tickmode": "array",
            "tickvals": rows,
            "ticktext": names,
            "automargin": True,
        },
    }
    layout["margin"] = {"l": 12, "r": 12, "t": 52, "b": 36}
    return {"data": traces, "layout": layout}


def _name(noise: CellNoise) -> str:
    key = noise.key
    timer = key.contract.partition("/")[0]
    name = f"{key.variant}/{key.case} {timer}"
    half = _LONGEST_NAME // 2
    return escape(name if len(name) <= _LONGEST_NAME else f"{name[:half]}…{name[-half:]}")
