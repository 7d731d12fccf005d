"""The legend of a kernel's figure: each variant's mark, and a link that draws it or leaves it."""

from collections.abc import Collection
from dataclasses import replace

from dash import dcc, html
from dash.development.base_component import Component

from perfci import units
from perfci.dashboard import components
from perfci.dashboard.components import Child
from perfci.dashboard.lines import Line, order_variants
from perfci.dashboard.plots import DASHES, MARKERS, colour_of, dash_of, marker_of
from perfci.dashboard.queries import KernelPage


def show(page: KernelPage, drawn: Collection[str]) -> Component:
    """Show all variants, and which of them are ``drawn``."""
    lines = page.history.lines
    variants = list(dict.fromkeys(line.variant for line in lines))
    failing = {line.variant for line in lines if _fails_now(line)}
    entries: list[Child] = []
    styles = {variant: index for index, variant in enumerate(order_variants(lines))}
    for variant in variants:
        index = styles[variant]
        is_drawn = variant in drawn
        kept = [each for each in variants if (each in drawn) != (each == variant)]
        swatch = html.Span(
            MARKERS[marker_of(index)], className="swatch", style={"color": colour_of(index)}
        )
        parts: list[Child] = [components.aria(swatch, hidden="true"), variant]
        if variant in failing:
            parts.append(html.Span("✕", className="short", title="failed at the newest commit"))
        entries.append(
            dcc.Link(
                parts,
                href=replace(page.state, variants=tuple(kept)).href,
                className="legend-entry" if is_drawn else "legend-entry left-out",
                title="leave it out" if is_drawn else "draw it too",
            )
        )
    entries += _note(page, len(variants), sum(each in drawn for each in variants))
    return components.aria(html.Nav(entries, className="legend-box"), label="Variants drawn")


def _note(page: KernelPage, total: int, drawn: int) -> list[Child]:
    notes: list[Child] = []
    testbeds = list(dict.fromkeys(line.testbed for line in page.history.lines))
    if len(testbeds) > 1:
        dashes = [f"{DASHES[dash_of(row)]} {each}" for row, each in enumerate(testbeds)]
        notes.append(html.Span(", ".join(dashes), className="legend-note"))
    if drawn < total:
        fastest = "" if page.state.variants else ", the last fastest and their peer"
        text = f"{units.format_count(drawn)} of {units.format_count(total)} drawn{fastest}"
        notes.append(html.Span(text, className="legend-note"))
    return notes


def _fails_now(line: Line) -> bool:
    newest = next((point for point in reversed(line.points) if point is not None), None)
    return newest is not None and newest.status.is_failure
