"""A run's page: where and how it was measured, every row, and the samples of one row."""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dash import dcc, html
from dash.development.base_component import Component

from perfci import units
from perfci.dashboard import components, ids, samples, urls
from perfci.dashboard.components import Choice, breakable, heading
from perfci.dashboard.lines import ERROR, YARDSTICK
from perfci.dashboard.origins import Origin
from perfci.dashboard.states import RunState
from perfci.dashboard.views.anchors import TITLE
from perfci.history.latency import interquartile_mean
from perfci.history.model import (
    Cell,
    Clock,
    Commit,
    Measurement,
    Metric,
    Pass,
    Run,
    Status,
    is_anchor,
)
from perfci.history.summary import cell as summarise_cell
from perfci.load import OTHERS_SHARE, say_load
from perfci.reports.passes import describe_interval, describe_passes, write_latency

SORTS = ("row", "kernel", "variant", "case", "timer", "status", "latency", "error")
_HEADINGS = {"row": "#", "error": "error / yardstick"}
_NUMBERS = frozenset({"row", "latency", "error"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One row of the table: its number in the run, what was recorded, and its summary."""

    number: int
    measurement: Measurement
    cell: Cell


def show(run: Run, origin: Origin, state: RunState, *, repository_url: str | None) -> Component:
    """Show a run, its rows as ``state`` filters and sorts them, and the chosen row's samples."""
    entries = [
        Entry(number=index, measurement=each, cell=summarise_cell(run.run_id, each))
        for index, each in enumerate(run.measurements, start=1)
    ]
    shown = arrange([each for each in entries if not is_anchor(each.cell.kernel)], state)
    anchors = arrange([each for each in entries if is_anchor(each.cell.kernel)], state)
    kernel_count = sum(not is_anchor(each.cell.kernel) for each in entries)
    load = say_load({"": [each.cell for each in entries]})
    return components.page(
        f"Run at {units.shorten_sha(run.commit.sha)}",
        _facts(run, origin, repository_url),
        html.P(load, className="beside") if load else "",
        _chosen(run.commit, entries, state),
        html.H2("Rows"),
        _filters(state, entries),
        html.P(
            f"{units.format_count(len(shown))} of {units.count_things(kernel_count, 'row')}",
            className="tally",
            role="status",
        ),
        _table(state, shown, run.environment.testbed),
        *_anchors(state, anchors, run.environment.testbed),
        trail=[dcc.Link("Runs", href=urls.runs_url())],
    )


def arrange(entries: Sequence[Entry], state: RunState) -> list[Entry]:
    """Filter and sort rows; what has no figure to sort by comes last either way."""
    needle = state.text.casefold()
    kept = [
        entry
        for entry in entries
        if (not state.status or entry.cell.status.value == state.status)
        and needle in _searchable(entry).casefold()
    ]
    read = _KEYS.get(state.sort, _KEYS["row"])
    known = [entry for entry in kept if read(entry) is not None]
    unknown = [entry for entry in kept if read(entry) is None]
    known.sort(key=lambda entry: (_order(read(entry)), entry.number), reverse=state.descending)
    return known + unknown


def reproduction(commit: Commit, measurement: Measurement) -> str:
    """Write the command line that measures one row again, quoted for a shell."""
    run = f"git switch --detach {shlex.quote(commit.sha)} && perfci run"
    if is_anchor(measurement.kernel):
        return run  # as every run does
    return (
        f"{run} --kernel {shlex.quote(measurement.kernel)}"
        f" --variant {shlex.quote(measurement.variant)}"
        f" --case {shlex.quote(measurement.case)}"
    )


def _searchable(entry: Entry) -> str:
    cell = entry.cell
    return f"{cell.kernel}\n{cell.variant}\n{cell.case}\n{cell.message}"


def _timer(cell: Cell) -> str:
    return "check only" if cell.contract is None else cell.contract.label


def _metric(cell: Cell, name: str) -> float | None:
    metric = cell.metric(name)
    return None if metric is None else metric.value


def _errors(cell: Cell) -> str:
    error = _metric(cell, ERROR)
    if error is None:
        return units.ABSENT
    return f"{units.format_error(error)} / {units.format_error(_metric(cell, YARDSTICK))}"


def _order(key: float | str | None) -> tuple[float, str]:
    return (0.0, key) if isinstance(key, str) else (key or 0.0, "")


_KEYS: dict[str, Callable[[Entry], float | str | None]] = {
    "row": lambda entry: entry.number,
    "kernel": lambda entry: entry.cell.kernel,
    "variant": lambda entry: entry.cell.variant,
    "case": lambda entry: entry.cell.case,
    "timer": lambda entry: _timer(entry.cell),
    "status": lambda entry: entry.cell.status.value,
    "latency": lambda entry: None if entry.cell.latency is None else entry.cell.latency.typical_ns,
    "error": lambda entry: _metric(entry.cell, ERROR),
}


def _facts(run: Run, origin: Origin, repository_url: str | None) -> Component:
    environment, device = run.environment, run.environment.device
    return components.facts(
        (
            ("Commit", components.commit_line(run.commit, repository_url=repository_url)),
            ("Branch", components.branch_name(run.commit)),
            ("Committed", units.format_date(run.commit.committed_at)),
            ("Started", units.format_date(run.started_at)),
            ("Duration", units.format_duration(run.duration_s)),
            ("Trigger", components.trigger_line(origin)),
            (
                "Testbed",
                dcc.Link(environment.testbed, href=urls.overview_url(environment.testbed)),
            ),
            ("Device", device.model),
            ("UUID", device.uuid),
            ("Compute capability", device.compute_capability),
            ("SMs", None if device.sm_count is None else units.format_count(device.sm_count)),
            ("Cores", None if device.core_count is None else units.format_count(device.core_count)),
            (
                "Memory",
                None if device.memory_bytes is None else units.format_bytes(device.memory_bytes),
            ),
            ("Driver", device.driver),
            ("torch", environment.torch),
            ("CUDA", environment.cuda),
            ("nvcc", environment.nvcc),
            ("Compiler", environment.compiler),
            ("Python", environment.python),
            ("System", environment.os),
            ("Host", environment.host),
            ("perfci", run.perfci_version),
            ("Run", html.Code(run.run_id)),
        )
    )


def _filters(state: RunState, entries: Sequence[Entry]) -> Component:
    present = {entry.cell.status for entry in entries}
    options = [Choice(label="all", href=replace(state, status="").href, chosen=not state.status)]
    options += [
        Choice(
            label=status.value.replace("_", " "),
            href=replace(state, status=status.value).href,
            chosen=state.status == status.value,
        )
        for status in Status
        if status in present
    ]
    form = components.search_form(
        urls.run_url(state.run_id),
        name="text",
        value=state.text,
        label="Rows with",
        placeholder="kernel, variant, case, message",
        kept={"status": state.status, "sort": state.sort},
    )
    return html.Div([form, components.choices("Status", options) or ""], className="toolbar")


def _anchors(state: RunState, entries: Sequence[Entry], testbed: str) -> list[Component]:
    if not entries:
        return []
    return [html.H2(TITLE), _table(state, entries, testbed, label="Anchors of the run")]


def _table(
    state: RunState, entries: Sequence[Entry], testbed: str, *, label: str = "Rows of the run"
) -> Component:
    head = html.Tr(
        [
            *(_sort_heading(state, name) for name in SORTS[:-1]),
            heading("95 % interval", kind="number"),
            heading("passes", kind="number"),
            heading("samples", kind="number"),
            _sort_heading(state, "error"),
            heading("message"),
        ]
    )
    body = [_row(state, entry, testbed) for entry in entries]
    return components.table([head], body, label=label, kind="rows")


def _sort_heading(state: RunState, name: str) -> Component:
    is_sorted = state.sort == name
    arrow = (" ↓" if state.descending else " ↑") if is_sorted else ""
    target = replace(state, sort=name, descending=is_sorted and not state.descending)
    link = dcc.Link(f"{_HEADINGS.get(name, name)}{arrow}", href=target.href)
    kind = "number" if name in _NUMBERS else ""
    cell = heading(link, kind="name" if name == "variant" else kind)
    if is_sorted:
        return components.aria(cell, sort="descending" if state.descending else "ascending")
    return cell


def _row(state: RunState, entry: Entry, testbed: str) -> Component:
    cell, latency = entry.cell, entry.cell.latency
    number = units.format_count(entry.number)
    interval = sample_count = pass_count = units.ABSENT
    if latency is not None:
        interval = describe_interval(latency)
        sample_count = units.format_count(latency.sample_count)
        pass_count = units.format_count(len(entry.measurement.passes))
    href = replace(state, row=entry.number).href
    return html.Tr(
        [
            html.Td(
                dcc.Link(number, href=href, title="samples and reproduction"),
                className="number",
            ),
            html.Td(
                dcc.Link(breakable(cell.kernel), href=_history_url(cell, testbed)),
                className="name",
            ),
            heading(dcc.Link(breakable(cell.variant), href=href), scope="row", kind="name"),
            html.Td(breakable(cell.case), className="name"),
            html.Td(_timer(cell)),
            html.Td(components.status_mark(cell.status)),
            html.Td(
                write_latency(latency),
                className="number",
                title="" if latency is None else describe_passes(latency.span),
            ),
            html.Td(interval, className="number"),
            html.Td(pass_count, className="number"),
            html.Td(sample_count, className="number"),
            html.Td(_errors(cell), className="number"),
            html.Td(cell.message, className="message"),
        ],
        className="chosen" if state.row == entry.number else "",
    )


def _history_url(cell: Cell, testbed: str) -> str:
    if cell.contract is None:
        return urls.kernel_url(cell.kernel, testbed=testbed)
    return urls.kernel_url(cell.kernel, testbed=testbed, case=cell.case, timer=cell.contract.label)


def _chosen(commit: Commit, entries: Sequence[Entry], state: RunState) -> Component | None:
    if state.row is None:
        return None
    close = dcc.Link("Close", href=replace(state, row=None).href, className="close")
    if not 1 <= state.row <= len(entries):
        text = f"This run has no row {state.row}; it has {units.format_count(len(entries))}."
        return html.Section([html.P([text, " ", close], role="status")], className="row-panel")
    entry = entries[state.row - 1]
    cell = entry.cell
    title = f"Row {units.format_count(entry.number)}: {cell.kernel} / {cell.variant} / {cell.case}"
    return html.Section(
        [
            html.Div([html.H2(title), close], className="row-title"),
            html.P([components.status_mark(cell.status), f" {_timer(cell)}"]),
            html.Pre(cell.message, className="message") if cell.message else "",
            *_samples(entry),
            html.H3("Measure it again"),
            components.command(reproduction(commit, entry.measurement)),
            html.P("The run was made from uncommitted changes, which this doesn’t bring back.")
            if commit.dirty is not None
            else "",
            *_metrics(entry.measurement),
        ],
        className="row-panel",
    )


def _samples(entry: Entry) -> list[Component]:
    latency = entry.cell.latency
    if latency is None:
        return []
    passes = entry.measurement.passes
    figure = samples.samples_figure(passes)
    head = html.Tr(
        [
            heading("pass", kind="number"),
            heading("interquartile mean", kind="number"),
            heading("samples", kind="number"),
            heading("loops", kind="number"),
            heading("stopped"),
            heading("clocks, before and after"),
            heading("others on the GPU"),
        ]
    )
    body = [
        html.Tr(
            [
                heading(units.format_count(each.index + 1), scope="row", kind="number"),
                html.Td(_mean(each), className="number"),
                html.Td(units.format_count(len(each.samples_ns)), className="number"),
                html.Td(units.format_count(each.loops), className="number"),
                html.Td(each.stop.value.replace("_", " ")),
                html.Td(_clocks(each.clocks)),
                html.Td(_others(each)),
            ]
        )
        for each in passes
    ]
    return [
        dcc.Graph(
            id=ids.SAMPLES_FIGURE,
            figure=figure,
            config={"displaylogo": False},
            style={"height": f"{figure['layout']['height']}px"},
            responsive=True,
        ),
        components.table([head], body, label="Passes"),
    ]


def _mean(each: Pass) -> str:
    if each.quarantine:
        return f"in quarantine: {each.quarantine}"
    return units.format_latency(interquartile_mean(each.samples_ns))


def _others(each: Pass) -> str:
    if each.other_processes is not None:
        return units.format_count(each.other_processes)
    return "not known" if each.clocks else units.ABSENT


def _clocks(clocks: Sequence[Clock]) -> str:
    """Write what was read before and after: ``SM 1,980 → 1,965 MHz, 41 → 52 °C``."""
    parts = []
    for name, unit, readings in (
        ("SM ", "MHz", [clock.sm_mhz for clock in clocks]),
        ("memory ", "MHz", [clock.memory_mhz for clock in clocks]),
        ("", "°C", [clock.temperature_c for clock in clocks]),
        ("", "W", [clock.power_w for clock in clocks]),
    ):
        known = [units.format_count(round(each)) for each in readings if each is not None]
        if known:
            parts.append(f"{name}{' → '.join(dict.fromkeys(known))} {unit}")
    reasons = dict.fromkeys(reason for clock in clocks for reason in clock.throttle_reasons)
    if reasons:
        parts.append(f"throttled: {', '.join(reasons)}")
    return ", ".join(parts) or units.ABSENT


_FORMATS = {"B": units.format_bytes, "ns": units.format_latency, "s": units.format_duration}


def _metric_text(metric: Metric) -> str:
    if metric.unit in _FORMATS:
        return _FORMATS[metric.unit](metric.value)
    if metric.name == OTHERS_SHARE:
        return units.format_share(metric.value)
    if metric.name.endswith("_error"):
        return units.format_error(metric.value)
    if metric.value.is_integer():
        return f"{units.format_count(int(metric.value))} {metric.unit}".rstrip()
    return f"{metric.value} {metric.unit}".rstrip()


def _metrics(measurement: Measurement) -> list[Component]:
    known = [
        *((each.name, _metric_text(each)) for each in measurement.metrics),
        *measurement.identity,
        ("workload digest", measurement.workload_digest),
        ("source digest", measurement.source_digest),
    ]
    if not any(value for _, value in known):
        return []
    return [html.H3("Recorded beside"), components.facts(known)]
