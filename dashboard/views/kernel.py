"""A kernel's page: one case along a branch, as figure and as table."""

from collections.abc import Sequence
from dataclasses import replace

from dash import dcc, html
from dash.development.base_component import Component

from perfci import units
from perfci.dashboard import components, figures, ids, urls
from perfci.dashboard.components import Child, Choice, heading
from perfci.dashboard.lines import History, Point
from perfci.dashboard.queries import KernelPage
from perfci.dashboard.states import KernelChoice, KernelState
from perfci.history.model import RunSummary, Status

MOST_ROWS = 40


def show(page: KernelPage, *, repository_url: str | None) -> Component:
    """Show a kernel's case along the branch, and the runs that are not on it."""
    state, history = page.state, page.history
    return components.page(
        state.kernel,
        _choices(state, page.choice),
        _figure(state, history) if history.lines else _nothing(),
        _table(page, repository_url) if history.lines else None,
        _events(history),
        _off_line(page.off_line, repository_url),
        trail=[dcc.Link("Newest figures", href=urls.overview_url())],
    )


def _choices(state: KernelState, choice: KernelChoice) -> Component:
    testbeds = [(name, name) for name in choice.testbeds]
    if len(testbeds) > 1:
        testbeds.append(("all", "all"))
    groups = (
        components.choices(
            "Testbed",
            [
                Choice(
                    label=label,
                    href=replace(state, testbed=name, timer="").href,
                    chosen=state.testbed == name,
                )
                for label, name in testbeds
            ],
        ),
        components.choices(
            "Case",
            [
                Choice(label=case, href=replace(state, case=case).href, chosen=state.case == case)
                for case in choice.cases
            ],
        ),
        components.choices(
            "Timer",
            [
                Choice(
                    label=timer, href=replace(state, timer=timer).href, chosen=state.timer == timer
                )
                for timer in choice.timers
            ],
        ),
        components.choices(
            "Branch",
            [
                Choice(
                    label=branch,
                    href=replace(state, branch=branch).href,
                    chosen=state.branch == branch,
                )
                for branch in choice.branches
            ],
        ),
        components.choices(
            "Scale",
            [
                Choice(
                    label="linear, from zero",
                    href=replace(state, scale="linear").href,
                    chosen=state.scale == "linear",
                ),
                Choice(
                    label="logarithmic",
                    href=replace(state, scale="log").href,
                    chosen=state.scale == "log",
                ),
            ],
        ),
    )
    return html.Div([group for group in groups if group is not None], className="toolbar")


def _figure(state: KernelState, history: History) -> Component:
    figure = figures.history_figure(history, scale=state.scale)
    graph = dcc.Graph(
        id=ids.HISTORY_FIGURE,
        figure=figure,
        config={"displaylogo": False, "modeBarButtonsToRemove": ["lasso2d", "select2d"]},
        style={"height": f"{figure['layout']['height']}px"},
        responsive=True,
    )
    caption = (
        f"{state.case}, {state.timer}: median and quartiles at each commit; below, what failed (✕) "
        "or is missing (–), and the largest absolute error against float64. A point leads to its "
        "run. The table holds the same figures."
    )
    return html.Figure([graph, html.Figcaption(caption)])


def _nothing() -> Component:
    return html.P("No run on this branch has this case with this timer.", className="nothing")


def _table(page: KernelPage, repository_url: str | None) -> Component:
    state, history = page.state, page.history
    several = len({line.testbed for line in history.lines}) > 1
    head = html.Tr(
        [
            heading("Commit", kind="first"),
            heading("Date"),
            *(
                heading(
                    [line.variant, html.Span(line.testbed, className="contract")]
                    if several
                    else line.variant,
                    kind="number",
                )
                for line in history.lines
            ),
        ]
    )
    indices = [
        index
        for index in reversed(range(len(history.commits)))
        if any(line.points[index] is not None for line in history.lines)
    ]
    shown = indices if state.commits == "all" else indices[:MOST_ROWS]
    body = [_table_row(history, index, repository_url) for index in shown]
    return html.Section(
        [
            html.H2("Figures"),
            components.table([head], body, label=f"{state.kernel} along the branch", kind="matrix"),
            _more(page, len(shown)),
        ]
    )


def _more(page: KernelPage, row_count: int) -> Child:
    """Say what of the branch is not shown; nothing where all of it is."""
    drawn, total = len(page.history.commits), page.commit_count
    if page.state.commits == "all" or max(drawn - row_count, total - drawn) <= 0:
        return ""
    text = (
        f"Of {units.format_count(total)} commits, the newest {units.format_count(drawn)} are drawn "
        f"and the newest {units.format_count(row_count)} listed. "
    )
    return html.P([text, dcc.Link("Show all", href=replace(page.state, commits="all").href)])


def _table_row(history: History, index: int, repository_url: str | None) -> Component:
    points = [line.points[index] for line in history.lines]
    commit = history.commits[index]
    run_id = next(point.run.run_id for point in points if point is not None)
    return html.Tr(
        [
            heading(
                components.commit_line(commit, repository_url=repository_url, run_id=run_id),
                scope="row",
                kind="first commit-cell",
            ),
            html.Td(units.format_date(commit.committed_at), className="date"),
            *(_table_cell(point) for point in points),
        ]
    )


def _table_cell(point: Point | None) -> Component:
    if point is None:
        return html.Td("", className="number")
    if point.status is Status.PASSED and point.cell is not None:
        latency = point.cell.latency
        text: Child = units.format_latency(None if latency is None else latency.median_ns)
    else:
        text = components.status_mark(point.status)
    message = point.cell.message if point.cell is not None else ""
    return html.Td(
        dcc.Link(text, href=urls.run_url(point.run.run_id)),
        className="number",
        title=message or None,
    )


def _events(history: History) -> Component | None:
    if not history.events:
        return None
    return html.Section(
        [
            html.H2("Changes of the environment"),
            html.P("Dotted lines in the figure; a step there may be the machine’s."),
            html.Ul(
                [
                    html.Li(
                        [
                            html.Code(units.shorten_sha(history.commits[event.index].sha)),
                            f" {event.testbed}: {event.what}",
                        ]
                    )
                    for event in history.events
                ]
            ),
        ]
    )


def _off_line(runs: Sequence[RunSummary], repository_url: str | None) -> Component | None:
    if not runs:
        return None
    return html.Section(
        [
            html.H2("Runs that are not on this line"),
            html.P("Uncommitted changes, and commits that the branch’s first parents don’t reach."),
            html.Ul(
                [
                    html.Li(
                        [
                            components.commit_line(
                                run.commit, repository_url=repository_url, run_id=run.run_id
                            ),
                            f" {run.environment.testbed}, {units.format_date(run.started_at)}",
                        ]
                    )
                    for run in runs[:MOST_ROWS]
                ]
            ),
            html.P(dcc.Link("All runs", href=urls.runs_url())) if len(runs) > MOST_ROWS else "",
        ]
    )
