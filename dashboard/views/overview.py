"""The overview: each testbed's newest commit, kernel by variant by case."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from dash import dcc, html
from dash.development.base_component import Component

from perfci import units
from perfci.dashboard import components, urls
from perfci.dashboard.components import Child, Choice, breakable, heading
from perfci.dashboard.lines import ERROR, YARDSTICK
from perfci.dashboard.snapshot import Place, Row, Snapshot, error_ratio
from perfci.dashboard.states import OverviewState
from perfci.dashboard.views import anchors, headline, reading
from perfci.history.model import GATE_TRIGGER, RunSummary, Status, Verdict
from perfci.history.order import is_whole


def show(
    snapshots: Sequence[Snapshot],
    testbeds: Sequence[str],
    state: OverviewState,
    *,
    repository_url: str | None,
) -> Component:
    """Show the snapshots that ``state`` asks for, each by one of its timers."""
    options = [
        Choice(
            label=name or "all",
            href=replace(state, testbed=name).href,
            chosen=name == state.testbed,
        )
        for name in ("", *testbeds)
    ]
    return components.page(
        "Newest figures",
        components.choices("Testbed", options) if len(testbeds) > 1 else None,
        *(_section(snapshot, state, repository_url) for snapshot in snapshots),
        _key(),
    )


def _section(snapshot: Snapshot, state: OverviewState, repository_url: str | None) -> Component:
    timers = snapshot.timers
    timer = state.timer if state.timer in timers else next(iter(timers), "")
    return html.Section(
        [
            html.H2(
                [
                    snapshot.testbed,
                    html.Span(snapshot.run.environment.device.model, className="device"),
                ]
            ),
            headline.show(snapshot),
            _strip(snapshot, repository_url),
            _timers(snapshot, state, timer) or "",
            *(_kernel(snapshot, kernel, rows, timer) for kernel, rows in snapshot.tables.items()),
            anchors.show(snapshot) or "",
        ],
        className="testbed",
    )


def _timers(snapshot: Snapshot, state: OverviewState, timer: str) -> Component | None:
    """Choose a timer; each says how many regressions it sees."""
    regressions = Counter(
        place.contract
        for place, each in snapshot.comparisons.items()
        if each.verdict is Verdict.REGRESSION
    )
    return components.choices(
        "Timer",
        [
            Choice(
                label=f"{name} ▲ {units.format_count(regressions[name])}"
                if regressions[name]
                else name,
                href=replace(state, timer=name).href,
                chosen=name == timer,
            )
            for name in snapshot.timers
        ],
    )


def _strip(snapshot: Snapshot, repository_url: str | None) -> Component:
    run = snapshot.run
    return components.facts(
        (
            (
                "Commit",
                components.commit_line(
                    run.commit, repository_url=repository_url, run_id=run.run_id
                ),
            ),
            ("Compared with", _baseline(snapshot)),
            ("Measured", _when(snapshot)),
            ("Cells", _cell_counts(snapshot)),
            ("Newer run", _newer(snapshot.newer)),
        )
    )


def _baseline(snapshot: Snapshot) -> Child | None:
    if not snapshot.previous:
        return None
    run = snapshot.previous[0]
    link = dcc.Link(html.Code(units.shorten_sha(run.commit.sha)), href=urls.run_url(run.run_id))
    skipped = _skipped_commits(snapshot.run, run)
    return html.Span([link, f" ({skipped} not measured between)"]) if skipped else link


def _skipped_commits(newest: RunSummary, previous: RunSummary) -> str:
    positions = (newest.commit.position, previous.commit.position)
    if positions[0] is None or positions[1] is None:
        return ""
    count = positions[0] - positions[1] - 1
    if count <= 0:
        return ""
    return units.count_things(count, "commit")


def _when(snapshot: Snapshot) -> str:
    when = units.format_date(snapshot.run.started_at)
    count = sum(is_whole(run) == is_whole(snapshot.run) for run in snapshot.runs)
    return when if count == 1 else f"{when}, newest of {count} runs at this commit"


def _newer(run: RunSummary | None) -> Child | None:
    if run is None:
        return None
    what = "uncommitted changes" if run.commit.dirty is not None else "another line of history"
    if run.trigger == GATE_TRIGGER:
        what = f"a gate’s {'uncommitted changes' if run.commit.dirty else 'head'}"
    link = dcc.Link(units.format_date(run.started_at), href=urls.run_url(run.run_id))
    return html.Span([link, f" ({what}, not compared)", *_failures(run)])


def _failures(run: RunSummary) -> Iterator[Child]:
    """Say what failed in a run, each kind of failure in its words and with its mark."""
    for status, count in run.status_counts:
        if status.is_failure and status is not Status.MISSING:
            yield " "
            yield components.status_mark(status, count)


def _cell_counts(snapshot: Snapshot) -> str:
    cells = [
        cell for rows in snapshot.tables.values() for row in rows for cell in row.cells.values()
    ]
    tally = Counter(Status.MISSING if cell is None else cell.status for cell in cells)
    return components.counts((status.value.replace("_", " "), tally[status]) for status in Status)


def _kernel(snapshot: Snapshot, kernel: str, rows: Sequence[Row], timer: str) -> Component:
    cases = list(
        dict.fromkeys(place.case for row in rows for place in row.cells if place.contract == timer)
    )
    head = html.Tr(
        [
            heading("Variant", kind="first"),
            *(_case_heading(snapshot.testbed, kernel, case, timer) for case in cases),
            heading("Worst error", kind="number"),
            heading("Checks", kind="number"),
        ]
    )
    body = [_row(snapshot, kernel, row, cases, timer) for row in rows]
    timed = timer if cases else ""
    link = dcc.Link(kernel, href=urls.kernel_url(kernel, testbed=snapshot.testbed, timer=timed))
    return html.Section(
        [
            html.H3([link, html.Span(timed, className="contract-name")]),
            components.table(
                [head], body, label=f"{kernel} on {snapshot.testbed}", kind="matrix readings"
            ),
        ]
    )


def _case_heading(testbed: str, kernel: str, case: str, timer: str) -> Component:
    address = urls.kernel_url(kernel, testbed=testbed, case=case, timer=timer)
    return heading(dcc.Link(case, href=address))


def _row(snapshot: Snapshot, kernel: str, row: Row, cases: Sequence[str], timer: str) -> Component:
    figures = []
    for case in cases:
        place = Place(kernel, row.variant, case, timer)
        if place in row.cells:
            figures.append(reading.show(snapshot, place, row.cells[place]))
        else:
            figures.append(html.Td("not timed", className="reading beside"))
    return html.Tr(
        [
            heading(breakable(row.variant), scope="row", kind="first"),
            *figures,
            _error(row),
            html.Td(_checks(row), className="number"),
        ]
    )


def _error(row: Row) -> Component:
    """Show the largest error in units of the yardstick's, and the case that it belongs to."""
    cell = row.worst_error
    if cell is None:
        return html.Td(units.format_error(None), className="number")
    error, yardstick = cell.metric(ERROR), cell.metric(YARDSTICK)
    error_text = units.format_error(None if error is None else error.value)
    if yardstick is None:
        shown, beside = error_text, "no yardstick"
    else:
        shown = f"{units.format_multiple(error_ratio(cell))} yardstick"
        beside = f"{error_text} / {units.format_error(yardstick.value)}"
    return html.Td(
        [shown, html.Span(cell.case, className="contract")],
        className="number",
        title=f"{cell.case} is the worst case: largest absolute error against float64 beside "
        f"the yardstick’s, {beside}",
    )


def _checks(row: Row) -> Child:
    total = row.check_count
    text = f"{units.format_count(row.passed_count)} of {units.format_count(total)}"
    if row.skipped_count:
        text += f", {units.format_count(row.skipped_count)} skipped"
    return text if row.passed_count == total else html.Strong(f"✕ {text}", className="short")


def _key() -> Component:
    return html.P(
        "Latency of the newest run that has the cell, a trimmed mean over its passes: each weighs "
        "the same, and from five on the highest and the lowest fifth are cut; the bar is relative "
        "to the slowest of the case in the same run, the line shows "
        "the last commits. Changes are of all runs at the commit against the commit measured "
        "before: ▲ and red is a "
        "regression, ▼ or = and green was measured and is no slower, ? is inconclusive and says "
        "nothing about speed. The yardstick is the library’s own result in the kernel’s precision.",
        className="key",
    )
