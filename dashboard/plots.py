"""What every figure shares: colours, marks, axes and a layout, as the values plotly.js reads."""

from typing import Any

Values = dict[str, Any]

# After Okabe and Ito's palette, without black and yellow and with the pale ones darkened, so that
# each stands out by 3 to 1 from a white and from a dark page.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#C2649A", "#B87A00", "#2E8FC7", "#7F7F7F")
MARKERS = {
    "circle": "●",
    "square": "■",
    "diamond": "◆",
    "triangle-up": "▲",
    "triangle-down": "▼",
    "pentagon": "⬟",
    "star": "★",
    "hexagon": "⬢",
}
DASHES = {"solid": "——", "dash": "– –", "dot": "· ·", "dashdot": "– ·"}
GREY = "#7F7F7F"
AXIS: Values = {
    "gridcolor": "#e5e7eb",
    "zeroline": False,
    "linecolor": "#9ca3af",
    "showline": True,
}


def colour_of(index: int) -> str:
    """Return the colour of the variant at a place in the list of all of them."""
    return COLOURS[index % len(COLOURS)]


def marker_of(index: int) -> str:
    """Return the same variant's marker, by plotly's name for it."""
    return list(MARKERS)[index % len(MARKERS)]


def dash_of(index: int) -> str:
    """Return the dash of the testbed at a place in the list of all of them."""
    return list(DASHES)[index % len(DASHES)]


def base_layout(height: int) -> Values:
    """Return the layout that figures begin with; ``height`` in pixels."""
    return {
        "height": height,
        "font": {"family": "system-ui, sans-serif", "size": 12, "color": "#4b5563"},
        "margin": {"l": 72, "r": 12, "t": 12, "b": 64},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "hovermode": "closest",
        "hoverlabel": {"align": "left"},
    }
