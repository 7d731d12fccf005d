"""Variants under Nsight Compute: one report a variant and case, and what it says of each kernel."""

import asyncio
import csv
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfci.build import Build
from perfci.config import Config, beside_store
from perfci.errors import DeviceError
from perfci.history.text import one_line
from perfci.kernel import Case, Kernel
from perfci.plan import Target
from perfci.progress import Observer
from perfci.selection import Cell
from perfci.tools.calls import Called, Ending, calls_of, command, read_told, variables, write_calls
from perfci.tools.watcher import Watched, require_program, watch

SUFFIX = ".ncu-rep"
_OPTIONS = (
    *("--clock-control", "none"),  # the clocks are the operator's
    *("--profile-from-start", "off"),
    *("--target-processes", "all"),
    *("--set", "full"),
    "--force-overwrite",
)
_READ_OPTIONS = (
    *("--page", "raw"),
    "--csv",
    *("--print-units", "base"),
    *("--print-kernel-base", "function"),
)
_START_S = 180.0
_READ_LIMIT_S = 120.0
_ERROR = re.compile(r"^==ERROR== (.*)$", re.MULTILINE)
_APPLICATION_ERROR = "The application returned an error code"
_NO_PERMISSION = "ERR_NVGPUCTRPERM"
_STALL = re.compile(r"smsp__average_warps_issue_stalled_(\w+)_per_issue_active\.ratio")
_NO_STALL = "selected"
_KERNEL = "Kernel Name"
_DURATIONS_NS = {"ns": 1.0, "nsecond": 1.0, "us": 1e3, "usecond": 1e3, "ms": 1e6, "msecond": 1e6}
_DURATION = "gpu__time_duration.sum"
_DRAM = (
    "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
)
_L2 = ("lts__throughput.avg.pct_of_peak_sustained_elapsed",)
_SM = ("sm__throughput.avg.pct_of_peak_sustained_elapsed",)
_OCCUPANCY = ("sm__warps_active.avg.pct_of_peak_sustained_active",)
_REGISTERS = ("launch__registers_per_thread",)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfiledLaunch:
    """What Nsight Compute says of one kernel that a call launched; None where it does not say.

    Throughputs are shares of the peak, occupancy is that achieved. ``stall`` is what a warp waits
    for the longest between two instructions, ``stall_share`` its share of that time. Shares lie
    between 0 and 1.
    """

    function: str
    duration_ns: float | None = None
    dram_share: float | None = None
    l2_share: float | None = None
    sm_share: float | None = None
    occupancy_share: float | None = None
    registers: int | None = None
    stall: str | None = None
    stall_share: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A variant's profile at a case: its report and the launches in it, or why there is none."""

    kernel: str
    variant: str
    case: str
    report: str | None = None
    launches: tuple[ProfiledLaunch, ...] = ()
    message: str = ""


def require_profiler() -> str:
    """The path of ncu. Raises BuildEnvironmentError where it is not installed."""
    return require_program("ncu", "install Nsight Compute, which comes with the CUDA toolkit")


def profiles_folder(config: Config, run_id: str) -> Path:
    """Where a run's profiles are kept: beside the store's file, in the project without one."""
    return beside_store(config) / "profiles" / run_id


def find_reports(folder: Path) -> list[Path]:
    """The reports in a folder of profiles, by name; none where there is no such folder."""
    return sorted(folder.glob(f"*{SUFFIX}"))


def profile(
    cells: Sequence[Cell],
    builds: Sequence[Build],
    *,
    program: str,
    target: Target,
    timeout_s: float,
    folder: Path,
    observer: Observer,
) -> list[Profile]:
    """Profile cells with ``program``, one after the other, and keep the reports in a folder.

    Raises DeviceError where the program may not read the device's counters, or does not work.
    """
    folder.mkdir(parents=True, exist_ok=True)
    profiler = _Profiler(program, target=target, timeout_s=timeout_s, folder=folder)
    by_variant = {each.variant.key: each for each in builds}
    found = []
    for done, cell in enumerate(cells, 1):
        build = by_variant[cell.variant.key]
        found.append(asyncio.run(profiler.profile(build, cell.kernel, cell.case)))
        label = f"{cell.kernel.name}/{cell.variant.name}/{cell.case.name}"
        observer.step("profile", done, len(cells), label)
    return found


def read_launches(text: str) -> list[ProfiledLaunch]:
    """The launches of a report, from what ncu prints of its raw page as CSV in base units.

    A row of names, a row of units, a row for each launch; other lines may come before and after.
    """
    lines = text.splitlines()
    first = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), len(lines))
    rows = list(csv.DictReader(lines[first:]))
    return [_launch(row, units=rows[0]) for row in rows[1:] if row.get(_KERNEL)]


