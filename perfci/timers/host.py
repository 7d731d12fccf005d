"""Call to return plus synchronise: what a caller in Python pays for one call on an idle GPU."""

import gc
from itertools import cycle
from time import perf_counter_ns

import torch

from perfci.history.model import Contract
from perfci.outcome import Timing
from perfci.timers import Workload
from perfci.timers.sampling import collect, warm_up

_BATCH_SAMPLES = 10


def measure(workload: Workload, *, contract: Contract, budget_s: float) -> Timing:
    """Latencies of one call, in nanoseconds, by the host's clock."""
    turns = cycle(workload.calls)
    synchronise = torch.cuda.synchronize

    def sample_ns() -> float:
        launch = next(turns)
        synchronise()
        start_ns = perf_counter_ns()
        launch()
        synchronise()
        return float(perf_counter_ns() - start_ns)

    def call() -> None:
        next(turns)()
        synchronise()

    def read() -> list[float]:
        return [sample_ns() for _ in range(_BATCH_SAMPLES)]

    collecting = gc.isenabled()
    gc.disable()
    try:
        warm_up(call, read, budget_s=budget_s)
        samples_ns, stop = collect(read, budget_s=budget_s)
    finally:
        if collecting:
            gc.enable()
    return Timing(contract=contract, samples_ns=tuple(samples_ns), loops=1, stop=stop)
