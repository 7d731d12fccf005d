"""Call to return plus synchronise: what a caller in Python pays for one call on an idle GPU."""

from itertools import cycle
from time import perf_counter_ns

import torch

from perfci.timers import Reader, Workload

_BATCH_SAMPLES = 10
_TARGET = 0.02
"""Processes lie up to 25 % apart by this timer: finer than this one need not be known."""


def open_reader(workload: Workload) -> Reader:
    """What reads latencies of one call, by the host's clock."""
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

    return Reader(call=call, read=read, target=_TARGET)
