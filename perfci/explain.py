"""The speed-of-light table of a kernel, from one recorded run. Pure, and without torch.

What a case must move and compute, the floor that this very device has for it, and how far each
variant is from it, with the kernels that its call launches.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perfci import units
from perfci.anchors.roofline import (
    Floor,
    Peaks,
    Work,
    find_floor,
    find_peaks,
    reached_bytes_per_s,
    reached_flops_per_s,
    stays_in_l2,
)
from perfci.history.latency import FAR, LatencySummary
from perfci.history.model import Cell, Launch, RunSummary, Status, is_anchor
from perfci.kernel import Case, Scalar
from perfci.load import sum_up_load
from perfci.quarantine import has_quarantine, is_shared

KnownCases = Mapping[tuple[str, str], Case]
"""Cases of the kernel at hand by name and workload digest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one timer says of a variant; ``share`` is the floor in units of the latency.

    ``latency_ns`` is the estimate of ``latency``, which says how well it is known.

    ``bytes_per_s`` and ``flops_per_s`` are what the variant moves and computes of what it must.
    """

    timer: str
    status: Status
    message: str
    latency_ns: float | None
    latency: LatencySummary | None
    share: float | None
    bytes_per_s: float | None
    flops_per_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Launched:
    """One kernel of a call, and how many times over its blocks fill the device."""

    launch: Launch
    waves: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """One variant at one case. Errors are the largest against float64, its own and the library's.

    ``error_ratio`` is None where either is not known or the library's is 0. ``launches_lack`` says
    why there are no launches; empty where there are.
    """

    variant: str
    readings: tuple[Reading, ...]
    error: float | None
    library_error: float | None
    error_ratio: float | None
    compile_s: float | None
    launches: tuple[Launched, ...]
    launches_lack: str

    def reading(self, timer: str) -> Reading | None:
        """What the timer of that name says."""
        return next((each for each in self.readings if each.timer == timer), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseTable:
    """One case: its work, its floor by each timer, and its variants, the fastest first.

    ``intensity`` is in operations a byte. ``arguments`` and the work's dtype are None where the
    kernel at hand is another; ``in_l2`` says whether the timer that keeps data in the L2 could,
    None where it read nothing.
    """

    case: str
    arguments: tuple[tuple[str, Scalar], ...] | None
    work: Work
    intensity: float | None
    in_l2: bool | None
    floors: tuple[Floor, ...]
    variants: tuple[Explained, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedCheck:
    """Cases that are not timed and at which a variant failed for the same reason."""

    variant: str
    cases: tuple[str, ...]
    status: Status
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A kernel in one run; ``peaks`` are what its device reached, empty without anchors.

    ``disturbance`` says how these were disturbed, and is empty where they were not.
    ``failed_checks`` are of variants whose latencies are shown although they fail elsewhere.
    """

    run: RunSummary
    kernel: str
    peaks: tuple[Peaks, ...]
    disturbance: str
    cases: tuple[CaseTable, ...]
    failed_checks: tuple[FailedCheck, ...]


def explain(run: RunSummary, kernel: str, cells: Sequence[Cell], known: KnownCases) -> Explanation:
    """Explain the timed cases of a kernel by all the cells of a run, the anchors among them."""
    peaks = find_peaks(cells)
    timed = [cell for cell in cells if cell.kernel == kernel and cell.contract is not None]
    cases = dict.fromkeys(cell.case for cell in timed)
    return Explanation(
        run=run,
        kernel=kernel,
        peaks=peaks,
        disturbance=_describe_disturbance([cell for cell in cells if is_anchor(cell.kernel)]),
        cases=tuple(
            _case_table(run, [cell for cell in timed if cell.case == case], peaks, known)
            for case in cases
        ),
        failed_checks=_failed_checks(timed, [cell for cell in cells if cell.kernel == kernel]),
    )


def _describe_disturbance(anchors: Sequence[Cell]) -> str:
    """Say of how many of the latencies that floors come from something has got in the way."""
    timed = [cell for cell in anchors if cell.latency is not None]
    count = units.count_things(len(timed), "latency", "latencies")
    quarantined, shared = (sum(map(is_so, timed)) for is_so in (has_quarantine, is_shared))
    load = sum_up_load(timed)
    widths = [cell.latency.half_width for cell in timed if cell.latency is not None]
    unsure = sum(width is not None and 1.0 + width > FAR for width in widths)
    said = [
        f"others were on the GPU in all passes of {units.format_count(shared)} of {count}"
        if shared
        else "",
        f"passes of {units.format_count(quarantined)} of {count} are in quarantine"
        if quarantined
        else "",
        f"passes disagree so far that {units.format_count(unsure)} of {count} may be "
        "half as much again"
        if unsure
        else "",
        f"others used {load}" if load else "",
    ]
    return "; ".join(each for each in said if each)


