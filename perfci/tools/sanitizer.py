"""Variants under compute-sanitizer: a process for each variant and tool, and what it found.

A process that finds nothing is the proof for all of its cases, if the tool's own last line says
so. Where it finds something, or does not come to its end, each case is called in a process of its
own: what the tool prints is not in step with what the process says, and memcheck ends the process's
use of the GPU at the first error.
"""

import asyncio
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from perfci.build import Build
from perfci.errors import DeviceError
from perfci.history.model import Device
from perfci.history.text import one_line
from perfci.kernel import Case, Kernel, Variant
from perfci.plan import Target
from perfci.progress import Observer
from perfci.selection import Cell, why_skipped
from perfci.tools.calls import (
    Called,
    Ending,
    calls_of,
    command,
    is_told,
    read_told,
    variables,
    write_calls,
)
from perfci.tools.watcher import Watched, require_program, watch

OPTIONS = {
    # Buffers may lie back to back; a margin that belongs to nobody is seen when it is touched.
    "memcheck": ("--padding", "4096", "--report-api-errors", "no"),
    "initcheck": (),
    # Barriers in dynamic shared memory are more than the compiler lets the tool know of.
    "synccheck": ("--num-cuda-barriers", "16"),
    "racecheck": ("--num-cuda-barriers", "16", "--racecheck-report", "analysis"),
}
"""Tool → the options that are its own. Launch errors are the variant's to report, and it does."""
_COMMON = ("--target-processes", "all", "--launch-timeout", "120", "--show-backtrace", "device")
_FOUND_CODE = 86
_SLOWNESS = 3
"""How many times longer than in a plain process a call may take."""
_START_S = 180.0
_MOST_AT_ONCE = 8
"""The tool has ten ports by default to reach what it watches."""
_TOOL_LINE = re.compile(r"={9}(?: (.*?))?\s*$", re.MULTILINE)
_SUMMARY = re.compile(
    r"ERROR SUMMARY: ([\d,.]+) errors?$|RACECHECK SUMMARY: ([\d,.]+) hazards? displayed \("
)
_UNUSABLE = re.compile(r".*(Device not supported|Unable to find injection library)")
_NEVER_BEGAN = re.compile(r".*before first instrumented API call")
_UNKNOWN_OPTION = re.compile(r"^unrecognised option .*$", re.MULTILINE)
_FAULT = re.compile(r"Internal Sanitizer |.*Results might be incorrect")
_BACKTRACE = ("Device Frame", "Saved host backtrace", "Host Frame")
_LONGEST_FINDING = 400


