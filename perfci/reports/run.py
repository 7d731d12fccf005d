"""A run as lines for a terminal, at most 80 wide: a table a kernel, a line a timed cell."""

from collections import Counter
from collections.abc import Sequence

from perfci import units
from perfci.history.model import Cell, RunSummary, Status, Stop, is_anchor
from perfci.load import say_load
from perfci.quarantine import has_quarantine, is_shared
from perfci.reports.anchors import anchor_table
from perfci.reports.bounds import unfrozen_note
from perfci.reports.columns import Column, lay_out
from perfci.reports.passes import far_table, write_latency
from perfci.reports.text import (
    choose_colour,
    count_statuses,
    head,
    list_failures,
    list_reasons,
    name_commit,
    note,
    paint,
    write_status,
)


def run_table(run: RunSummary, cells: Sequence[Cell]) -> list[str]:
    """Write a run: what it is, a table for each kernel, the machine's anchors, failures, counts.

    A latency is that of perfci.history.latency, beside it half its 95 % interval. A mark says that
    passes lie far from it, and a table below says where. Errors are the largest against the float64
    judge, the kernel's and the library's (yardstick);
    with several timers their ratio alone. Checks counts the variant's cases that were checked.
    What is counted at the end is the kernels', without the anchors.
    """
    anchors = [cell for cell in cells if is_anchor(cell.kernel)]
    kernels = [cell for cell in cells if not is_anchor(cell.kernel)]
    environment = run.environment
    started, took = units.format_date(run.started_at), units.format_duration(run.duration_s)
    lines = [
        head(f"run {run.run_id}", started, took),
        head(f"commit {name_commit(run.commit)}", run.commit.subject),
        head(f"testbed {environment.testbed}", environment.device.model),
        "",
    ]
    for kernel in dict.fromkeys(cell.kernel for cell in kernels):
        group = [cell for cell in kernels if cell.kernel == kernel]
        cases = list(dict.fromkeys(cell.case for cell in group if cell.contract is not None))
        only = cases[0] if len(cases) == 1 else ""
        lines += [head(kernel, only), *_kernel_table(group, name_cases=len(cases) > 1), ""]
    lines += [] if kernels else [*lay_out((), []), ""]
    lines += anchor_table(anchors)
    lines += far_table(
        (f"{cell.kernel}/{cell.variant}/{cell.case}", cell.contract.label, cell.latency)
        for cell in cells
        if cell.contract is not None
    )
    lines += list_failures(cells)
    lines += _name_skipped(kernels)
    lines += _name_marks(cells)
    lines += note(say_load({"": cells}))
    lines += unfrozen_note(kernels, stale_only=True)
    lines += _name_stops(kernels)
    return [*lines, count_statuses(Counter(cell.status for cell in kernels))]


def _name_skipped(cells: Sequence[Cell]) -> list[str]:
    """Say of each kernel how many cases were skipped for which reason, whichever variant's."""
    skipped = [each for each in _once_a_case(cells) if each.status is Status.SKIPPED]
    counts = Counter((each.kernel, each.message) for each in skipped)
    return list_reasons(
        (kernel, f"{write_status(Status.SKIPPED)} {units.format_count(count)}", reason)
        for (kernel, reason), count in counts.items()
    )


def _name_marks(cells: Sequence[Cell]) -> list[str]:
    """Say of which latencies the GPU's state has spoilt some passes, or all of them."""
    return list_reasons(
        (
            f"{cell.kernel}/{cell.variant}/{cell.case} {cell.contract.label}",
            "! marked",
            cell.message,
        )
        for cell in cells
        if cell.contract is not None and (has_quarantine(cell) or is_shared(cell))
    )


def _name_stops(cells: Sequence[Cell]) -> list[str]:
    """Say how many latencies are known as well as was wanted, and why the others are not."""
    stopped = [cell for cell in cells if cell.stop is not None and cell.latency is not None]
    if not stopped:
        return []
    passes = max(len(cell.latency.pass_means_ns) for cell in stopped if cell.latency is not None)
    counts = Counter(cell.stop for cell in stopped)
    said = [f"{units.format_count(counts[stop])} {_STOPS[stop]}" for stop in Stop if counts[stop]]
    return [head(units.count_things(passes, "pass", "passes"), *said), ""]


