"""What the machine itself reaches, apart from every kernel: its anchors."""

from collections.abc import Sequence

from dash import dcc, html
from dash.development.base_component import Component

from perfci.dashboard import components, urls
from perfci.dashboard.components import heading
from perfci.dashboard.snapshot import Snapshot
from perfci.history.model import Cell
from perfci.reports.anchors import name_anchor, write_reached
from perfci.reports.moves import describe_moves
from perfci.reports.passes import describe_passes, write_latency

TITLE = "This machine: anchors"


def show(snapshot: Snapshot) -> Component | None:
    """Show what each anchor took and reached, and whether the machine moved; None without any."""
    anchors = snapshot.anchors
    if not anchors:
        return None
    timers = list(dict.fromkeys(_timer(cell) for cell in anchors))
    places = list(dict.fromkeys((cell.kernel, cell.case) for cell in anchors))
    head = html.Tr(
        [
            heading("Anchor", kind="first"),
            heading("Case"),
            *(heading(timer, kind="number") for timer in timers),
            heading("Reaches", kind="number"),
        ]
    )
    body = [_row(snapshot.testbed, place, timers, anchors) for place in places]
    moved = describe_moves(snapshot.moved) if snapshot.moved else ""
    return html.Section(
        [
            html.H3(TITLE),
            html.P(f"{moved[0].upper()}{moved[1:]}.", role="status") if moved else "",
            components.table([head], body, label=f"Anchors of {snapshot.testbed}", kind="matrix"),
        ]
    )


def _row(
    testbed: str, place: tuple[str, str], timers: Sequence[str], anchors: Sequence[Cell]
) -> Component:
    kernel, case = place
    own = {_timer(cell): cell for cell in anchors if (cell.kernel, cell.case) == place}
    address = urls.kernel_url(kernel, testbed=testbed, case=case)
    return html.Tr(
        [
            heading(dcc.Link(name_anchor(kernel), href=address), scope="row", kind="first"),
            html.Td(case),
            *(_reading(own.get(timer)) for timer in timers),
            html.Td(write_reached(own.get(timers[0])), className="number"),
        ]
    )


def _reading(cell: Cell | None) -> Component:
    if cell is not None and cell.status.is_failure:
        mark = components.status_mark(cell.status)
        return html.Td(mark, className="number", title=cell.message or None)
    latency = None if cell is None else cell.latency
    title = "" if latency is None else describe_passes(latency.span)
    return html.Td(write_latency(latency), className="number", title=title)


def _timer(cell: Cell) -> str:
    return "" if cell.contract is None else cell.contract.label
