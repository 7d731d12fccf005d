"""When there are enough samples, when a kernel is warm, and how several take turns."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import cycle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfci.history.latency import interquartile_mean
from perfci.history.model import Stop
from perfci.timers import MINIMUM_SAMPLES, TARGET, TIMERS, Reader
from perfci.timers.sampling import (
    SCARCE_SAMPLES,
    WARM_UP_CALLS,
    WARM_UP_NS,
    collect,
    measure_in_turns,
    relative_half_width,
    warm_up,
)

_MS = 1_000_000


class Clock:
    """A clock that only calls and readings move, and that counts both."""

    def __init__(self, *, call_ns: int = 1000, read_ns: int = 1000) -> None:
        self.now_ns = 0
        self.calls = self.reads = 0
        self._call_ns, self._read_ns = call_ns, read_ns

    def call(self) -> None:
        self.now_ns += self._call_ns
        self.calls += 1

    def reader(self, latencies: Callable[[int], Sequence[float]]) -> Reader:
        """Read what is to be read at each turn, counted from 0."""

        def read() -> list[float]:
            self.now_ns += self._read_ns
            self.reads += 1
            return [*latencies(self.reads - 1)]

        return Reader(call=self.call, read=read)

    def collect(
        self, latencies: Callable[[int], Sequence[float]], *, budget_s: float = 1.0
    ) -> tuple[list[float], Stop]:
        reader = self.reader(latencies)
        (collected,) = collect([reader], budget_s=budget_s, clock_ns=lambda: self.now_ns)
        return collected

    def warm_up(self, latencies: Callable[[int], Sequence[float]], *, budget_s: float) -> None:
        warm_up(self.reader(latencies), budget_s=budget_s, clock_ns=lambda: self.now_ns)


def _two_modes(turn: int) -> list[float]:
    return [1.0 + turn % 2]


def _drifting(turn: int) -> list[float]:
    return [10.0 + turn]  # the spread grows with the samples


def test_a_reader_may_ask_for_more_samples() -> None:
    clock = Clock()
    reader = replace(clock.reader(lambda _: [1.0] * 20), minimum_samples=320)
    ((samples, stop),) = collect([reader], budget_s=1, clock_ns=lambda: clock.now_ns)
    assert (len(samples), stop) == (320, Stop.CONVERGED)


def test_a_reader_may_ask_for_less() -> None:
    clock = Clock()
    reader = replace(clock.reader(_two_modes), target=0.1)
    ((samples, stop),) = collect([reader], budget_s=1, clock_ns=lambda: clock.now_ns)
    assert stop is Stop.CONVERGED
    assert 0.05 < relative_half_width(samples) <= 0.1


_LATENCIES = st.lists(st.floats(1e-3, 1e9), min_size=1, max_size=200)


@given(st.floats(1e-3, 1e9), st.integers(1, 200))
def test_samples_that_do_not_differ_are_known_exactly(sample: float, count: int) -> None:
    assert relative_half_width([sample] * count) == pytest.approx(0, abs=1e-12)


@given(_LATENCIES, st.floats(1e-3, 1e3))
def test_the_interval_is_relative(samples: list[float], scale: float) -> None:
    scaled = relative_half_width([scale * each for each in samples])
    assert scaled == pytest.approx(relative_half_width(samples), rel=1e-9, abs=1e-12)


def _skewed(seed: int, count: int = 160) -> list[float]:
    draws = np.random.default_rng(seed)
    return [*(6000 + 200 * draws.lognormal(size=count))]


def test_the_interval_holds_the_mean_nineteen_times_in_twenty() -> None:
    true = interquartile_mean(_skewed(0, count=200_000))
    inside = 0
    for seed in range(1, 401):
        samples = _skewed(seed)
        inside += abs(interquartile_mean(samples) / true - 1) <= relative_half_width(samples)
    assert 0.92 <= inside / 400 <= 0.97


def test_the_ticks_of_a_clock_make_it_no_narrower() -> None:
    for seed in range(20):
        samples = _skewed(seed)
        ticked = [32 * round(each / 32) for each in samples]
        assert relative_half_width(ticked) == pytest.approx(relative_half_width(samples), rel=0.15)


def test_what_disturbs_a_tenth_of_the_samples_widens_it_little() -> None:
    samples = _skewed(1)
    disturbed = [10 * each if index % 10 == 0 else each for index, each in enumerate(samples)]
    assert relative_half_width(disturbed) < 1.5 * relative_half_width(samples)


def test_steady_samples_converge_at_the_least_number() -> None:
    samples, stop = Clock().collect(lambda _: [10.0])
    assert (len(samples), stop) == (MINIMUM_SAMPLES, Stop.CONVERGED)


def test_more_samples_are_read_until_the_mean_is_known() -> None:
    samples, stop = Clock().collect(lambda turn: [1000.0 + (0 if turn >= 60 else turn % 2 * 20)])
    assert stop is Stop.CONVERGED
    assert len(samples) == 2 * MINIMUM_SAMPLES
    assert relative_half_width(samples[:MINIMUM_SAMPLES]) > TARGET
    assert relative_half_width(samples) <= TARGET


@pytest.mark.parametrize("latencies", [_drifting, _two_modes])
def test_samples_that_never_hold_are_stable_above_the_target(
    latencies: Callable[[int], Sequence[float]],
) -> None:
    samples, stop = Clock().collect(latencies)
    assert (len(samples), stop) == (200, Stop.STABILISED)


def test_what_gets_there_in_three_thousand_samples_is_read_on() -> None:
    samples, stop = Clock().collect(lambda turn: [1.0 + turn % 2 * 0.14])
    assert (len(samples), stop) == (3200, Stop.CONVERGED)


@pytest.mark.parametrize("batch", [1, 3])
def test_a_budget_that_is_spent_ends_it_with_a_few_at_the_least(batch: int) -> None:
    samples, stop = Clock().collect(lambda turn: _two_modes(turn) * batch, budget_s=0)
    assert stop is Stop.OUT_OF_TIME
    assert len(samples) == math.ceil(SCARCE_SAMPLES / batch) * batch


def test_the_reading_that_outlasts_the_budget_is_the_last() -> None:
    samples, stop = Clock(read_ns=4 * _MS).collect(_two_modes, budget_s=0.1)
    assert (len(samples), stop) == (26, Stop.OUT_OF_TIME)


def test_a_budget_that_is_spent_may_have_sufficed() -> None:
    samples, stop = Clock().collect(lambda _: [1.0] * 60, budget_s=0)
    assert (len(samples), stop) == (60, Stop.CONVERGED)


@pytest.mark.parametrize("call_ns", [1000, 10 * _MS])
def test_a_warm_kernel_is_called_often_and_long_enough_and_read_twice(call_ns: int) -> None:
    clock = Clock(call_ns=call_ns)
    clock.warm_up(lambda _: [1.0] * 20, budget_s=60)
    assert clock.calls == max(WARM_UP_CALLS, WARM_UP_NS // call_ns)
    assert clock.reads == 2


def test_a_kernel_that_becomes_faster_is_read_until_it_holds() -> None:
    clock = Clock()
    clock.warm_up(lambda turn: [1.0 + 2.0**-turn] * 20, budget_s=60)
    assert clock.reads == 6  # 1 + 1/16 and 1 + 1/32 are 3 % apart; those before them 6 %


def test_a_kernel_that_never_holds_is_left_to_the_passes_after_half_the_budget() -> None:
    clock = Clock(read_ns=_MS)
    clock.warm_up(lambda turn: [float(10 ** (turn % 2))] * 20, budget_s=0.1)
    assert clock.reads == 25  # 25 ms of calls, and then as many of readings


@pytest.mark.parametrize(("budget_s", "calls"), [(0.0, 1), (0.02, 3)])
def test_a_budget_that_is_spent_with_calls_leaves_nothing_to_read(
    budget_s: float, calls: int
) -> None:
    clock = Clock(call_ns=4 * _MS)
    clock.warm_up(lambda _: [1.0] * 20, budget_s=budget_s)
    assert (clock.calls, clock.reads) == (calls, 0)


def test_the_first_of_two_warms_the_device_for_both() -> None:
    bench = _Bench()
    readers = [bench.reader(name, lambda _: 1.0, batch=20) for name in ("a", "b")]
    measure_in_turns(
        readers, contract=TIMERS["cpu"].contract, budget_s=9, clock_ns=lambda: bench.now_ns
    )
    first_reading = bench.said.index("a")
    second = bench.said[first_reading:]
    assert bench.said[:first_reading].count("call a") == WARM_UP_NS // _MS
    assert second[: second.index("b")].count("call b") == WARM_UP_CALLS


class _Bench:
    """Two readers on one clock, and in which order they were called and read."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.said: list[str] = []
        self.begun: list[tuple[str, int]] = []

    def reader(self, name: str, latency: Callable[[int], float], batch: int = 1) -> Reader:
        def say(what: str) -> None:
            self.now_ns += _MS
            self.said.append(what)

        def read() -> list[float]:
            say(name)
            return [latency(self.now_ns)] * batch

        return Reader(
            call=lambda: say(f"call {name}"),
            begin=lambda: self.begun.append((name, len(self.said))),
            read=read,
            loops=len(name),
        )

    def collect(self, *readers: Reader, budget_s: float = 1.0) -> list[tuple[list[float], Stop]]:
        return collect(readers, budget_s=budget_s, clock_ns=lambda: self.now_ns)