class _Profiler:
    def __init__(self, program: str, *, target: Target, timeout_s: float, folder: Path) -> None:
        self._program = program
        self._target = target
        self._timeout_s = timeout_s
        self._folder = folder

    async def profile(self, build: Build, kernel: Kernel, case: Case) -> Profile:
        name = f"{kernel.name}.{build.variant.name}.{case.name}"
        report = self._folder / f"{name}{SUFFIX}"
        report.unlink(missing_ok=True)
        kept: list[ProfiledLaunch] = []
        message = build.message
        if not build.failed:
            watched = await self._collect(build, kernel, case, report)
            message = _reason(watched, case.name, report)
            kept = [] if message else await self._read(report)
        return Profile(
            kernel=kernel.name,
            variant=build.variant.name,
            case=case.name,
            report=None if message else str(report),
            launches=tuple(kept),
            message=message,
        )

    async def _collect(self, build: Build, kernel: Kernel, case: Case, report: Path) -> Watched:
        plan = report.with_suffix(".json")
        calls = calls_of(
            build,
            kernel,
            [case],
            target=self._target,
            limit_s=self._timeout_s,
            profiled=True,
        )
        write_calls(calls, plan)
        # A percent sign would begin one of ncu's own abbreviations.
        export = str(report).replace("%", "%%")
        return await watch(
            [self._program, *_OPTIONS, "--export", export, *command(plan)],
            log=report.with_suffix(".log"),
            limit_s=_START_S + self._timeout_s,
            variables=variables(self._target),
        )

    async def _read(self, report: Path) -> list[ProfiledLaunch]:
        watched = await watch(
            [self._program, "--import", str(report), *_READ_OPTIONS],
            log=report.with_suffix(".txt"),
            limit_s=_READ_LIMIT_S,
            variables=variables(self._target),
        )
        launches = read_launches(watched.text)
        if not launches:
            raise DeviceError(f"ncu does not say what is in {report}; see {watched.log}")
        return launches


def _reason(watched: Watched, case: str, report: Path) -> str:
    """Why there is no report although ncu works; empty where there is one. Raises DeviceError."""
    if _NO_PERMISSION in watched.text:
        raise DeviceError(
            f"ncu may not read the GPU's performance counters ({_NO_PERMISSION}): be root, or "
            "load the driver with NVreg_RestrictProfilingToAdminUsers=0"
        )
    told = read_told(watched.text)
    call = told.call(case) or Called(case=case, ending=None)
    errors = [
        one_line(each)
        for each in _ERROR.findall(watched.text)
        if not each.startswith(_APPLICATION_ERROR)
    ]
    if call.ending in (Ending.RAISED, Ending.REFUSED) and not errors:
        return call.message
    if told.timed_out or watched.code is None:
        return "does not end"
    if errors:
        telling = [each for each in errors if not each.endswith(":")]
        raise DeviceError(f"ncu does not work here: {(telling or errors)[0]} (see {watched.log})")
    if call.ending is not Ending.CALLED:
        return f"the process ended in its call; see {watched.log}"
    return "" if report.is_file() else "launches no kernel"


def _launch(row: Mapping[str, str], *, units: Mapping[str, str]) -> ProfiledLaunch:
    duration = _number(row, (_DURATION,))
    factor = _DURATIONS_NS.get(units.get(_DURATION, ""))
    registers = _number(row, _REGISTERS)
    stall, share = _largest_stall(row)
    return ProfiledLaunch(
        function=one_line(row[_KERNEL]),
        duration_ns=None if duration is None or factor is None else duration * factor,
        dram_share=_share(row, _DRAM),
        l2_share=_share(row, _L2),
        sm_share=_share(row, _SM),
        occupancy_share=_share(row, _OCCUPANCY),
        registers=None if registers is None else int(registers),
        stall=stall,
        stall_share=share,
    )


def _largest_stall(row: Mapping[str, str]) -> tuple[str | None, float | None]:
    """The longest wait of a warp, by name, and its share of the time between two instructions."""
    waits = {
        match[1]: value
        for name in row
        if name and (match := _STALL.fullmatch(name))
        if (value := _number(row, (name,))) is not None
    }
    total = sum(waits.values())
    stalls = {name: value for name, value in waits.items() if name != _NO_STALL}
    if not stalls or total <= 0:
        return None, None
    largest = max(stalls, key=lambda name: stalls[name])
    return largest.replace("_", " "), stalls[largest] / total


def _share(row: Mapping[str, str], names: Iterable[str]) -> float | None:
    """The first of some metrics that is there, which count in percent."""
    percent = _number(row, names)
    return None if percent is None else percent / 100.0


def _number(row: Mapping[str, str], names: Iterable[str]) -> float | None:
    """The first of some metrics that is there as a number; thousands are parted by commas.

    ``nan`` and ``inf`` are what ncu prints of a ratio to nothing.
    """
    for name in names:
        try:
            number = float((row.get(name) or "").replace(",", ""))
        except ValueError:
            continue
        if math.isfinite(number):
            return number
    return None