def _failed_checks(timed: Sequence[Cell], cells: Sequence[Cell]) -> tuple[FailedCheck, ...]:
    """What the timed variants failed at, less what their timed cells say by themselves."""
    said = {(cell.variant, cell.status, cell.message) for cell in timed}
    variants = {cell.variant for cell in timed}
    cases: dict[tuple[str, Status, str], list[str]] = {}
    for cell in cells:
        reason = cell.variant, cell.status, cell.message
        failed = cell.contract is None and cell.status.is_failure
        if failed and cell.variant in variants and reason not in said:
            cases.setdefault(reason, []).append(cell.case)
    return tuple(
        FailedCheck(variant=variant, cases=tuple(names), status=status, message=message)
        for (variant, status, message), names in cases.items()
    )


def _case_table(
    run: RunSummary, cells: Sequence[Cell], peaks: Sequence[Peaks], known: KnownCases
) -> CaseTable:
    case = known.get((cells[0].case, cells[0].workload_digest))
    work = Work(
        bytes_moved=_first_value(cells, "bytes_moved"),
        flops=_first_value(cells, "flops"),
        dtype=None if case is None else case.dtype,
    )
    contracts = {cell.contract.timer: cell.contract for cell in cells if cell.contract is not None}
    in_l2 = _in_l2(cells)
    floors = tuple(
        find_floor(work, each, l2=contracts[each.timer].l2, in_l2=bool(in_l2))
        for each in peaks
        if each.timer in contracts
    )
    variants = [
        _explained(run, [cell for cell in cells if cell.variant == variant], floors)
        for variant in dict.fromkeys(cell.variant for cell in cells)
    ]
    return CaseTable(
        case=cells[0].case,
        arguments=None if case is None else case.arguments,
        work=work,
        intensity=work.intensity,
        in_l2=in_l2,
        floors=floors,
        variants=tuple(sorted(variants, key=_slowness)),
    )


def _in_l2(cells: Sequence[Cell]) -> bool | None:
    kept = [
        stays_in_l2(cell)
        for cell in cells
        if cell.latency is not None and cell.contract is not None and cell.contract.l2 == "resident"
    ]
    return any(kept) if kept else None


def _explained(run: RunSummary, cells: Sequence[Cell], floors: Sequence[Floor]) -> Explained:
    by_timer = {each.timer: each for each in floors}
    launches = next((cell.launches for cell in cells if cell.launches), ())
    error = _first_value(cells, "max_abs_error")
    library_error = _first_value(cells, "yardstick_max_abs_error")
    return Explained(
        variant=cells[0].variant,
        readings=tuple(_reading(cell, by_timer) for cell in cells),
        error=error,
        library_error=library_error,
        error_ratio=error / library_error if error is not None and library_error else None,
        compile_s=_first_value(cells, "compile_s"),
        launches=tuple(
            Launched(launch=each, waves=_waves(each, run.environment.device.sm_count))
            for each in launches
        ),
        launches_lack="" if launches else _why_no_launches(run, cells),
    )


def _reading(cell: Cell, floors: Mapping[str, Floor]) -> Reading:
    timer = "" if cell.contract is None else cell.contract.timer
    latency_ns = None if cell.latency is None else cell.latency.typical_ns
    return Reading(
        timer=timer,
        status=cell.status,
        message=cell.message,
        latency_ns=latency_ns,
        latency=cell.latency,
        share=floors[timer].share(latency_ns) if timer in floors else None,
        bytes_per_s=reached_bytes_per_s(cell),
        flops_per_s=reached_flops_per_s(cell),
    )


def _why_no_launches(run: RunSummary, cells: Sequence[Cell]) -> str:
    if run.environment.device.kind == "cpu":
        return "a CPU launches none"
    for status in (Status.INVALID_TIMING, Status.SKIPPED):
        message = next((cell.message for cell in cells if cell.status is status), "")
        if message:
            return message
    return "none were recorded"


def _waves(launch: Launch, sm_count: int | None) -> float | None:
    if not sm_count or not launch.blocks_per_sm:
        return None
    return math.prod(launch.grid) / (sm_count * launch.blocks_per_sm)


def _first_value(cells: Sequence[Cell], name: str) -> float | None:
    metrics = (cell.metric(name) for cell in cells)
    return next((each.value for each in metrics if each is not None), None)


def _slowness(variant: Explained) -> float:
    """The first latency that there is; what has none comes last."""
    latencies = (each.latency_ns for each in variant.readings)
    return next((each for each in latencies if each is not None), math.inf)
