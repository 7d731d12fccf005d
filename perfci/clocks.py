"""A GPU's clocks and state, read through NVML; never set.

They are read by the process that watches the passes, on a thread of its own: reading takes nothing
from the process that measures, and goes on while a kernel has it.
"""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any, Self

from perfci.history.model import Clock

_PERIOD_S = 0.1
_KEPT_S = 900.0
_MOST_BETWEEN = 6

_THROTTLE_REASONS = {
    0x0000000000000004: "software power cap",
    0x0000000000000008: "hardware slowdown",
    0x0000000000000020: "software thermal slowdown",
    0x0000000000000040: "hardware thermal slowdown",
    0x0000000000000080: "hardware power brake",
}
_WATTS_PER_MILLIWATT = 1e-3

_handles: dict[str, Any] = {}


class ClockWatch:
    """The readings of a GPU's clocks while it is entered, by the time of ``time.monotonic``.

    ``read`` reads once; where it has nothing to say at first, nothing more is asked.
    """

    def __init__(self, read: Callable[[], Clock | None], *, period_s: float = _PERIOD_S) -> None:
        self._read = read
        self._period_s = period_s
        self._readings: deque[tuple[float, Clock]] = deque(maxlen=round(_KEPT_S / _PERIOD_S))
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

    def during(self, began_s: float, ended_s: float) -> tuple[Clock, ...]:
        """The last reading before a span of time, some within it, and one after it."""
        if not self._readings:
            return ()
        self._look()
        return choose(list(self._readings), began_s, ended_s)

    def _go_on(self) -> None:
        while not self._left.wait(self._period_s):
            self._look()

    def _look(self) -> bool:
        clock = self._read()
        if clock is not None:
            self._readings.append((monotonic(), clock))
        return clock is not None


def choose(
    readings: Sequence[tuple[float, Clock]], began_s: float, ended_s: float
) -> tuple[Clock, ...]:
    """Of readings in order of their times: the last one before, at most six within, one after."""
    before = [clock for time_s, clock in readings if time_s < began_s][-1:]
    within = [clock for time_s, clock in readings if began_s <= time_s <= ended_s]
    after = [clock for time_s, clock in readings if time_s > ended_s][:1]
    step = max(1, -(-len(within) // _MOST_BETWEEN))
    return (*before, *within[::step], *after)


def read_clock(uuid: str | None) -> Clock | None:
    """One reading for the GPU with that UUID; None for a CPU or where NVML is not to be had.

    What the driver does not tell of this GPU is None in the reading.
    """
    if uuid is None:
        return None
    try:
        import pynvml  # noqa: PLC0415 — a GPU box may lack it

        if uuid not in _handles:
            pynvml.nvmlInit()
            _handles[uuid] = pynvml.nvmlDeviceGetHandleByUUID(uuid)
    except Exception:  # noqa: BLE001 — no package, no library, no permission: no reading
        return None
    handle = _handles[uuid]

    def ask(function: Any, *arguments: Any) -> Any:
        try:
            return function(handle, *arguments)
        except pynvml.NVMLError:
            return None

    reasons = ask(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons)
    power_mw = ask(pynvml.nvmlDeviceGetPowerUsage)
    return Clock(
        sm_mhz=_number(ask(pynvml.nvmlDeviceGetClockInfo, pynvml.NVML_CLOCK_SM)),
        memory_mhz=_number(ask(pynvml.nvmlDeviceGetClockInfo, pynvml.NVML_CLOCK_MEM)),
        temperature_c=_number(ask(pynvml.nvmlDeviceGetTemperature, pynvml.NVML_TEMPERATURE_GPU)),
        power_w=None if power_mw is None else power_mw * _WATTS_PER_MILLIWATT,
        throttle_reasons=tuple(
            name for bit, name in _THROTTLE_REASONS.items() if reasons is not None and reasons & bit
        ),
    )


def _number(value: Any) -> float | None:
    return None if value is None else float(value)
