"""The list of runs, newest start first."""

from collections.abc import Sequence
from dataclasses import replace

from dash import dcc, html
from dash.development.base_component import Component

from perfci import units
from perfci.dashboard import components, urls
from perfci.dashboard.components import Child, Choice, heading
from perfci.dashboard.origins import Origin
from perfci.dashboard.states import RunsState

RUNS_A_PAGE = 100


def show(
    runs: Sequence[Origin],
    testbeds: Sequence[str],
    state: RunsState,
    *,
    repository_url: str | None,
) -> Component:
    """Show one page of the runs that match; ``runs`` are all that do, newest first."""
    start = (state.page - 1) * RUNS_A_PAGE
    shown = runs[start : start + RUNS_A_PAGE]
    return components.page(
        "Runs",
        _filters(state, testbeds),
        html.P(_tally(len(runs), start, len(shown)), className="tally", role="status"),
        _table(shown, repository_url) if shown else None,
        _turn(state, has_older=start + len(shown) < len(runs)),
    )


def _filters(state: RunsState, testbeds: Sequence[str]) -> Component:
    options = [Choice(label="all", href=RunsState(sha=state.sha).href, chosen=not state.testbed)]
    options += [
        Choice(
            label=name,
            href=RunsState(testbed=name, sha=state.sha).href,
            chosen=name == state.testbed,
        )
        for name in testbeds
    ]
    form = components.search_form(
        urls.runs_url(),
        name="sha",
        value=state.sha,
        label="Commit",
        placeholder="SHA or its beginning",
        kept={"testbed": state.testbed},
    )
    choices = components.choices("Testbed", options) if len(testbeds) > 1 else None
    return html.Div([form, choices or ""], className="toolbar")


def _tally(count: int, start: int, shown: int) -> str:
    if not count:
        return "No run matches."
    if not shown:
        are = units.choose_number(count, "is", "are")
        return f"There {are} only {units.count_things(count, 'run')}."
    return (
        f"{units.format_count(start + 1)} to {units.format_count(start + shown)} "
        f"of {units.count_things(count, 'run')}"
    )


def _table(runs: Sequence[Origin], repository_url: str | None) -> Component:
    columns = ("Started", "Commit", "Branch", "Testbed", "Device", "Trigger", "Duration", "Cells")
    head = html.Tr([heading(name, kind="number" if name == "Duration" else "") for name in columns])
    body = [_row(each, repository_url) for each in runs]
    return components.table([head], body, label="Runs", kind="rows")


def _row(origin: Origin, repository_url: str | None) -> Component:
    run = origin.run
    counts = components.counts(
        (status.value.replace("_", " "), count) for status, count in run.status_counts
    )
    return html.Tr(
        [
            heading(
                dcc.Link(units.format_second(run.started_at), href=urls.run_url(run.run_id)),
                scope="row",
                kind="date",
            ),
            html.Td(
                components.commit_line(
                    run.commit, repository_url=repository_url, run_id=run.run_id
                ),
                className="commit-cell",
            ),
            html.Td(components.branch_name(run.commit) or units.ABSENT),
            html.Td(run.environment.testbed, className="wraps"),
            html.Td(run.environment.device.model, className="wraps"),
            html.Td(components.trigger_line(origin), className="wraps"),
            html.Td(units.format_duration(run.duration_s), className="number"),
            html.Td(counts or "none", className="wraps counts"),
        ]
    )


def _turn(state: RunsState, *, has_older: bool) -> Component | None:
    links: list[Child] = []
    if state.page > 1:
        links.append(dcc.Link("← newer", href=replace(state, page=state.page - 1).href))
    if has_older:
        links.append(dcc.Link("older →", href=replace(state, page=state.page + 1).href))
    return components.aria(html.Nav(links, className="turn"), label="Pages") if links else None
