"""Whether a GPU can measure: its state as NVML tells it, and what its own anchors have read.

Nothing is ever set. What should be changed is said, as the command that an operator would type.
"""

import math
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from perfci import units
from perfci.anchors import CACHE_CASE, COPY
from perfci.anchors.canary import NOT_FLUSHED
from perfci.config import visible_devices
from perfci.decision.compare import assumed_floor
from perfci.errors import BuildEnvironmentError, ExitCode
from perfci.findings import Finding, absent, broken, present
from perfci.gpu.clocks import read_clock
from perfci.gpu.nvml import Gpu, NvmlError, driver_version, open_gpu, open_gpus
from perfci.gpu.processes import Household
from perfci.history.model import Device, Measurement
from perfci.history.summary import summarise
from perfci.timers import NOT_IN_L2
from perfci.toolchain import find_compiler
from perfci.tools.watcher import require_program

_COMPUTE_MODES = ("shared", "one thread at a time", "no computing", "one process at a time")
_NO_COMPUTING = 2
_TOOLS = (
    ("ncu", "ncu", "perfci profile needs it"),
    ("sanitizer", "compute-sanitizer", "perfci check --sanitize needs it"),
)


def examine_driver(visible: Sequence[Device]) -> Iterator[Finding]:
    """The driver, and the GPUs that it has beside those that are visible to CUDA."""
    try:
        yield present("driver", driver_version() or "does not tell its version")
        uuids = [str(gpu.ask("GetUUID")) for gpu in open_gpus()]
    except NvmlError as error:
        yield absent("NVML", f"{error}; the state of a GPU is not known without it")
        return
    hidden = sorted({*uuids} - {each.uuid for each in visible})
    if hidden and (value := visible_devices()) is not None:
        yield absent("not visible", f"{', '.join(hidden)} (CUDA_VISIBLE_DEVICES={value!r})")


def examine_tools(nvcc: str) -> Iterator[Finding]:
    """What compiles, profiles and checks kernels; without it the timers work all the same."""
    compiler = find_compiler(nvcc)
    if compiler is None:
        yield absent("nvcc", "not found, so that no CUDA variant can be built: install the toolkit")
    else:
        yield present("nvcc", f"{compiler.version} ({compiler.path})")
    for name, program, need in _TOOLS:
        try:
            hint = f"{need}; it comes with the CUDA toolkit"
            yield present(name, require_program(program, hint))
        except BuildEnvironmentError as error:
            yield absent(name, str(error))


def examine_gpu(device: Device) -> Iterator[Finding]:
    """The state of a GPU, or of an instance of one, as the driver tells it."""
    uuid = device.uuid or ""
    yield present("GPU", f"{device.model}, {uuid}")
    try:
        gpu = open_gpu(uuid)
    except NvmlError:
        return  # of which examine_driver has spoken
    yield from _clocks(gpu)
    yield from _power(gpu)
    yield from _errors(gpu)
    yield from _persistence(gpu)
    yield from _sharing(gpu)


def examine_readings(rows: Sequence[Measurement]) -> Iterator[Finding]:
    """What the rows of the anchors say: the stream's blocker, the flush, who was there, the noise.

    The rows are of one run of several passes.
    """
    yield _blocker(rows)
    yield _flush(rows)
    yield _company(rows)
    yield from _noise(rows)


def _clocks(gpu: Gpu) -> Iterator[Finding]:
    clock = read_clock(gpu)
    if clock.sm_mhz is None:
        yield absent("clocks", "the driver tells none, so that passes at a low clock go unseen")
    else:
        most = gpu.ask("GetMaxClockInfo", "NVML_CLOCK_SM")
        held = gpu.ask("GetApplicationsClock", "NVML_CLOCK_SM")
        parts = [f"SM at {_mhz(clock.sm_mhz)}" + (f" of {_mhz(most)}" if most else "")]
        parts += [f"memory at {_mhz(clock.memory_mhz)}"] if clock.memory_mhz else []
        parts += [f"applications held to {_mhz(held)}"] if most and held and held < most else []
        yield present("clocks", f"{', '.join(parts)}; the driver does not tell if they are locked")
    if clock.throttle_reasons:
        yield absent("throttled", f"{', '.join(clock.throttle_reasons)}: let it rest or cool it")
    if clock.temperature_c is not None:
        yield present("temperature", f"{clock.temperature_c:.0f} °C")


def _power(gpu: Gpu) -> Iterator[Finding]:
    drawn, limit, usual = (
        (gpu.ask(f"Get{name}") or 0) / 1000
        for name in ("PowerUsage", "EnforcedPowerLimit", "PowerManagementDefaultLimit")
    )
    if not drawn:
        return
    of = f" of {limit:.0f} W" if limit else ""
    if 0 < limit < usual:
        hint = f"its own limit is {usual:.0f} W: sudo nvidia-smi -pl {usual:.0f} gives it back"
        yield absent("power", f"{drawn:.0f} W{of}; {hint}")
    else:
        yield present("power", f"{drawn:.0f} W{of}")


