"""A GPU as it was while a cell was timed: which readings are kept, and what they say of it."""

import os
from collections.abc import Callable
from time import monotonic

import nvml_double
import pytest

from perfci.gpu.clocks import ClockWatch, Glance, GpuEye, Watched, summarise_glances
from perfci.history.model import Clock


def _readings(*times_s: float) -> list[tuple[float, Glance]]:
    return [(time_s, Glance(clock=Clock(sm_mhz=time_s))) for time_s in times_s]


def _chosen(readings: list[tuple[float, Glance]], began_s: float, ended_s: float) -> list[float]:
    return [each.sm_mhz or 0.0 for each in summarise_glances(readings, began_s, ended_s).clocks]


def test_the_last_before_all_within_and_the_first_after_are_kept() -> None:
    readings = _readings(1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0)
    assert _chosen(readings, 2.5, 5.0) == [2.0, 3.0, 4.0, 5.0, 6.0]
    assert _chosen(readings, 3.2, 3.4) == [3.0, 4.0]


def test_of_many_within_at_most_six_are_kept_from_first_to_last() -> None:
    for count in range(1, 40):
        within = _readings(*(10.0 + number for number in range(count)))
        kept = _chosen(within, 10.0, 100.0)
        assert len(kept) == min(count, len(kept)) <= 6
        assert kept[0] == 10.0
        assert len(kept) >= min(count, 4)


def test_a_time_without_readings_has_none() -> None:
    assert summarise_glances([], 1.0, 2.0) == Watched()
    assert _chosen(_readings(5.0), 1.0, 2.0) == [5.0]
    assert _chosen(_readings(0.5), 1.0, 2.0) == [0.5]


@pytest.mark.parametrize(
    ("span_s", "sm_mhz"),
    [
        ((1.5, 4.5), 3.0),  # the median of those within
        ((2.2, 2.4), 3.0),  # else what was read first after it
        ((8.0, 9.0), 7.0),  # else what was read last before it
    ],
)
def test_the_clock_of_a_span_is_what_was_read_within_or_next_to_it(
    span_s: tuple[float, float], sm_mhz: float
) -> None:
    readings = _readings(1.0, 2.0, 3.0, 4.0, 7.0)
    assert summarise_glances(readings, *span_s).sm_mhz == sm_mhz


def _others(*counts: int | None) -> list[tuple[float, Glance]]:
    return [
        (float(time_s), Glance(clock=Clock(), others=count)) for time_s, count in enumerate(counts)
    ]


@pytest.mark.parametrize(
    ("counts", "others"),
    [
        ((0, 0, 0, 0), 0),
        ((None, None, None, None), None),
        ((None, 0, None, None), 0),
        ((1, 0, 0, 0), 1),  # left meanwhile, for all that is known
        ((0, 0, 0, 2), 2),  # came meanwhile, for all that is known
        ((0, 1, 3, 0), 3),
    ],
)
def test_who_was_there_between_two_readings_counts(
    counts: tuple[int | None, ...], others: int | None
) -> None:
    assert summarise_glances(_others(*counts), 0.5, 2.5).others == others


def _counter(calls: list[float]) -> Callable[[], Glance]:
    def glance() -> Glance:
        calls.append(monotonic())
        return Glance(clock=Clock(sm_mhz=float(len(calls))))

    return glance


def test_a_watch_reads_at_its_beginning_and_when_it_is_asked() -> None:
    calls: list[float] = []
    with ClockWatch(_counter(calls), period_s=3600.0) as watch:
        began_s = monotonic()
        clocks = watch.during(began_s, monotonic()).clocks
        assert [each.sm_mhz for each in clocks] == [1.0, 2.0]
    assert len(calls) == 2


def test_a_watch_reads_by_itself_while_it_is_entered() -> None:
    calls: list[float] = []
    with ClockWatch(_counter(calls), period_s=0.0):
        while len(calls) < 5:  # which nobody here asks for
            pass
    assert calls == sorted(calls)


def test_where_there_is_nothing_to_read_nothing_more_is_asked() -> None:
    calls: list[bool] = []

    def glance() -> None:
        calls.append(True)

    with ClockWatch(glance, period_s=0.0) as watch:
        assert watch.during(0.0, monotonic()) == Watched()
    assert calls == [True]


def test_a_cpu_has_no_clocks_to_read_and_lacks_none() -> None:
    eye = GpuEye(None)
    assert (eye.glance(), eye.reason) == (None, "")


def test_a_driver_that_tells_nothing_of_a_gpu_leaves_its_clock_empty(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refusal = nvml_double.NVMLError_NotSupported()
    names = ("GetClockInfo", "GetCurrentClocksThrottleReasons", "GetComputeRunningProcesses")
    nvml_double.install(monkeypatch, "MIG-1", answers=dict.fromkeys(names, refusal))
    eye = GpuEye("MIG-1")
    assert eye.glance() == Glance(clock=Clock(), others=None)
    assert eye.reason == ("the driver tells no SM clock of MIG-1 (of an instance of MIG none does)")


def test_a_gpu_of_which_nothing_can_be_read_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml_double.install(monkeypatch, "GPU-1", refuses=nvml_double.NVMLError_NoPermission())
    eye = GpuEye("GPU-1")
    assert (eye.glance(), eye.reason) == (
        None,
        "the driver lets this user ask nothing (no permission)",
    )


def test_what_a_driver_tells_is_kept_in_its_units(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {
        "GetClockInfo": {("GPU-1", "NVML_CLOCK_SM"): 1980, ("GPU-1", "NVML_CLOCK_MEM"): 3201},
        "GetTemperature": 41,
        "GetPowerUsage": 127_906,
        "GetCurrentClocksThrottleReasons": 0x8 | 0x40 | 0x1,
    }
    nvml_double.install(monkeypatch, "GPU-1", answers=answers, pids=[os.getpid(), 1 << 22])
    assert GpuEye("GPU-1").glance() == Glance(
        clock=Clock(
            sm_mhz=1980.0,
            memory_mhz=3201.0,
            temperature_c=41.0,
            power_w=127.906,
            throttle_reasons=("hardware slowdown", "hardware thermal slowdown"),
        ),
        others=1,
    )