def _kernel_table(cells: Sequence[Cell], *, name_cases: bool) -> list[str]:
    """Write a line a variant and timed case; the case is named where there are several."""
    timers = list(dict.fromkeys(cell.contract.timer for cell in cells if cell.contract is not None))
    rows: list[tuple[str, ...]] = []
    colours: list[str] = []
    for variant in dict.fromkeys(cell.variant for cell in cells):
        own = [cell for cell in cells if cell.variant == variant]
        timed_cases = dict.fromkeys(cell.case for cell in own if cell.contract is not None)
        for case in timed_cases or {"": None}:
            shown = [cell for cell in own if cell.case == case] or own
            status = _worst(shown)
            figures = _figures(shown if timed_cases else [], timers)
            checks = _count_checks(own)
            names = (variant, case or "–") if name_cases else (variant,)
            rows.append((*names, *figures, checks, write_status(status)))
            colours.append(choose_colour(status))
    columns = _columns(timers, name_cases=name_cases)
    return paint(lay_out(columns, rows), rows, colours)


def _columns(timers: Sequence[str], *, name_cases: bool) -> list[Column]:
    figures = [Column(timer, align="right") for timer in timers]
    if len(timers) == 1:
        figures += [Column(each, align="right") for each in (_INTERVAL, "error", "yardstick")]
    elif timers:
        figures += [Column("error ÷ lib", align="right")]
    return [
        Column("variant", names=True),
        *([Column("case", shrinks=True)] if name_cases else []),
        *figures,
        Column("checks", align="right"),
        Column("status"),
    ]


def _figures(cells: Sequence[Cell], timers: Sequence[str]) -> list[str]:
    """One case's latencies by timer, then its errors."""
    by_timer = {cell.contract.timer: cell for cell in cells if cell.contract is not None}
    latencies = [by_timer[each].latency if each in by_timer else None for each in timers]
    written = [write_latency(each) for each in latencies]
    metrics = [cells[0].metric(name) if cells else None for name in _ERRORS]
    own, library = (None if each is None else each.value for each in metrics)
    if len(timers) == 1:
        half_width = None if latencies[0] is None else latencies[0].half_width
        errors = [units.format_error(own), units.format_error(library)]
        return [*written, units.format_half_width(half_width), *errors]
    if not timers:
        return []
    return [*written, units.format_ratio(own / library if own is not None and library else None)]


_STOPS = {
    Stop.CONVERGED: "converged",
    Stop.STABILISED: "stabilised above the target",
    Stop.OUT_OF_TIME: "out of time",
}
_INTERVAL = "95 %"
_ERRORS = ("max_abs_error", "yardstick_max_abs_error")


def _once_a_case(cells: Sequence[Cell]) -> list[Cell]:
    """One cell for each case and reason: a wrong result is the same for every timer."""
    seen = {
        (cell.kernel, cell.variant, cell.case, cell.status, cell.message): cell for cell in cells
    }
    return list(seen.values())


def _worst(cells: Sequence[Cell]) -> Status:
    statuses = [cell.status for cell in cells]
    failed = [status for status in statuses if status.is_failure]
    if failed:
        return failed[0]
    return Status.PASSED if Status.PASSED in statuses else Status.SKIPPED


def _count_checks(cells: Sequence[Cell]) -> str:
    """How many of a variant's cases passed, of those that were not skipped."""
    by_case: dict[str, list[Cell]] = {}
    for cell in cells:
        by_case.setdefault(cell.case, []).append(cell)
    statuses = [_worst(group) for group in by_case.values()]
    judged = [status for status in statuses if status is not Status.SKIPPED]
    return f"{sum(status is Status.PASSED for status in judged)}/{len(judged)}"
