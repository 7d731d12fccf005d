"""How a latency is read: one module a timer, listed here by name and by kind of device."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol, cast

from perfci.history.model import Contract

MINIMUM_SAMPLES = 50
"""How many samples a pass reads of a cell at the least, while its budget lasts."""

TARGET = 0.005
"""How far the samples leave open what their interquartile mean is, at 95 %, relative to it."""

NOT_IN_L2 = "one set of inputs and outputs does not fit in a quarter of the L2"
"""What a row says whose data a timer meant to keep in the L2, and could not."""

OVERLAPPING = "launches overlap (programmatic dependent launch): a throughput, not a latency"
"""What a row says whose launches in a graph begin before the last has ended."""


Where = Callable[[], AbstractContextManager[None]]
"""On which stream a call is made: another one each time, of those that calls have met."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What is timed: calls that take turns, each on arguments and outputs of its own.

    ``set_bytes`` is the size of one call's arguments and outputs. ``poison`` wipes what the first
    call has written and, given to it, what it returned; only calls that run again fill them.
    ``elsewhere`` is the same calls once more for each further place that code and data lie in.
    """

    calls: Sequence[Callable[[], object]]
    set_bytes: int
    device: str
    poison: Callable[[object], None] = lambda _: None
    elsewhere: Sequence[Sequence[Callable[[], object]]] = ()


class InvalidTimingError(Exception):
    """A timer cannot time this kernel and says why; no other timer takes its place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """How one workload is read, a batch at a time; perfci.timers.sampling says how often.

    ``call`` calls once and returns when its work is done, for warming up. ``begin`` comes before
    the batches that count, so that two sides begin alike. ``read`` returns a batch
    of latencies of one call in nanoseconds, each the mean over ``loops`` calls, and may raise
    InvalidTimingError. Fewer than ``minimum_samples`` are not enough, and ``target`` is how closely
    their mean should be known. ``note`` is what whoever looks at the figures should know of them.
    ``replays`` replay, once more and alone, each graph that batches have replayed: one returns what
    the first call returned in it, wiped before. ``where`` is, for each place of the workload, on
    which stream calls are made there, as a context; nothing where it is the current one.
    """

    call: Callable[[], object]
    read: Callable[[], list[float]]
    begin: Callable[[], None] = lambda: None
    loops: int = 1
    minimum_samples: int = MINIMUM_SAMPLES
    target: float = TARGET
    note: str = ""
    replays: Sequence[Callable[[], object]] = ()
    where: Sequence[Where] = ()


class Timer(Protocol):
    """A module that reads latencies under one contract."""

    def open_reader(self, workload: Workload) -> Reader:
        """What reads a workload. Raises InvalidTimingError where it cannot be read so."""
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
            timer="cold", version=5, l2="flushed", warm_up="steady", inputs="rotating"
        ),
    ),
    "cuda_hot": TimerEntry(
        module="perfci.timers.cuda_hot",
        device="cuda",
        contract=Contract(
            timer="hot", version=2, l2="resident", warm_up="steady", inputs="rotating"
        ),
    ),
    "host": TimerEntry(
        module="perfci.timers.host",
        device="cuda",
        contract=Contract(timer="host", version=2, l2="warm", warm_up="steady", inputs="rotating"),
    ),
}
"""Name → timer; of those of a device the primary one comes first."""


def timers_on(device_kind: str) -> tuple[str, ...]:
    """The names of the timers that measure on a kind of device, the primary one first."""
    return tuple(name for name, entry in TIMERS.items() if entry.device == device_kind)


def timer(name: str) -> Timer:
    """The timer of that name."""
    return cast("Timer", import_module(TIMERS[name].module))
