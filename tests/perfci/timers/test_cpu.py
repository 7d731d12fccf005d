"""The CPU's timer, read from a clock that only the kernel moves."""

import gc
from collections.abc import Callable, Sequence
from time import perf_counter_ns

import pytest

from perfci.history.model import Stop
from perfci.outcome import Timing
from perfci.timers import TIMERS, Workload
from perfci.timers.cpu import MINIMUM_SAMPLE_NS, open_reader
from perfci.timers.sampling import measure

_CONTRACT = TIMERS["cpu"].contract


def _measure(
    workload: Workload, *, budget_s: float, clock_ns: Callable[[], int] = perf_counter_ns
) -> Timing:
    reader = open_reader(workload, clock_ns=clock_ns)
    return measure(reader, contract=_CONTRACT, budget_s=budget_s, clock_ns=clock_ns)


class Machine:
    """A clock, and kernels that each take a time of their own on it."""

    def __init__(self, *, reading_ns: int = 0) -> None:
        self.now_ns = 0
        self.calls: list[int] = []
        self._reading_ns = reading_ns
        self.interruptions_ns: dict[int, int] = {}

    def clock_ns(self) -> int:
        self.now_ns += self._reading_ns
        return self.now_ns

    def kernel(self, number: int, cost_ns: int) -> Callable[[], None]:
        def call() -> None:
            self.now_ns += cost_ns + self.interruptions_ns.get(len(self.calls), 0)
            self.calls.append(number)

        return call

    def measure(self, costs_ns: Sequence[int], *, budget_s: float = 0.02) -> Timing:
        calls = [self.kernel(number, cost) for number, cost in enumerate(costs_ns)]
        workload = Workload(calls=calls, set_bytes=1, device="cpu")
        return _measure(workload, budget_s=budget_s, clock_ns=self.clock_ns)


@pytest.mark.parametrize("cost_ns", [1_000, 12_345, 299_999, 300_000, 7_000_000])
def test_a_sample_is_the_mean_of_enough_calls(cost_ns: int) -> None:
    timing = Machine().measure([cost_ns])
    assert set(timing.samples_ns) == {float(cost_ns)}
    assert timing.loops * cost_ns >= MINIMUM_SAMPLE_NS
    assert (timing.loops - 1) * cost_ns < 1.3 * MINIMUM_SAMPLE_NS
    assert timing.contract == _CONTRACT


def test_a_constant_latency_has_converged() -> None:
    timing = Machine().measure([50_000], budget_s=5.0)
    assert timing.stop is Stop.CONVERGED
    assert len(timing.samples_ns) >= 50


def test_the_clocks_own_cost_is_small() -> None:
    (sample_ns,) = set(Machine(reading_ns=50).measure([100]).samples_ns)
    assert 100 <= sample_ns <= 100.02


def test_inputs_take_turns() -> None:
    machine = Machine()
    machine.measure([1_000, 1_000, 1_000])
    assert machine.calls == [index % 3 for index in range(len(machine.calls))]


@pytest.mark.parametrize("at", [0, 1, 2, 3])
def test_one_interruption_does_not_pass_for_a_long_call(at: int) -> None:
    machine = Machine()
    machine.interruptions_ns = {at: 50_000_000}
    timing = machine.measure([2_000])
    assert timing.loops * 2_000 >= MINIMUM_SAMPLE_NS


def test_a_call_shorter_than_the_clocks_tick_is_repeated_until_it_shows() -> None:
    machine = Machine()

    def ticking_ns() -> int:
        return machine.now_ns // 1_000 * 1_000

    workload = Workload(calls=[machine.kernel(0, 10)], set_bytes=1, device="cpu")
    timing = _measure(workload, budget_s=0.02, clock_ns=ticking_ns)
    assert timing.loops * 10 >= MINIMUM_SAMPLE_NS
    assert min(timing.samples_ns) == pytest.approx(10, rel=0.004)


@pytest.mark.parametrize("enabled", [True, False])
def test_rubbish_is_not_collected_meanwhile(enabled: bool) -> None:
    machine = Machine()
    collecting: list[bool] = []
    costly = machine.kernel(0, 100_000)

    def kernel() -> None:
        collecting.append(gc.isenabled())
        costly()

    was = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        workload = Workload(calls=[kernel], set_bytes=1, device="cpu")
        timing = _measure(workload, budget_s=0.02, clock_ns=machine.clock_ns)
        assert gc.isenabled() == enabled
        assert not any(collecting[-len(timing.samples_ns) * timing.loops :])
    finally:
        (gc.enable if was else gc.disable)()


def test_a_kernel_that_raises_leaves_the_collector_as_it_was() -> None:
    def kernel() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        _measure(Workload(calls=[kernel], set_bytes=1, device="cpu"), budget_s=0.01)
    assert gc.isenabled()
