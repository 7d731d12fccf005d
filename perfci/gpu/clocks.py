"""A GPU's clocks and state, and who else is on it, read through NVML; never set.

They are read by the process that watches the passes, on a thread of its own: reading takes nothing
from the process that measures, and goes on while a kernel has it.
"""

import math
import statistics
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any, Self

from perfci.gpu.nvml import Gpu, NvmlError, open_gpu
from perfci.gpu.processes import Household, count_others
from perfci.history.model import Clock

_PERIOD_S = 0.1
_KEPT_S = 900.0
_MOST_BETWEEN = 6
_HIGHEST_MHZ = 10_000.0
"""More than any GPU's clock: a reading above it is none."""

_THROTTLE_REASONS = {
    0x0000000000000004: "software power cap",
    0x0000000000000008: "hardware slowdown",
    0x0000000000000020: "software thermal slowdown",
    0x0000000000000040: "hardware thermal slowdown",
    0x0000000000000080: "hardware power brake",
}
_WATTS_PER_MILLIWATT = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Glance:
    """One reading of a GPU: its clocks, and how many processes of others are on it.

    ``others`` is None where that cannot be known.
    """

    clock: Clock
    others: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """What was read of a GPU around a span of time.

    ``sm_mhz`` is the median within the span, or what was read nearest to it; ``others`` the most
    processes of others. Both are None where they are not known.
    """

    clocks: tuple[Clock, ...] = ()
    sm_mhz: float | None = None
    others: int | None = None


class ClockWatch:
    """The readings of a GPU while it is entered, by the time of ``time.monotonic``.

    ``glance`` reads once; where it has nothing to say at first, nothing more is asked.
    """

    def __init__(self, glance: Callable[[], Glance | None], *, period_s: float = _PERIOD_S) -> None:
        self._glance = glance
        self._period_s = period_s
        self._readings: deque[tuple[float, Glance]] = deque(maxlen=round(_KEPT_S / _PERIOD_S))
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._go_on, daemon=True)

    def __enter__(self) -> Self:
        if self._look():
            self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._left.set()
        if self._thread.is_alive():
            self._thread.join()

    def during(self, began_s: float, ended_s: float) -> Watched:
        """What was read around a span of time that has just ended."""
        if not self._readings:
            return Watched()
        self._look()
        return summarise_glances(list(self._readings), began_s, ended_s)

    def _go_on(self) -> None:
        while not self._left.wait(self._period_s):
            self._look()

    def _look(self) -> bool:
        glance = self._glance()
        if glance is not None:
            self._readings.append((monotonic(), glance))
        return glance is not None


def summarise_glances(
    readings: Sequence[tuple[float, Glance]], began_s: float, ended_s: float
) -> Watched:
    """Of readings in order of their times: what they say of a span.

    They are the last one before it, those within it and the first one after it: who came and went
    between two readings counts for all that was measured between them. Of the clocks within at most
    six are kept.
    """
    before = [glance for time_s, glance in readings if time_s < began_s][-1:]
    within = [glance for time_s, glance in readings if began_s <= time_s <= ended_s]
    after = [glance for time_s, glance in readings if time_s > ended_s][:1]
    step = max(1, -(-len(within) // _MOST_BETWEEN))
    known = [each.others for each in (*before, *within, *after) if each.others is not None]
    return Watched(
        clocks=tuple(each.clock for each in (*before, *within[::step], *after)),
        sm_mhz=next(
            (
                statistics.median(clocks_mhz)
                for part in (within, after, before)
                if (clocks_mhz := [e.clock.sm_mhz for e in part if e.clock.sm_mhz is not None])
            ),
            None,
        ),
        others=max(known, default=None),
    )


class GpuEye:
    """What reads a GPU; ``reason`` says why nothing can be read of it, or not the clock."""

    def __init__(self, uuid: str | None) -> None:
        self._gpu: Gpu | None = None
        self._household = Household()
        self.reason = ""
        if uuid is not None:
            try:
                self._gpu = open_gpu(uuid)
            except NvmlError as error:
                self.reason = str(error)
            else:
                self.reason = _what_is_kept_back(self._gpu, uuid)

    def glance(self) -> Glance | None:
        """One reading; None of a CPU, and where NVML has nothing to say."""
        if self._gpu is None:
            return None
        others = count_others(self._gpu.processes(), self._household.is_ours)
        return Glance(clock=read_clock(self._gpu), others=others)


def _what_is_kept_back(gpu: Gpu, uuid: str) -> str:
    if read_clock(gpu).sm_mhz is not None:
        return ""
    instance = " (of an instance of MIG none does)" if uuid.startswith("MIG-") else ""
    return f"the driver tells no SM clock of {uuid}{instance}"


def read_clock(gpu: Gpu) -> Clock:
    """The clocks and state of a GPU now; what the driver does not tell, or cannot be, is None."""
    told = gpu.ask("GetCurrentClocksThrottleReasons")
    reasons = told if isinstance(told, int) else 0
    power_w = _plausible(gpu.ask("GetPowerUsage"), scale=_WATTS_PER_MILLIWATT)
    return Clock(
        sm_mhz=_plausible(gpu.ask("GetClockInfo", "NVML_CLOCK_SM"), most=_HIGHEST_MHZ),
        memory_mhz=_plausible(gpu.ask("GetClockInfo", "NVML_CLOCK_MEM"), most=_HIGHEST_MHZ),
        temperature_c=_plausible(gpu.ask("GetTemperature", "NVML_TEMPERATURE_GPU")),
        power_w=power_w,
        throttle_reasons=tuple(name for bit, name in _THROTTLE_REASONS.items() if reasons & bit),
    )


def _plausible(value: Any, *, scale: float = 1.0, most: float = 1e6) -> float | None:
    """A reading as a number above 0, None where it cannot be one."""
    if not isinstance(value, int | float) or not math.isfinite(value):
        return None
    if not 0 < value * scale <= most:
        return None
    return float(value) * scale
