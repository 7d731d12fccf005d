"""Figures of a kernel that are not on the line: uncommitted trees, other branches' commits."""

from collections.abc import Sequence

from dash import dcc, html
from dash.development.base_component import Component

from perfci import units
from perfci.dashboard import components, urls
from perfci.dashboard.components import Child, breakable, heading
from perfci.dashboard.lines import Aside, Point
from perfci.history.model import Status
from perfci.reports.passes import describe_passes, write_latency


def show(
    title: str, text: str, runs: Sequence[Aside], repository_url: str | None
) -> Component | None:
    """Show runs with a column for each variant; None where there are no runs."""
    if not runs:
        return None
    variants = list(dict.fromkeys(variant for each in runs for variant in each.points))
    head = html.Tr(
        [
            heading("Commit", kind="first"),
            heading("Measured"),
            heading("Testbed"),
            *(heading(breakable(variant), kind="number") for variant in variants),
        ]
    )
    body = [_row(each, variants, repository_url) for each in runs]
    return html.Section(
        [
            html.H2(title),
            html.P([text, " ", dcc.Link("All runs", href=urls.runs_url())]),
            components.table([head], body, label=title, kind="matrix"),
        ]
    )


def show_point(point: Point | None) -> Component:
    """Show the latency or what else became of a cell, linked to its run."""
    if point is None:
        return html.Td("", className="number")
    latency = point.latency
    if point.status is Status.PASSED:
        text: Child = write_latency(latency)
    else:
        text = components.status_mark(point.status)
    message = point.cell.message if point.cell is not None else ""
    told = ("" if latency is None else describe_passes(latency.span), message)
    return html.Td(
        dcc.Link(text, href=urls.run_url(point.run.run_id)),
        className="number",
        title="\n".join(each for each in told if each) or None,
    )


def _row(aside: Aside, variants: Sequence[str], repository_url: str | None) -> Component:
    run = aside.run
    commit = components.commit_line(run.commit, repository_url=repository_url, run_id=run.run_id)
    return html.Tr(
        [
            heading(commit, scope="row", kind="first commit-cell"),
            html.Td(units.format_date(run.started_at), className="date"),
            html.Td(run.environment.testbed),
            *(show_point(aside.points.get(variant)) for variant in variants),
        ]
    )
