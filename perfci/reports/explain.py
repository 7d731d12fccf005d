"""The speed-of-light table of a kernel as lines for a terminal, at most 80 wide."""

from collections.abc import Iterable, Sequence

from perfci import units
from perfci.anchors.roofline import Floor, Peaks
from perfci.explain import CaseTable, Explained, Explanation, FailedCheck, Launched, Reading
from perfci.reports.columns import Column, lay_out, wrap
from perfci.reports.passes import far_table, write_latency
from perfci.reports.text import (
    head,
    list_reasons,
    name_commit,
    note,
    write_extents,
    write_status,
)
from perfci.timers import NOT_IN_L2

HOST = "host"
"""The timer of the caller's own time, which is shown in detail only: no device is the cause."""

_LAUNCH_COLUMNS = (
    Column("launch", align="right", shrinks=True),
    Column("registers", align="right"),
    Column("spills", align="right"),
    Column("shared", align="right"),
    Column("occupancy", align="right"),
    Column("waves", align="right"),
)
_KERNEL_COLUMNS = (
    Column("#", align="right"),
    *_LAUNCH_COLUMNS,
    Column("local", align="right"),
    Column("per SM", align="right"),
)
_READING_COLUMNS = (
    Column("timer"),
    Column("latency", align="right"),
    Column("95 %", align="right"),
    Column("of floor", align="right"),
    Column("floor", align="right"),
    Column("bound", shrinks=True),
    Column("moves", align="right"),
    Column("computes", align="right"),
)


def explanation_table(explanation: Explanation, *, detailed: bool = False) -> list[str]:
    """Write what the device reaches, then each case: its work, its floor, a line a variant.

    ``detailed`` writes each variant in full, every kernel that it launches a line.
    """
    run = explanation.run
    device = run.environment.device
    count = device.sm_count
    multiprocessors = "" if count is None else f"{units.format_count(count)} SMs"
    lines = [
        head(f"explain {explanation.kernel}", f"run {run.run_id}"),
        head(f"commit {name_commit(run.commit)}", run.commit.subject),
        head(f"testbed {run.environment.testbed}", device.model, multiprocessors),
        "",
        *_peaks_table(explanation.peaks),
        "",
        *_disturbance(explanation.disturbance),
    ]
    for table in explanation.cases:
        lines += [*_case_lines(table), *(_detail(table) if detailed else _summary(table))]
        lines += _far_passes(table, _timers(table) if detailed else _own_timers(table))
    return [*lines, *_failed_checks(explanation.failed_checks)][:-1]


def _failed_checks(failed: Sequence[FailedCheck]) -> list[str]:
    """Say of which variants the latencies are worth nothing, since they fail elsewhere."""
    if not failed:
        return []
    reasons = []
    for each in failed:
        more = len(each.cases) - 1
        name = f"{each.variant}/{each.cases[0]}"
        name += f" and {units.format_count(more)} more" if more else ""
        reasons.append((name, write_status(each.status), each.message))
    return ["failed at cases that are not timed", *list_reasons(reasons)]


def _peaks_table(peaks: Sequence[Peaks]) -> list[str]:
    """Write what the device reaches by each timer, without the columns that nothing stands in."""
    if not peaks:
        text = (
            "this run holds no anchors, by which to know what its device can do: there are no "
            "floors (perfci run measures anchors unless anchors = false)"
        )
        return wrap(text, indent=0)
    dtypes = dict.fromkeys(dtype for each in peaks for dtype, _ in each.flops_per_s)
    columns = {
        "memory": [units.format_bandwidth(each.memory_bytes_per_s) for each in peaks],
        "L2": [units.format_bandwidth(each.cache_bytes_per_s) for each in peaks],
        **{
            dtype: [units.format_rate(dict(each.flops_per_s).get(dtype)) for each in peaks]
            for dtype in dtypes
        },
        "launch": [units.format_latency(each.empty_ns) for each in peaks],
    }
    shown = {name: texts for name, texts in columns.items() if {*texts} != {units.ABSENT}}
    headings = [Column("timer"), *(Column(name, align="right") for name in shown)]
    rows = list(zip((each.timer for each in peaks), *shown.values(), strict=True))
    return ["this device reaches, measured in this run", *lay_out(headings, rows)]


