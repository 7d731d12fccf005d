# perfci: devices = ["cuda"]
"""Planted: the same work for the device, and 50 µs more for the host."""

from time import perf_counter_ns

from torch import Tensor

_WASTED_NS = 50_000


def run(x: Tensor) -> Tensor:
    """Waste the caller's time, then negate."""
    end_ns = perf_counter_ns() + _WASTED_NS
    while perf_counter_ns() < end_ns:
        pass
    return -x
