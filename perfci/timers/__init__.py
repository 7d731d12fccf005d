"""How a latency is read: one module a timer, listed here by name and by kind of device."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol, cast

from perfci.history.model import Contract
from perfci.outcome import Timing

NOT_IN_L2 = "one set of inputs and outputs does not fit in a quarter of the L2"
"""What a row says whose data a timer meant to keep in the L2, and could not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What is timed: calls that take turns, each on arguments and outputs of its own.

    ``set_bytes`` is the size of one call's arguments and outputs.
    """

    calls: Sequence[Callable[[], object]]
    set_bytes: int
    device: str


class InvalidTimingError(Exception):
    """A timer cannot time this kernel and says why; no other timer takes its place."""


class Timer(Protocol):
    """A module that reads latencies under one contract."""

    def measure(self, workload: Workload, *, contract: Contract, budget_s: float) -> Timing:
        """Latencies of one call within a budget of time. Raises InvalidTimingError."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TimerEntry:
    """A timer's module, imported only where it measures, its kind of device, and its contract.

    The version goes up with every change that could move a latency.
    """

    module: str
    device: str
    contract: Contract


TIMERS = {
    "cpu": TimerEntry(
        module="perfci.timers.cpu",
        device="cpu",
        contract=Contract(timer="cpu", version=1, l2="warm", warm_up="steady", inputs="rotating"),
    ),
    "cuda_cold": TimerEntry(
        module="perfci.timers.cuda_cold",
        device="cuda",
        contract=Contract(
            timer="cold", version=1, l2="flushed", warm_up="steady", inputs="rotating"
        ),
    ),
    "cuda_hot": TimerEntry(
        module="perfci.timers.cuda_hot",
        device="cuda",
        contract=Contract(
            timer="hot", version=1, l2="resident", warm_up="steady", inputs="rotating"
        ),
    ),
    "host": TimerEntry(
        module="perfci.timers.host",
        device="cuda",
        contract=Contract(timer="host", version=1, l2="warm", warm_up="steady", inputs="rotating"),
    ),
}
"""Name → timer; of those of a device the primary one comes first."""


def timers_on(device_kind: str) -> tuple[str, ...]:
    """The names of the timers that measure on a kind of device, the primary one first."""
    return tuple(name for name, entry in TIMERS.items() if entry.device == device_kind)


def timer(name: str) -> Timer:
    """The timer of that name."""
    return cast("Timer", import_module(TIMERS[name].module))