def _disturbance(how: str) -> list[str]:
    """Say that what the floors come from was disturbed, and how; nothing where it was not."""
    return note(f"the floors are of anchors that were disturbed: {how}") if how else []


def _case_lines(table: CaseTable) -> list[str]:
    work = table.work
    lines = [head(table.case, work.dtype or "")]
    if table.arguments is None:
        text = "shape and dtype are not known here: no kernel at hand has this very case"
    else:
        text = " ".join(f"{name}={value}" for name, value in table.arguments)
    lines += wrap(text, indent=2)
    amounts = [
        units.format_bytes(work.bytes_moved),
        units.format_work(work.flops),
        units.format_intensity(table.intensity),
    ]
    if table.in_l2 is not None:
        amounts.append("stays in the L2" if table.in_l2 else "too large to stay in the L2")
    return [*lines, *wrap(", ".join(amounts), indent=2), *_floor_lines(table)]


def _floor_lines(table: CaseTable) -> list[str]:
    """Write the floor by each timer of the device, and what had to be left out of it."""
    floors = [each for each in table.floors if each.timer != HOST]
    if not floors:
        return []
    known = [_write_floor(each) for each in floors if each.latency_ns is not None]
    lines = wrap(f"floor: {', '.join(known) or 'not known'}", indent=2)
    for lack in dict.fromkeys(lack for each in floors for lack in each.lacks):
        of = [each.timer for each in floors if lack in each.lacks]
        which = "the floor" if len(of) == len(floors) else f"the {', '.join(of)} floor"
        lines += wrap(f"left out of {which}: {lack}", indent=2)
    return lines


def _write_floor(floor: Floor) -> str:
    return f"{floor.timer} {units.format_latency(floor.latency_ns)} ({floor.bound})"


def _summary(table: CaseTable) -> list[str]:
    timers = _own_timers(table)
    columns = [Column("variant", names=True)]
    for timer in timers:
        columns += [Column(timer, align="right"), Column("of floor", align="right")]
    columns.append(Column("error ÷ lib", align="right"))
    rows = [
        (each.variant, *_write_readings(each, timers), units.format_ratio(each.error_ratio))
        for each in table.variants
    ]
    return [*lay_out(columns, rows), "", *_launch_table(table), *_reasons(table.variants)]


def _far_passes(table: CaseTable, timers: Sequence[str]) -> list[str]:
    """Say of which readings by the timers that are shown passes lie far from the latency."""
    return far_table(
        (each.variant, reading.timer, reading.latency)
        for each in table.variants
        for reading in each.readings
        if reading.timer in timers
    )


def _write_readings(variant: Explained, timers: Sequence[str]) -> Iterable[str]:
    for timer in timers:
        reading = variant.reading(timer)
        yield write_latency(None if reading is None else reading.latency)
        yield units.format_share(None if reading is None else reading.share)


def _launch_table(table: CaseTable) -> list[str]:
    """Write a line a variant: its kernel, or of several the most that any of them needs."""
    launching = [each for each in table.variants if each.launches]
    lines: list[str] = []
    if launching:
        rows = [(each.variant, *_write_launches(each.launches)) for each in launching]
        columns = (Column("variant", names=True), *_LAUNCH_COLUMNS)
        lines += [*lay_out(columns, rows), ""]
    lacks: dict[str, list[str]] = {}
    for each in table.variants:
        if not each.launches:
            lacks.setdefault(each.launches_lack, []).append(each.variant)
    for lack, variants in lacks.items():
        names = f" of {', '.join(variants)}" if launching or len(lacks) > 1 else ""
        lines += wrap(f"launches{names}: {lack}", indent=2)
    return [*lines, ""] if lacks else lines


