"""On a real GPU: on which streams a kernel is read, and that the L2 gives up what it keeps.

That moves no latency of a kernel that asks nothing: each way is read six times, in turns, and what
was read stands beside a failure.
"""

import statistics
from collections import Counter
from collections.abc import Callable

import pytest
import torch

from perfci.device import has_gpu_driver
from perfci.gpu.driver import Persistence
from perfci.timers import TIMERS, Workload, cuda_cold
from perfci.timers.sampling import measure

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.long,
    pytest.mark.skipif(not has_gpu_driver(), reason="needs a CUDA device"),
]

_CONTRACT = TIMERS["cuda_cold"].contract
_TURNS = 6


def _copy() -> Callable[[], object]:
    x = torch.randn(640, 1024, dtype=torch.float64, device="cuda")
    out = torch.empty_like(x)
    return lambda: torch.add(x, 0.0, out=out)


def _calls(name: str) -> list[Callable[[], object]]:
    if name == "empty":
        return [lambda: torch.cuda._sleep(0)]
    return [_copy() for _ in range(4)]


def _read_ns(calls: list[Callable[[], object]], *, keeps_in_l2: bool = False) -> float:
    workload = Workload(calls=calls, set_bytes=1, device="cuda:0", keeps_in_l2=keeps_in_l2)
    reader = cuda_cold.open_reader(workload)
    return statistics.median(measure(reader, contract=_CONTRACT, budget_s=0.2).samples_ns)


@pytest.mark.parametrize("name", ["empty", "copy"])
def test_what_asks_the_l2_to_keep_nothing_takes_as_long_with_as_without(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    calls, end = _calls(name), Persistence.end
    by_way: dict[bool, list[float]] = {True: [], False: []}
    for turn in range(2 * _TURNS):
        gives_up = turn % 2 == 0
        monkeypatch.setattr(Persistence, "end", end if gives_up else lambda _: None)
        by_way[gives_up].append(_read_ns(calls))
    with_it, without = (statistics.median(by_way[each]) for each in (True, False))
    assert with_it == pytest.approx(without, rel=0.03, abs=64), by_way


@pytest.mark.parametrize("name", ["empty", "copy"])
def test_launches_that_are_handed_over_one_at_a_time_take_as_long(name: str) -> None:
    calls = _calls(name)
    by_way: dict[bool, list[float]] = {True: [], False: []}
    for turn in range(2 * _TURNS):
        alone = turn % 2 == 0
        by_way[alone].append(_read_ns(calls, keeps_in_l2=alone))
    alone, together = (statistics.median(by_way[each]) for each in (True, False))
    assert alone == pytest.approx(together, rel=0.1, abs=500), by_way


@pytest.mark.parametrize(("allocated_bytes", "count"), [(0, 16), (1 << 29, 2), (1 << 31, 1)])
def test_batches_take_turns_on_streams_of_their_own(allocated_bytes: int, count: int) -> None:
    seen: list[int] = []

    def call() -> None:
        seen.append(torch.cuda.current_stream().cuda_stream)
        torch.empty(allocated_bytes, dtype=torch.uint8, device="cuda")
        torch.cuda._sleep(0)

    reader = cuda_cold.open_reader(Workload(calls=[call], set_bytes=1, device="cuda:0"))
    assert set(Counter(seen).values()) == {1}  # each stream has run it before it is read there
    first = set(seen)
    seen.clear()
    for _ in range(16):
        reader.read()
    assert Counter(seen) == dict.fromkeys(first, 320 // count)
    assert len(first) == count
    assert reader.minimum_samples == max(50, 20 * count)
    assert torch.cuda.default_stream().cuda_stream not in first


def test_what_counts_begins_on_the_same_stream_whatever_was_read_before() -> None:
    seen: list[int] = []

    def call() -> None:
        seen.append(torch.cuda.current_stream().cuda_stream)
        torch.cuda._sleep(0)

    firsts = []
    for before in range(3):
        reader = cuda_cold.open_reader(Workload(calls=[call], set_bytes=1, device="cuda:0"))
        for _ in range(before):
            reader.read()
        reader.begin()
        seen.clear()
        reader.read()
        firsts.append({*seen})
    assert firsts[0] == firsts[1] == firsts[2]
    assert len(firsts[0]) == 1