class State(StrEnum):
    """What is known of a variant at a case under a tool."""

    CLEAN = "clean"
    FOUND = "found"
    FAILED = "failed"
    UNPROVED = "unproved"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """A variant at a case under a tool. ``UNPROVED`` is a fault of the tool's.

    ``count`` is how many errors the tool counts, ``message`` the first of them or the reason.
    Without a case it is about all of them in one process.
    """

    kernel: str
    variant: str
    tool: str
    case: str
    state: State
    count: int = 0
    message: str = ""
    log: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What the tool itself printed: how many errors it counts, None where it did not say.

    ``first`` is the first of them in one line. ``fault`` is what it says where something of its
    own went wrong, ``unusable`` where it does not work at all on this machine.
    """

    count: int | None
    first: str
    fault: str
    unusable: str


def read_report(text: str) -> Report:
    """What the tool printed, from all that it and the process that it watched printed."""
    lines = [each or "" for each in _TOOL_LINE.findall(text)]
    sums = [match for each in lines if (match := _SUMMARY.match(each))]
    unusable = [each for each in lines if _UNUSABLE.match(each)]
    unusable += [] if sums else [each for each in lines if _NEVER_BEGAN.match(each)]
    unusable += _UNKNOWN_OPTION.findall(text)
    counts = [int(re.sub(r"\D", "", match[match.lastindex or 0])) for match in sums]
    count = max(counts, default=None)
    first = _first_finding(lines)
    faults = [one_line(each) for each in lines if _FAULT.match(each)]
    faults += [f"the tool counts {count} and names none"] if count and not first else []
    # One of them may be another process's, and it is not known which.
    kinds = [match.lastindex for match in sums]
    faults += ["more than one sum was printed"] if len(kinds) > len(set(kinds)) else []
    faults += ["the tool printed nothing"] if not lines else []
    return Report(
        count=count,
        first=first,
        fault=faults[0] if faults else "",
        unusable=one_line(unusable[0]).removeprefix("Error: ") if unusable else "",
    )


def require_sanitizer() -> str:
    """The path of compute-sanitizer. Raises BuildEnvironmentError where it is not installed."""
    return require_program("compute-sanitizer", "install the CUDA toolkit, which it is part of")


def inspect(
    cells: Sequence[Cell],
    builds: Sequence[Build],
    *,
    program: str,
    target: Target,
    timeout_s: float,
    logs: Path,
    observer: Observer,
) -> list[Inspection]:
    """Call each variant at its cases under each tool of ``program``, several processes at once.

    ``logs`` is a folder for what they print. Cells that a variant is declared not to take, and
    variants that could not be built, are rows too. Raises DeviceError where the program does not
    work here.
    """
    logs.mkdir(parents=True, exist_ok=True)
    inspector = _Inspector(program, target=target, limit_s=_SLOWNESS * timeout_s, logs=logs)
    by_variant = {each.variant.key: each for each in builds}
    jobs: list[_Job] = []
    rows: list[Inspection] = []
    for key, build in by_variant.items():
        own = [cell for cell in cells if cell.variant.key == key]
        takes = [each for each in own if not why_skipped(each, target.device)]
        rows += [_skipped(each, target.device) for each in own if each not in takes]
        if build.failed:
            rows.append(_row(build.variant, "build", "", State.FAILED, message=build.message))
        elif takes:
            cases = tuple(each.case for each in takes)
            jobs += [_Job(build, own[0].kernel, tool, cases) for tool in OPTIONS]
    try:
        rows += asyncio.run(_inspect_all(inspector, jobs, observer))
    except BaseExceptionGroup as group:
        raise _first(group) from None
    return rows


@dataclass(frozen=True, slots=True)
class _Job:
    build: Build
    kernel: Kernel
    tool: str
    cases: tuple[Case, ...]

    @property
    def label(self) -> str:
        return f"{self.kernel.name}/{self.build.variant.name} {self.tool}"


class _Inspector:
    """What all processes have in common; no more than a few run at once."""

    def __init__(self, program: str, *, target: Target, limit_s: float, logs: Path) -> None:
        self._program = program
        self._target = target
        self._limit_s = limit_s
        self._logs = logs
        cores = len(os.sched_getaffinity(0))
        self._places = asyncio.Semaphore(min(_MOST_AT_ONCE, max(1, cores // 2)))

    async def inspect(self, job: _Job) -> list[Inspection]:
        """All cases in one process; where that proves nothing, each in one of its own."""
        watched = await self._watch(job, job.cases, "all")
        together = _Reading(job, watched)
        if len(job.cases) == 1:
            return [together.row(job.cases[0].name)]
        if together.is_clean:
            return [together.row(each.name) for each in job.cases]
        alone = await asyncio.gather(*(self._watch(job, (each,), each.name) for each in job.cases))
        rows = [
            _Reading(job, each).row(case.name) for case, each in zip(job.cases, alone, strict=True)
        ]
        if all(each.state in (State.CLEAN, State.SKIPPED) for each in rows):
            rows.append(together.row(""))
        return rows

    async def _watch(self, job: _Job, cases: Sequence[Case], name: str) -> Watched:
        stem = f"{job.kernel.name}.{job.build.variant.name}.{job.tool}.{name}"
        plan = self._logs / f"{stem}.json"
        calls = calls_of(job.build, job.kernel, cases, target=self._target, limit_s=self._limit_s)
        write_calls(calls, plan)
        line = [
            *(self._program, "--tool", job.tool, "--error-exitcode", str(_FOUND_CODE)),
            *(*_COMMON, *OPTIONS[job.tool], *command(plan)),
        ]
        async with self._places:
            return await watch(
                line,
                log=self._logs / f"{stem}.log",
                limit_s=_START_S + len(cases) * self._limit_s,
                variables=self._variables(),
            )

    def _variables(self) -> Mapping[str, str]:
        # Each tensor is an allocation of its own, so that the tool knows where it ends.
        return {**variables(self._target), "PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}


class _Reading:
    """One process's log, read. Raises DeviceError where the tool does not work here."""

    def __init__(self, job: _Job, watched: Watched) -> None:
        self._job = job
        self._watched = watched
        self._told = read_told(watched.text)
        self._report = read_report(watched.text)
        if words := self._report.unusable:
            raise DeviceError(
                f"compute-sanitizer does not work here: {words} (all of it in {watched.log})"
            )

    @property
    def is_clean(self) -> bool:
        """Whether the process came to its end and the tool says that it found nothing."""
        return self._told.ended and not (
            self._report.count or self._report.fault or self._find_doubt()
        )

    def row(self, case: str) -> Inspection:
        """What the log says of a case; of a process with an error, of whatever it called."""
        state, message = self._judge(case)
        return _row(
            self._job.build.variant,
            self._job.tool,
            case,
            state,
            count=(self._report.count or 0) if state is State.FOUND else 0,
            message=message,
            log=self._watched.log,
        )

    def _judge(self, case: str) -> tuple[State, str]:
        report = self._report
        call = self._told.call(case) or Called(case=case, ending=None)
        if report.count and report.first:
            return State.FOUND, report.first
        if fault := report.fault or self._find_signal():
            return State.UNPROVED, fault
        if (failure := self._find_failure(call)) is not None:
            return State.FAILED, failure
        if doubt := self._find_doubt():
            return State.UNPROVED, doubt
        return (State.SKIPPED if call.ending is Ending.REFUSED else State.CLEAN), call.message

    def _find_signal(self) -> str:
        """What ended the tool before it came to its sum; it outlives what it watches."""
        code = self._watched.code
        if self._report.count is not None or code is None or code >= 0:
            return ""
        return f"the tool was ended by signal {-code}"

    def _find_failure(self, call: Called) -> str | None:
        """What the variant did, None where its call ended. All cases together have no call."""
        if call.ending is Ending.RAISED:
            return call.message
        if call.ending is None and (call.case or not self._told.ended):
            return self._describe_end()
        return None

    def _find_doubt(self) -> str:
        """Why it proves nothing that the tool names no error; empty where it does."""
        if self._report.count is None:
            return f"the tool gave no sum: {_last_words(self._watched.text)}"
        code = self._watched.code
        if code == 0:
            return ""
        how = "does not end" if code is None else f"ends with status {code}"
        return f"the tool finds nothing and {how}"

    def _describe_end(self) -> str:
        if self._told.timed_out or self._watched.code is None:
            return "does not end"
        return f"the process ended at this case: {_last_words(self._watched.text)}"