def test_two_take_turns_forth_and_back_from_either_end() -> None:
    bench = _Bench()
    a, b = bench.reader("a", lambda _: 1.0), bench.reader("b", lambda _: 2.0)
    (of_a, stop_a), (of_b, stop_b) = bench.collect(a, b)
    assert (set(of_a), set(of_b)) == ({1.0}, {2.0})
    assert (stop_a, stop_b) == (Stop.CONVERGED, Stop.CONVERGED)
    assert len(of_a) == len(of_b) == MINIMUM_SAMPLES
    read = "".join(each for each in bench.said if not each.startswith("call"))
    rounds = {read[start : start + 4] for start in range(0, len(read), 4)}
    assert rounds == {"abba", "baab"}  # one of them alone: once in 2^24 runs
    calls = [each.removeprefix("call ") for each in bench.said[::2]]
    assert calls == bench.said[1::2]  # a call of its own before every block


def test_each_begins_behind_the_warm_up_of_both() -> None:
    bench = _Bench()
    readers = [bench.reader(name, lambda _: 1.0, batch=20) for name in ("a", "b")]
    contract = TIMERS["cpu"].contract
    measure_in_turns(readers, contract=contract, budget_s=1, clock_ns=lambda: bench.now_ns)
    (first, before), (second, also_before) = bench.begun
    assert (first, second, before) == ("a", "b", also_before)
    counted = bench.said[before:]
    assert sum(not each.startswith("call") for each in counted) * 20 == 2 * 80
    assert "b" in bench.said[:before]


