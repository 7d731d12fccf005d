"""A GPU's clocks and state, read through NVML; never set."""

from typing import Any

from perfci.history.model import Clock

_THROTTLE_REASONS = {
    0x0000000000000004: "software power cap",
    0x0000000000000008: "hardware slowdown",
    0x0000000000000020: "software thermal slowdown",
    0x0000000000000040: "hardware thermal slowdown",
    0x0000000000000080: "hardware power brake",
}
_WATTS_PER_MILLIWATT = 1e-3

_handles: dict[str, Any] = {}


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
