"""The figures of a study of noise, as the plain values that plotly.js reads."""

import math
from collections.abc import Mapping, Sequence
from html import escape

from perfci import units
from perfci.dashboard.plots import AXIS, Values, base_layout, colour_of
from perfci.decision.noise import CellNoise

SIDES = (("apart", "circle"), ("paired", "diamond"))
"""The two spreads of a cell, in the order of their colours, and plotly's name of each mark."""

_ROW_PX = 22
_ABOVE_PX, _BELOW_PX = 52, 12
_CHARACTER_PX = 7.5  # of the widest of the fonts that a browser may take for the names
_LONGEST_NAME = 22
_ROOM = 0.1


def spread_figures(noise: Sequence[CellNoise]) -> dict[str, Values]:
    """Draw the two spreads of each cell in percent, a figure a kernel, in the order given.

    All have one scale and names of one width, so that what stands below each other can be compared.
    """
    kernels: dict[str, list[CellNoise]] = {}
    for each in noise:
        kernels.setdefault(each.key.kernel, []).append(each)
    names = {kernel: _name_cells(own) for kernel, own in kernels.items()}
    longest = max((len(name) for own in names.values() for name in own), default=0)
    scale = _find_scale(noise)
    return {
        kernel: _draw(own, names[kernel], scale=scale, left_px=round(_CHARACTER_PX * longest) + 12)
        for kernel, own in kernels.items()
    }


def _find_scale(noise: Sequence[CellNoise]) -> tuple[float, float]:
    """The logarithms of the least and the largest spread in percent, with some room."""
    spreads = [value for each in noise for value in _spreads(each).values()]
    shown = [math.log10(100.0 * each) for each in spreads if each > 0.0] or [0.0]
    return min(shown) - _ROOM, max(shown) + _ROOM


def _spreads(noise: CellNoise) -> Mapping[str, float]:
    return {"apart": noise.floor.unpaired.value, "paired": noise.floor.paired.value}


def _draw(
    noise: Sequence[CellNoise], names: Sequence[str], *, scale: tuple[float, float], left_px: int
) -> Values:
    """Draw on a logarithmic axis, which stands above: the figure may be higher than a screen."""
    rows = list(range(len(noise)))
    traces = [
        {
            "type": "scatter",
            "name": label,
            "mode": "markers",
            "x": [100.0 * _spreads(each)[label] for each in noise],
            "y": rows,
            "marker": {"color": colour_of(index), "symbol": symbol, "size": 9},
            "hoverinfo": "text",
            "hovertext": [
                f"{_name_whole(each)}<br>{label} {units.format_spread(_spreads(each)[label])}"
                for each in noise
            ],
        }
        for index, (label, symbol) in enumerate(SIDES)
    ]
    layout = {
        **base_layout(_ABOVE_PX + _ROW_PX * len(noise) + _BELOW_PX),
        "showlegend": False,
        "xaxis": {
            **AXIS,
            "type": "log",
            "range": list(scale),
            "dtick": 1,
            "minor": {"dtick": "D2", "showgrid": True, "gridcolor": "#f0f1f3"},
            "side": "top",
            "title": {"text": "spread, %", "standoff": 4},
        },
        "yaxis": {
            **AXIS,
            "range": [len(noise) - 0.5, -0.5],
            "tickmode": "array",
            "tickvals": rows,
            "ticktext": [escape(name) for name in names],
        },
    }
    layout["margin"] = {"l": left_px, "r": 12, "t": _ABOVE_PX, "b": _BELOW_PX}
    return {"data": traces, "layout": layout}


def _name_cells(noise: Sequence[CellNoise]) -> list[str]:
    """Name the cells of a kernel, short enough for a telephone; a case only among several."""
    several = len({each.key.case for each in noise}) > 1
    return [_name(each, with_case=several) for each in noise]


def _name(noise: CellNoise, *, with_case: bool) -> str:
    key = noise.key
    timer = f" {key.contract.partition('/')[0]}"
    name = f"{key.variant}/{key.case}" if with_case else key.variant
    room = _LONGEST_NAME - len(timer)
    if len(name) > room:
        half = (room - 1) // 2
        name = f"{name[: room - 1 - half]}…{name[-half:]}"
    return name + timer


def _name_whole(noise: CellNoise) -> str:
    key = noise.key
    return escape(f"{key.variant}/{key.case} {key.contract}")
