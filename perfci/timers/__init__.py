"""How a latency is read: one module a timer, listed here by name and by kind of device."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol, cast

from perfci.history.model import Contract
from perfci.outcome import Timing


class Timer(Protocol):
    """A module that reads latencies under one contract."""

    def measure(self, calls: Sequence[Any], *, contract: Contract, budget_s: float) -> Timing:
        """Latencies of one call, from calls that take turns, within a budget of time."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TimerEntry:
    """A timer's module, imported only where it measures, and the contract that it keeps.

    The version goes up with every change that could move a latency.
    """

    module: str
    contract: Contract


TIMERS = {
    "cpu": TimerEntry(
        module="perfci.timers.cpu",
        contract=Contract(timer="cpu", version=1, l2="warm", warm_up="steady", inputs="rotating"),
    ),
}

DEVICE_TIMERS: dict[str, tuple[str, ...]] = {"cpu": ("cpu",)}
"""Kind of device → the timers that measure on it, the primary one first."""


def timer(name: str) -> Timer:
    """The timer of that name."""
    return cast("Timer", import_module(TIMERS[name].module))
