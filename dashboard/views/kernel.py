"""A kernel's page: one case along a branch, as figure and as table."""

import shlex
from dataclasses import replace

from dash import dcc, html
from dash.development.base_component import Component

from perfci import units
from perfci.dashboard import components, figures, ids, urls
from perfci.dashboard.components import Child, Choice, breakable, heading
from perfci.dashboard.lines import History, choose_variants
from perfci.dashboard.queries import KernelPage
from perfci.dashboard.states import KernelChoice, KernelState, Scale
from perfci.dashboard.views import aside, legend
from perfci.history.model import is_anchor

MOST_ROWS = 40


def show(page: KernelPage, *, repository_url: str | None) -> Component:
    """Show a kernel's case along the branch, and the runs that are not on it."""
    state, history = page.state, page.history
    on_it = [_figure(page), _table(page, repository_url)] if history.lines else [_nothing(page)]
    uncommitted = [each for each in page.apart if each.run.commit.dirty is not None]
    elsewhere = [each for each in page.apart if each.run.commit.dirty is None]
    return components.page(
        state.kernel,
        _choices(state, page.choice),
        *on_it,
        _events(history),
        aside.show(
            "Uncommitted trees",
            "Measured with changes that no commit holds: never joined to the line.",
            uncommitted,
            repository_url,
        ),
        aside.show(
            "Runs beside this line",
            "Of commits that the branch’s first parents don’t reach, or that only gates and "
            "bisections have measured.",
            elsewhere,
            repository_url,
        ),
        trail=[dcc.Link("Newest figures", href=urls.overview_url())],
    )


def _choices(state: KernelState, choice: KernelChoice) -> Component:
    testbeds = [*choice.testbeds, *(["all"] if len(choice.testbeds) > 1 else [])]
    scales: list[tuple[str, Scale]] = [("linear, from zero", "linear"), ("logarithmic", "log")]
    groups = (
        ("Testbed", [(each, replace(state, testbed=each, timer="")) for each in testbeds]),
        ("Case", [(each, replace(state, case=each)) for each in choice.cases]),
        ("Timer", [(each, replace(state, timer=each)) for each in choice.timers]),
        ("Branch", [(each, replace(state, branch=each)) for each in choice.branches]),
        ("Scale", [(label, replace(state, scale=each)) for label, each in scales]),
    )
    shown = [
        components.choices(name, [_choice(state, label, target) for label, target in options])
        for name, options in groups
    ]
    return html.Div([group for group in shown if group is not None], className="toolbar")


def _choice(state: KernelState, label: str, target: KernelState) -> Choice:
    # Another testbed may know other timers, so its link leaves the timer open.
    chosen = replace(target, timer=target.timer or state.timer) == state
    return Choice(label=label, href=target.href, chosen=chosen)


def _figure(page: KernelPage) -> Component:
    state, history = page.state, page.history
    known = {line.variant for line in history.lines}
    drawn = tuple(each for each in state.variants if each in known)
    drawn = drawn or choose_variants(history.lines)
    figure = figures.history_figure(history, scale=state.scale, variants=drawn)
    graph = dcc.Graph(
        id=ids.HISTORY_FIGURE,
        figure=figure,
        config={"displaylogo": False, "modeBarButtonsToRemove": ["lasso2d", "select2d"]},
        style={"height": f"{figure['layout']['height']}px"},
        responsive=True,
    )
    caption = (
        f"{state.case}, {state.timer}: latency at each commit, its 95 % interval shaded; below, "
        "what failed (✕) or is missing (–), and the largest absolute error against float64, the "
        "yardstick’s dotted. A point leads to its run. The table holds the same figures."
    )
    return html.Figure([legend.show(page, drawn), graph, html.Figcaption(caption)])


def _nothing(page: KernelPage) -> Component:
    state = page.state
    branch = f"{state.branch}’s" if state.branch else "the branch’s"
    return html.Div(
        [
            html.P(f"Nothing is on {branch} line yet.", className="sentence"),
            html.P(
                f"No commit of it was measured clean with {state.case}, {state.timer}. Commit, "
                "then measure with"
            ),
            components.command(_run_command(state.kernel)),
        ],
        className="headline plain",
    )


def _run_command(kernel: str) -> str:
    """Write what measures a kernel; every run measures the anchors."""
    return "perfci run" if is_anchor(kernel) else f"perfci run --kernel {shlex.quote(kernel)}"


def _table(page: KernelPage, repository_url: str | None) -> Component:
    state, history = page.state, page.history
    several = len({line.testbed for line in history.lines}) > 1
    head = html.Tr(
        [
            heading("Commit", kind="first"),
            heading("Date"),
            *(
                heading(
                    [
                        *breakable(line.variant),
                        html.Span(line.testbed, className="contract") if several else "",
                    ],
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
            *(aside.show_point(point) for point in points),
        ]
    )


def _events(history: History) -> Component | None:
    changes = sorted([*history.breaks, *history.events], key=lambda event: event.index)
    if not changes:
        return None
    return html.Section(
        [
            html.H2("What else changed"),
            html.P(
                "Dotted uprights in the figure are changes of the environment: a step there may be "
                "the machine’s. At solid ones the case or its reference changed: nothing is joined "
                "or compared across them."
            ),
            html.Ul(
                [
                    html.Li(
                        [
                            html.Code(units.shorten_sha(history.commits[event.index].sha)),
                            f" {event.testbed}: {event.what}",
                        ]
                    )
                    for event in changes
                ]
            ),
        ]
    )
