"""The overview: each testbed's newest commit, kernel by variant by case."""

from collections import Counter
from collections.abc import Sequence

from dash import dcc, html
from dash.development.base_component import Component

from perfci import units
from perfci.dashboard import components, urls
from perfci.dashboard.components import Child, Choice, heading
from perfci.dashboard.lines import ERROR, YARDSTICK
from perfci.dashboard.snapshot import Place, Row, Snapshot
from perfci.history.model import Cell, Comparison, RunSummary, Status, Verdict
from perfci.verdict import WORST_FIRST


def show(
    snapshots: Sequence[Snapshot],
    testbeds: Sequence[str],
    *,
    testbed: str,
    repository_url: str | None,
) -> Component:
    """Show the snapshots of the chosen testbed, or of all where ``testbed`` is empty."""
    options = [Choice(label="all", href=urls.overview_url(), chosen=not testbed)]
    options += [
        Choice(label=name, href=urls.overview_url(name), chosen=name == testbed)
        for name in testbeds
    ]
    return components.page(
        "Newest figures",
        components.choices("Testbed", options) if len(testbeds) > 1 else None,
        *(_section(snapshot, repository_url) for snapshot in snapshots),
        _key(),
    )


def _section(snapshot: Snapshot, repository_url: str | None) -> Component:
    return html.Section(
        [
            html.H2(snapshot.testbed),
            _strip(snapshot, repository_url),
            *(_kernel(snapshot, kernel, rows) for kernel, rows in snapshot.tables.items()),
        ],
        className="testbed",
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
            ("Device", run.environment.device.model),
            ("Cells", _cell_counts(snapshot)),
            ("Verdicts", _verdict_counts(snapshot)),
            ("Newer run", _newer(snapshot.newer)),
        )
    )


def _baseline(snapshot: Snapshot) -> Child:
    if not snapshot.previous:
        if snapshot.run.commit.dirty is not None:
            return "nothing: uncommitted changes are not on the branch’s line"
        return "no earlier commit"
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
    return f"{units.format_count(count)} commit{'' if count == 1 else 's'}"


def _when(snapshot: Snapshot) -> str:
    when = units.format_date(snapshot.run.started_at)
    count = len(snapshot.runs)
    return when if count == 1 else f"{when}, newest of {count} runs at this commit"


def _newer(run: RunSummary | None) -> Child | None:
    if run is None:
        return None
    what = "uncommitted changes" if run.commit.dirty is not None else "another line of history"
    link = dcc.Link(units.format_date(run.started_at), href=urls.run_url(run.run_id))
    return html.Span([link, f" ({what}, not compared)"])


def _cell_counts(snapshot: Snapshot) -> str:
    cells = [
        cell for rows in snapshot.tables.values() for row in rows for cell in row.cells.values()
    ]
    tally = Counter(Status.MISSING if cell is None else cell.status for cell in cells)
    return components.counts((status.value.replace("_", " "), tally[status]) for status in Status)


def _verdict_counts(snapshot: Snapshot) -> Child | None:
    tally = Counter(each.verdict for each in snapshot.comparisons.values())
    marks: list[Child] = []
    for verdict in WORST_FIRST:
        if tally[verdict]:
            marks += [
                components.verdict_mark(verdict, count=units.format_count(tally[verdict])),
                " ",
            ]
    return html.Span(marks, className="verdicts") if marks else None


def _kernel(snapshot: Snapshot, kernel: str, rows: Sequence[Row]) -> Component:
    columns = list(
        dict.fromkeys(
            (place.case, place.contract) for row in rows for place in row.cells if place.contract
        )
    )
    head = html.Tr(
        [
            heading("Variant", kind="first"),
            *(_column_heading(snapshot.testbed, kernel, column) for column in columns),
            heading("Error / yardstick", kind="number"),
            heading("Checks", kind="number"),
        ]
    )
    body = [_row(snapshot, kernel, row, columns) for row in rows]
    return html.Section(
        [
            html.H3(
                dcc.Link(kernel, href=urls.kernel_url(kernel, testbed=snapshot.testbed)),
            ),
            components.table([head], body, label=f"{kernel} on {snapshot.testbed}", kind="matrix"),
        ]
    )


