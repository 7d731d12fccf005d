"""The figure of a study of noise, as the plain values that plotly.js reads."""

from collections.abc import Sequence
from html import escape

from perfci import units
from perfci.dashboard.plots import AXIS, Values, base_layout, colour_of
from perfci.decision.noise import CellNoise

_ROW_PX = 22
_FRAME_PX = 90
_LONGEST_NAME = 44


def spread_figure(noise: Sequence[CellNoise]) -> Values:
    """Draw each cell's two spreads in percent, on a logarithmic axis, in the order given."""
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
        "legend": {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom"},
        "xaxis": {
            **AXIS,
            "type": "log",
            "dtick": "D2",
            "title": {"text": "spread, %"},
            "automargin": True,
        },
        "yaxis": {
            **AXIS,
            "autorange": "reversed",
            "tickmode": "array",
            "tickvals": rows,
            "ticktext": names,
            "automargin": True,
        },
    }
    layout["margin"] = {"l": 12, "r": 12, "t": 36, "b": 48}
    return {"data": traces, "layout": layout}


def _name(noise: CellNoise) -> str:
    key = noise.key
    timer = key.contract.partition("/")[0]
    name = f"{key.kernel}/{key.variant}/{key.case} {timer}"
    half = _LONGEST_NAME // 2
    return escape(name if len(name) <= _LONGEST_NAME else f"{name[:half]}…{name[-half:]}")
