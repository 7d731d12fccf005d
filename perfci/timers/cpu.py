"""The CPU's timer: a monotonic clock around calibrated inner loops over rotating inputs.

A sample is the mean of ``loops`` calls back to back, with ``loops`` so large that the clock's own
cost and grain (some 50 ns) stay below 0.02 % of it. The clock is bound when this module is
imported, before any kernel is loaded.
"""

from collections.abc import Callable
from itertools import cycle
from time import perf_counter_ns

from perfci.timers import Reader, Workload

MINIMUM_SAMPLE_NS = 300_000
_BATCH_NS = 5_000_000
_BATCH_SAMPLES = 10


def open_reader(workload: Workload, *, clock_ns: Callable[[], int] = perf_counter_ns) -> Reader:
    """What reads latencies of one call, by the host's clock."""
    turns = cycle(workload.calls)
    loops = _calibrate(turns, clock_ns)

    def sample_ns() -> float:
        start_ns = clock_ns()
        for _ in range(loops):
            next(turns)()
        return (clock_ns() - start_ns) / loops

    def read() -> list[float]:
        first_ns = sample_ns()
        fitting = int(_BATCH_NS / max(1.0, first_ns * loops))
        return [first_ns, *(sample_ns() for _ in range(min(_BATCH_SAMPLES, fitting)))]

    def call() -> None:
        next(turns)()

    return Reader(call=call, read=read, loops=loops)


def _calibrate(turns: "cycle[Callable[[], object]]", clock_ns: Callable[[], int]) -> int:
    """The number of calls that makes a sample long enough for the clock."""

    def spent_ns(loops: int) -> int:
        start_ns = clock_ns()
        for _ in range(loops):
            next(turns)()
        return clock_ns() - start_ns

    loops = 1
    while True:
        # The least of three: one interruption must not pass for a long call.
        least_ns = max(1, min(spent_ns(loops) for _ in range(3)))
        if least_ns >= MINIMUM_SAMPLE_NS:
            return loops
        needed = 1.2 * loops * MINIMUM_SAMPLE_NS / least_ns
        loops = max(loops + 1, min(10 * loops, int(needed)))
