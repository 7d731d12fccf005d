"""A line of the last commits, small enough for a table: figures in, an image's address out. Pure.

An image in an address needs no script and no request; its colour stands out from light and dark.
"""

from collections.abc import Sequence
from urllib.parse import quote

from perfci import units
from perfci.dashboard.lines import Line

WIDTH, HEIGHT = 72, 22
_MARGIN = 3.0
_SMALLEST_SPAN = 0.1
_COLOUR = "#5b84b1"


def draw(line: Line) -> str:
    """Draw the latencies of a line as a ``data:`` address of an SVG image.

    What failed or is missing and a change of the workload are gaps. The height spans at least a
    tenth of the largest, so that noise does not look like news. Empty below two.
    """
    latencies_ns = _latencies_ns(line)
    if len(latencies_ns) < 2:
        return ""
    top_ns, bottom_ns = max(latencies_ns.values()), min(latencies_ns.values())
    slack_ns = max(0.0, _SMALLEST_SPAN * top_ns - (top_ns - bottom_ns)) / 2
    span_ns = top_ns - bottom_ns + 2 * slack_ns or 1.0
    step = (WIDTH - 2 * _MARGIN) / (len(line.points) - 1)
    places = {
        index: (
            _MARGIN + index * step,
            _MARGIN + (top_ns + slack_ns - latency_ns) / span_ns * (HEIGHT - 2 * _MARGIN),
        )
        for index, latency_ns in latencies_ns.items()
    }
    paths = "".join(_path([places[index] for index in segment]) for segment in line.segments)
    last_x, last_y = places[max(places)]
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}">'
        f'<path d="{paths}" fill="none" stroke="{_COLOUR}" stroke-width="1.5" '
        'stroke-linecap="round" stroke-linejoin="round"/>'
        f'<circle cx="{last_x:.1f}" cy="{last_y:.1f}" r="2.2" fill="{_COLOUR}"/></svg>'
    )
    return f"data:image/svg+xml,{quote(svg, safe=' =:/,')}"


def describe(line: Line) -> str:
    """Say what the image shows: ``12 commits: 10.1 µs to 12.3 µs``."""
    latencies_ns = _latencies_ns(line).values()
    low, high = units.format_latency(min(latencies_ns)), units.format_latency(max(latencies_ns))
    return f"last {units.count_things(len(line.points), 'commit')}: {low} to {high}"


def _latencies_ns(line: Line) -> dict[int, float]:
    return {
        index: point.latency.typical_ns
        for index, point in enumerate(line.points)
        if point is not None and point.latency is not None
    }


def _path(places: Sequence[tuple[float, float]]) -> str:
    points = " L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    # A stretch of one point is a dot: a line without length, with round ends.
    return f"M{points}" + (" h0" if len(places) == 1 else "")
