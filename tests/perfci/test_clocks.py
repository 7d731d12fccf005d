"""Clocks as they were while a cell was timed: which readings are kept of it."""

from collections.abc import Callable
from time import monotonic

from perfci.clocks import ClockWatch, choose, read_clock
from perfci.history.model import Clock


def _readings(*times_s: float) -> list[tuple[float, Clock]]:
    return [(time_s, Clock(sm_mhz=time_s)) for time_s in times_s]


def _chosen(readings: list[tuple[float, Clock]], began_s: float, ended_s: float) -> list[float]:
    return [each.sm_mhz or 0.0 for each in choose(readings, began_s, ended_s)]


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
    assert _chosen([], 1.0, 2.0) == []
    assert _chosen(_readings(5.0), 1.0, 2.0) == [5.0]
    assert _chosen(_readings(0.5), 1.0, 2.0) == [0.5]


def _counter(calls: list[float]) -> Callable[[], Clock]:
    def read() -> Clock:
        calls.append(monotonic())
        return Clock(sm_mhz=float(len(calls)))

    return read


def test_a_watch_reads_at_its_beginning_and_when_it_is_asked() -> None:
    calls: list[float] = []
    with ClockWatch(_counter(calls), period_s=3600.0) as watch:
        began_s = monotonic()
        assert [each.sm_mhz for each in watch.during(began_s, monotonic())] == [1.0, 2.0]
    assert len(calls) == 2


def test_a_watch_reads_by_itself_while_it_is_entered() -> None:
    calls: list[float] = []
    with ClockWatch(_counter(calls), period_s=0.0):
        while len(calls) < 5:
            pass


def test_where_there_is_nothing_to_read_nothing_more_is_asked() -> None:
    calls: list[bool] = []

    def read() -> None:
        calls.append(True)

    with ClockWatch(read, period_s=0.0) as watch:
        assert watch.during(0.0, monotonic()) == ()
    assert calls == [True]


def test_a_cpu_has_no_clocks_to_read() -> None:
    assert read_clock(None) is None