def _errors(gpu: Gpu) -> Iterator[Finding]:
    modes = gpu.ask("GetEccMode")
    kind = ("NVML_MEMORY_ERROR_TYPE_UNCORRECTED", "NVML_VOLATILE_ECC")
    count = gpu.ask("GetTotalEccErrors", *kind)
    if count:
        errors = units.count_things(count, "error of memory", "errors of memory")
        detail = f"{errors} not corrected"
        yield broken("ECC", f"{detail}: what it computes may be wrong", ExitCode.DEVICE)
    elif modes is not None:
        yield present("ECC", "on, no errors" if modes[0] else "off")


def _persistence(gpu: Gpu) -> Iterator[Finding]:
    mode = gpu.ask("GetPersistenceMode")
    if mode == 0:
        hint = "off, so that the driver starts anew for each process; sudo nvidia-smi -pm 1"
        yield absent("persistence", hint)
    elif mode is not None:
        yield present("persistence", "on")


def _sharing(gpu: Gpu) -> Iterator[Finding]:
    modes = gpu.ask("GetMigMode")
    if modes is not None and modes[0]:
        yield absent("MIG", "on: what other instances do to the memory is not seen from here")
    mode = gpu.ask("GetComputeMode")
    if mode == _NO_COMPUTING:
        hint = "no computing: sudo nvidia-smi -c 0 allows it"
        yield broken("compute mode", hint, ExitCode.DEVICE)
    elif isinstance(mode, int) and 0 <= mode < len(_COMPUTE_MODES):
        yield present("compute mode", _COMPUTE_MODES[mode])
    if gpu.ask("GetDisplayActive"):
        yield absent("display", "attached: what it draws is in every figure; measure elsewhere")
    household = Household()
    others = [pid for pid in sorted(gpu.processes() or ()) if not household.is_ours(pid)]
    if others:
        named = ", ".join(f"{pid} ({_name_of(pid)})" for pid in others)
        yield absent("others", f"on it: {named}; what is measured beside them proves nothing")


def _blocker(rows: Sequence[Measurement]) -> Finding:
    failed = [row for row in rows if row.status.is_failure and NOT_FLUSHED not in row.message]
    if failed:
        first = failed[0]
        timer = first.contract.label if first.contract else ""
        place = f"{first.kernel}/{first.case} {timer}"
        return broken("timers", f"{place}: {first.message}", ExitCode.DEVICE)
    return present("timers", "the stream is kept busy, and the host's clock agrees with the events")


def _flush(rows: Sequence[Measurement]) -> Finding:
    fault = next((row.message for row in rows if NOT_FLUSHED in row.message), "")
    if fault:
        return broken("flush", fault, ExitCode.DEVICE)
    seen = [row for row in rows if (row.kernel, row.case) == (COPY, CACHE_CASE)]
    if not seen or any(NOT_IN_L2 in row.message for row in seen):
        return absent("flush", "not seen whether it works: no copy fits in a quarter of the L2")
    return present("flush", "drives out of the L2 what a copy has left there")


def _company(rows: Sequence[Measurement]) -> Finding:
    counts = [each.other_processes for row in rows for each in row.passes]
    known = [count for count in counts if count is not None]
    if not known:
        return absent("company", "not known: the driver lists no process of ours (a container?)")
    if most := max(known):
        return absent("company", f"{most} of others on it while the anchors were read")
    return present("company", "nobody else on it while the anchors were read")


def _noise(rows: Sequence[Measurement]) -> Iterator[Finding]:
    """How far the passes of the anchors lie apart, by timer, beside what comparisons assume."""
    spreads: dict[str, list[tuple[float, str]]] = {}
    for row in rows:
        if row.contract is None or len(row.passes) < 2:
            continue
        logarithms = [math.log(each) for each in summarise(row.passes).pass_means_ns]
        if len(logarithms) > 1:
            spread = statistics.stdev(logarithms), f"{row.kernel}/{row.case}"
            spreads.setdefault(row.contract.timer, []).append(spread)
    for timer, found in spreads.items():
        middle, (worst, place) = statistics.median(each for each, _ in found), max(found)
        assumed = assumed_floor(timer).unpaired.value
        said = (
            f"{units.format_spread(middle)} from pass to pass, at most "
            f"{units.format_spread(worst)} ({place}); {units.format_spread(assumed)} is assumed"
        )
        if middle > assumed:
            yield absent(f"noise, {timer}", f"{said}, which is too little: perfci noise studies it")
        else:
            yield present(f"noise, {timer}", f"{said}; docs/h200.md has an H200's")


def _name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return "not of this container"


def _mhz(value: Any) -> str:
    return f"{units.format_count(round(value))} MHz"