async def _inspect_all(
    inspector: _Inspector, jobs: Sequence[_Job], observer: Observer
) -> list[Inspection]:
    async def inspect_one(job: _Job) -> list[Inspection]:
        rows = await inspector.inspect(job)
        done.append(job)
        observer.step("sanitize", len(done), len(jobs), job.label)
        return rows

    done: list[_Job] = []
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(inspect_one(job)) for job in jobs]
    return [row for task in tasks for row in task.result()]


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    first = group.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


def _first_finding(lines: Sequence[str]) -> str:
    """The first block of lines that goes on below its first: what, where, by which thread."""
    block: list[str] = []
    for line in (*lines, ""):
        if line.startswith(" ") and block:
            if not line.strip().startswith(_BACKTRACE):
                block.append(line.strip())
            continue
        if len(block) > 1 and not _FAULT.match(block[0]):
            break
        block = [line.strip().rstrip(".")] if line.strip() else []
    return one_line(", ".join(block), limit=_LONGEST_FINDING) if len(block) > 1 else ""


def _last_words(text: str) -> str:
    """The last line that was printed, sums and what the process says by itself left out."""
    lines = [each.removeprefix("=========").strip() for each in text.splitlines()]
    telling = [each for each in lines if each and not _SUMMARY.match(each) and not is_told(each)]
    return one_line(telling[-1])


def _skipped(cell: Cell, device: Device) -> Inspection:
    message = why_skipped(cell, device)
    return _row(cell.variant, "", cell.case.name, State.SKIPPED, message=message)


def _row(
    variant: Variant,
    tool: str,
    case: str,
    state: State,
    *,
    count: int = 0,
    message: str = "",
    log: Path | None = None,
) -> Inspection:
    return Inspection(
        kernel=variant.kernel,
        variant=variant.name,
        tool=tool,
        case=case,
        state=state,
        count=count,
        message=message,
        log=str(log) if log else "",
    )