def _write_launches(launches: Sequence[Launched]) -> tuple[str, ...]:
    if len(launches) == 1:
        return _write_launch(launches[0])
    own = [each.launch for each in launches]
    spills = [each.spill_bytes for each in own if each.spill_bytes is not None]
    return (
        f"{units.format_count(len(own))} kernels",
        units.format_count(max(each.registers for each in own)),
        units.format_bytes(max(spills, default=None)),
        units.format_bytes(max(each.shared_bytes for each in own)),
        units.format_share(min(each.occupancy for each in own)),
        units.ABSENT,
    )


def _write_launch(launched: Launched) -> tuple[str, ...]:
    launch = launched.launch
    return (
        write_extents(launch),
        units.format_count(launch.registers),
        units.format_bytes(launch.spill_bytes),
        units.format_bytes(launch.shared_bytes),
        units.format_share(launch.occupancy),
        units.format_ratio(launched.waves),
    )


def _detail(table: CaseTable) -> list[str]:
    floors = {each.timer: each for each in table.floors}
    lines = [""]
    for variant in table.variants:
        rows = [_write_reading(each, floors.get(each.timer)) for each in variant.readings]
        lines += [variant.variant, *lay_out(_READING_COLUMNS, rows)]
        lines += wrap(_write_errors(variant), indent=2)
        lines += _kernel_table(variant)
        lines += ["", *_reasons([variant])]
    return lines


def _write_reading(reading: Reading, floor: Floor | None) -> tuple[str, ...]:
    return (
        reading.timer,
        write_latency(reading.latency),
        units.format_half_width(None if reading.latency is None else reading.latency.half_width),
        units.format_share(reading.share),
        units.format_latency(None if floor is None else floor.latency_ns),
        units.ABSENT if floor is None or floor.bound is None else floor.bound,
        units.format_bandwidth(reading.bytes_per_s),
        units.format_rate(reading.flops_per_s),
    )


def _write_errors(variant: Explained) -> str:
    own, library = (units.format_error(each) for each in (variant.error, variant.library_error))
    ratio = units.format_ratio(variant.error_ratio)
    text = f"error {own}, the library's {library}, ratio {ratio}"
    if variant.compile_s is None:
        return text
    return f"{text}; compiled in {units.format_duration(variant.compile_s)}"


def _kernel_table(variant: Explained) -> list[str]:
    if not variant.launches:
        return wrap(f"launches: {variant.launches_lack}", indent=2)
    rows = [
        (
            units.format_count(number),
            *_write_launch(each),
            units.format_bytes(each.launch.local_bytes),
            units.format_count(each.launch.blocks_per_sm),
        )
        for number, each in enumerate(variant.launches, 1)
    ]
    lines = lay_out(_KERNEL_COLUMNS, rows)
    for number, each in enumerate(variant.launches, 1):
        lines += wrap(f"{units.format_count(number)}: {each.launch.function}", indent=4)
    return lines


def _reasons(variants: Sequence[Explained]) -> list[str]:
    """Say what a timer noted, then name what failed or was skipped, each reason of a variant once.

    That the data leaves the L2 is said of the case.
    """
    notes = [
        f"{each.variant}, {reading.timer}: {reading.message}"
        for each in variants
        for reading in each.readings
        if reading.latency_ns is not None and reading.message not in ("", NOT_IN_L2)
    ]
    noted = [line for note in notes for line in wrap(note, indent=2)]
    found = {
        (each.variant, reading.status, reading.message): None
        for each in variants
        for reading in each.readings
        if reading.latency_ns is None
    }
    reasons = list_reasons(
        (variant, write_status(status), message) for variant, status, message in found
    )
    return [*noted, *([""] if noted else []), *reasons]


def _own_timers(table: CaseTable) -> list[str]:
    return [each for each in _timers(table) if each != HOST]


def _timers(table: CaseTable) -> list[str]:
    return list(dict.fromkeys(r.timer for each in table.variants for r in each.readings))
