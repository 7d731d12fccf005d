"""A testbed's noise: its newest study, cell by cell."""

from collections.abc import Sequence

from dash import dcc, html
from dash.development.base_component import Component

from perfci import units
from perfci.dashboard import components, spreads, urls
from perfci.dashboard.components import Choice, breakable, heading
from perfci.dashboard.plots import MARKERS, Values, colour_of
from perfci.dashboard.queries import NoisePage
from perfci.decision.noise import LADDER, CellNoise
from perfci.reports.noise import say_shortage

THRESHOLD = 0.05
"""What counts as slower on the pages, which have no configuration of a project's."""


def show(page: NoisePage) -> Component:
    """Show a study: what it is, a figure of the spreads, and all of its figures as a table."""
    first, second = page.study
    environment = first.environment
    options = [
        Choice(label=name, href=urls.noise_url(name), chosen=name == environment.testbed)
        for name in page.testbeds
    ]
    ordered = sorted(page.noise, key=lambda each: -each.floor.unpaired.value)
    passes = max((each.passes for each in ordered), default=0)
    return components.page(
        f"Noise of {environment.testbed}",
        components.choices("Testbed", options),
        components.facts(
            (
                ("Device", environment.device.model),
                ("Studied", units.format_date(first.started_at)),
                ("Passes", units.format_count(passes)),
                (
                    "Runs",
                    html.Span(
                        [
                            dcc.Link("one side", href=urls.run_url(first.run_id)),
                            ", ",
                            dcc.Link("the other", href=urls.run_url(second.run_id)),
                        ]
                    ),
                ),
            )
        ),
        *(html.P(each, className="beside") for each in (page.load, say_shortage(ordered)) if each),
        html.P(
            "The same code was measured as two sides that take turns in the same passes. All that "
            "lies between them is noise, and the floor of decisions on this testbed.",
            className="tally",
        ),
        html.P(
            [
                _swatch(0),
                "\u00a0apart: the spread of a latency from pass to pass. ",
                _swatch(1),
                "\u00a0paired: that of the two sides’ ratio within a pass. ",
                "The table below has the same figures.",
            ],
            className="tally",
        ),
        *(_figure(kernel, figure) for kernel, figure in spreads.spread_figures(ordered).items()),
        _table(ordered),
    )


def _swatch(index: int) -> Component:
    _, symbol = spreads.SIDES[index]
    mark = html.Span(MARKERS[symbol], className="swatch", style={"color": colour_of(index)})
    return components.aria(mark, hidden="true")


def _figure(kernel: str, figure: Values) -> Component:
    graph = dcc.Graph(
        figure=figure,
        config={"displaylogo": False, "modeBarButtonsToRemove": ["lasso2d", "select2d"]},
        style={"height": f"{figure['layout']['height']}px"},
        responsive=True,
    )
    return html.Div([html.H2(breakable(kernel)), html.Figure(graph)])


def _table(noise: Sequence[CellNoise]) -> Component:
    columns = ("Latency", "Apart", "Paired", *(f"{passes} passes" for passes in LADDER))
    head = html.Tr(
        [heading("Cell", kind="first"), *(heading(each, kind="number") for each in columns)]
    )
    body = [_row(each) for each in noise]
    explained = html.P(
        "Under the numbers of passes: the least slow-down that so many paired passes would call in "
        f"95 of 100 cases, at a threshold of {units.format_change(1 + THRESHOLD)}.",
        className="tally",
    )
    table = components.table([head], body, label="Noise by cell", kind="rows")
    return html.Div([explained, table])


def _row(noise: CellNoise) -> Component:
    figures = (
        units.format_latency(noise.latency_ns),
        units.format_spread(noise.floor.unpaired.value),
        units.format_spread(noise.floor.paired.value),
        *(units.format_change(1.0 + each) for each in noise.visible),
    )
    name = [
        *breakable(noise.key.kernel),
        " · ",
        *breakable(noise.key.variant),
        " · ",
        *breakable(noise.key.case),
        html.Span(noise.key.contract, className="contract"),
    ]
    return html.Tr(
        [heading(name, scope="row"), *(html.Td(each, className="number") for each in figures)]
    )