def test_a_machine_that_slows_down_slows_both_alike() -> None:
    bench = _Bench()
    readers = [bench.reader(name, lambda now_ns: 1.0 + now_ns / 1e9) for name in ("a", "b")]
    (of_a, _), (of_b, _) = bench.collect(*readers, budget_s=0.4)
    assert max(of_a) > 1.3 * min(of_a)
    # A block later is 2 ms later: what is left of the drift is a block's, not the whole of it.
    assert sum(of_a) == pytest.approx(sum(of_b), rel=0.004)


def test_two_are_read_until_the_worse_of_them_is_known() -> None:
    bench = _Bench()
    steady, wild = bench.reader("a", lambda _: 1.0), bench.reader("b", _wild())
    (of_steady, stop), (of_wild, wild_stop) = bench.collect(steady, wild, budget_s=10)
    assert (stop, wild_stop) == (Stop.CONVERGED, Stop.STABILISED)
    assert len(of_steady) == len(of_wild) == 200


def test_two_have_twice_the_time() -> None:
    bench = _Bench()
    wild = [bench.reader(name, _wild()) for name in ("a", "b")]
    collected = bench.collect(*wild, budget_s=0.04)
    assert [stop for _, stop in collected] == [Stop.OUT_OF_TIME, Stop.OUT_OF_TIME]
    assert 80 * _MS < bench.now_ns <= 88 * _MS  # the round that outlasts the budget is the last


def test_what_is_read_of_two_is_told_of_each() -> None:
    bench = _Bench()
    readers = [bench.reader(name, lambda _: 1.0, batch=20) for name in ("a", "bb")]
    contract = TIMERS["cpu"].contract
    timings = measure_in_turns(
        readers, contract=contract, budget_s=1, clock_ns=lambda: bench.now_ns
    )
    assert [(each.contract, each.loops) for each in timings] == [(contract, 1), (contract, 2)]
    warm_up_calls = bench.said.index("a")
    assert bench.said[:warm_up_calls] == ["call a"] * warm_up_calls


def _wild() -> Callable[[int], float]:
    """Two modes that take turns; by the clock they would be those of the rounds, chosen by lot."""
    modes = cycle((1.0, 2.0))
    return lambda _: next(modes)