def _column_heading(testbed: str, kernel: str, column: tuple[str, str]) -> Component:
    case, contract = column
    address = urls.kernel_url(kernel, testbed=testbed, case=case, timer=contract)
    return heading(
        [dcc.Link(case, href=address), html.Span(contract, className="contract")], kind="number"
    )


def _row(
    snapshot: Snapshot, kernel: str, row: Row, columns: Sequence[tuple[str, str]]
) -> Component:
    figures = []
    for case, contract in columns:
        place = Place(kernel, row.variant, case, contract)
        if place in row.cells:
            figures.append(_figure(row.cells[place], snapshot.comparisons.get(place)))
        else:
            figures.append(html.Td("", className="number"))
    return html.Tr(
        [
            heading(row.variant, scope="row", kind="first"),
            *figures,
            _error(row),
            html.Td(_checks(row), className="number"),
        ]
    )


def _figure(cell: Cell | None, comparison: Comparison | None) -> Component:
    if cell is None:
        reason = comparison.reason if comparison else ""
        return html.Td(
            components.status_mark(Status.MISSING),
            className="number",
            title=f"known at the commit before, not in this run. {reason}".strip(),
        )
    parts: list[Child] = []
    if cell.latency is None:
        parts.append(components.status_mark(cell.status))
    else:
        parts.append(html.Span(units.format_latency(cell.latency.median_ns), className="latency"))
    if comparison is not None and cell.latency is not None:
        parts.append(_change(comparison))
    return html.Td(parts, className="number", title=_explain(cell, comparison))


def _change(comparison: Comparison) -> Component:
    if comparison.verdict is Verdict.NEW:
        return html.Span("no earlier figure", className="verdict neutral")
    change = "" if comparison.ratio is None else units.format_change(comparison.ratio)
    return components.verdict_mark(comparison.verdict, change)


def _explain(cell: Cell, comparison: Comparison | None) -> str:
    lines = []
    if cell.latency is not None:
        lower = units.format_latency(cell.latency.lower_quartile_ns)
        upper = units.format_latency(cell.latency.upper_quartile_ns)
        lines.append(f"quartiles {lower} to {upper}")
        lines.append(
            f"{units.format_count(cell.latency.sample_count)} samples in "
            f"{units.format_count(len(cell.latency.pass_means_ns))} passes"
        )
    if cell.message:
        lines.append(cell.message)
    if comparison is not None and comparison.interval is not None:
        lines.append(f"change {units.format_interval(comparison.interval)}")
    if comparison is not None and comparison.smallest_visible_change is not None:
        visible = units.format_change(1.0 + comparison.smallest_visible_change)
        lines.append(f"smallest visible change {visible}")
    if comparison is not None and comparison.reason:
        lines.append(comparison.reason)
    return "\n".join(lines)


def _error(row: Row) -> Component:
    cell = row.worst_error
    if cell is None:
        return html.Td(units.format_error(None), className="number")
    error, yardstick = cell.metric(ERROR), cell.metric(YARDSTICK)
    return html.Td(
        [
            html.Span(units.format_error(None if error is None else error.value)),
            html.Span(
                f" / {units.format_error(None if yardstick is None else yardstick.value)}",
                className="beside",
            ),
        ],
        className="number",
        title=f"largest absolute error against float64, beside the yardstick’s, in {cell.case}",
    )


def _checks(row: Row) -> Child:
    total = len(row.cells) - row.skipped_count
    text = f"{units.format_count(row.passed_count)} of {units.format_count(total)}"
    if row.skipped_count:
        text += f", {units.format_count(row.skipped_count)} skipped"
    return text if row.passed_count == total else html.Strong(f"✕ {text}", className="short")


def _key() -> Component:
    return html.P(
        "Median latency, and its change against the commit measured before. Red: a regression. "
        "Green: measured, and no slower. Everything else says nothing about speed.",
        className="key",
    )
