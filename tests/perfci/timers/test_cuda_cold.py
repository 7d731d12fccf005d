"""On which streams calls are made, and on how many. On a real GPU: test_cuda_cold_gpu.py."""

from collections import defaultdict
from itertools import islice
from typing import cast

import pytest

from perfci.timers import Workload, cuda_cold
from perfci.timers.cuda_cold import Stream, _are_enough, _turns, _where


@pytest.mark.parametrize(
    ("spans_s", "are_enough"),
    [
        ([], False),
        ([0.001] * 70, False),
        ([30.0, *[0.001] * 70], False),  # a first call may load, or the host be held up
        ([0.1] * 28, False),
        ([0.1] * 30, True),
        ([60.0] * 14, False),
        ([60.0] * 15, True),  # with the first, what a round of two sides is read on
    ],
)
def test_slow_calls_are_made_on_no_more_streams_than_they_will_be_read_on(
    spans_s: list[float], are_enough: bool
) -> None:
    assert _are_enough(spans_s) is are_enough


@pytest.mark.parametrize(("streams", "places"), [(72, 8), (16, 8), (9, 6), (3, 8), (1, 8), (72, 1)])
def test_calls_are_judged_in_a_place_on_the_streams_that_it_is_read_on(
    streams: int, places: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numbers stand for the streams, of which there are none on a CPU."""
    calls, *elsewhere = ([lambda place=place: place] for place in range(places))
    workload = Workload(calls=calls, set_bytes=1, device="cuda:0", elsewhere=elsewhere)
    every = cast("list[Stream]", list(range(streams)))
    read = defaultdict[object, set[Stream]](set)
    for stream, turn in islice(_turns(workload, every), 10 * streams * places):
        read[next(turn)()].add(stream)
    monkeypatch.setattr(cuda_cold, "_on_any", set)
    judged = [where() for where in _where(workload, every)]
    assert judged == [read[place] for place in range(places)]
    assert set().union(*read.values()) == set(every)
