"""On a real GPU: how a kernel's launches are handed over, and that the L2 gives up what it keeps.

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
from perfci.timers.cuda_stream import Blocker
from perfci.timers.sampling import measure

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.long,
    pytest.mark.skipif(not has_gpu_driver(), reason="needs a CUDA device"),
]

_CONTRACT = TIMERS["cuda_cold"].contract
_BLOCK_NS = 5e6
_TURNS = 6


def _copy() -> Callable[[], object]:
    x = torch.randn(640, 1024, dtype=torch.float64, device="cuda")
    out = torch.empty_like(x)
    return lambda: torch.add(x, 0.0, out=out)


def _calls(name: str) -> list[Callable[[], object]]:
    if name == "empty":
        return [lambda: torch.cuda._sleep(0)]
    return [_copy() for _ in range(4)]


def _read_ns(calls: list[Callable[[], object]]) -> float:
    reader = cuda_cold.open_reader(Workload(calls=calls, set_bytes=1, device="cuda:0"))
    return statistics.median(measure(reader, contract=_CONTRACT, budget_s=0.2).samples_ns)


@pytest.fixture
def _never_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is handed over twice, however busy the host is."""
    monkeypatch.setattr(cuda_cold, "Blocker", lambda **_: Blocker(shortest_ns=_BLOCK_NS))


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


@pytest.mark.usefixtures("_never_late")
def test_a_launch_is_handed_over_when_the_last_is_done() -> None:
    done: list[torch.cuda.Event] = []
    waited_for: list[bool] = []

    def call() -> None:
        waited_for.extend(each.query() for each in done)
        torch.cuda._sleep(1_000_000)
        done[:] = [torch.cuda.Event()]
        done[0].record()

    reader = cuda_cold.open_reader(Workload(calls=[call], set_bytes=1, device="cuda:0"))
    waited_for.clear()
    reader.read()
    assert waited_for == [True] * (32 + 8)  # one each on a stream that is new


@pytest.mark.usefixtures("_never_late")
def test_every_other_launch_has_one_more_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    launched: list[str] = []
    sleep = torch.cuda._sleep

    def call() -> None:
        launched.append("call")
        sleep(0)

    def counted(cycles: int) -> None:
        launched.append("empty")
        sleep(cycles)

    reader = cuda_cold.open_reader(Workload(calls=[call], set_bytes=1, device="cuda:0"))
    launched.clear()
    monkeypatch.setattr(torch.cuda, "_sleep", counted)
    reader.read()
    before = [each.count("empty") for each in " ".join(launched).split("call")[:-1]]
    on_streams = [before[each : each + 5] for each in range(0, 40, 5)]
    # To block each, and to shift every other; what is called first on a stream is not timed.
    assert on_streams == [[1, 1, 2, 1, 2]] * 8


@pytest.mark.usefixtures("_never_late")
def test_batches_take_turns_on_the_places_from_the_first_on() -> None:
    seen: list[str] = []

    def named(name: str) -> Callable[[], object]:
        def call() -> None:
            seen.append(name)
            torch.cuda._sleep(0)

        return call

    calls, *elsewhere = ([named(f"{place}{each}") for each in range(4)] for place in "abc")
    reader = cuda_cold.open_reader(
        Workload(calls=calls, set_bytes=1, device="cuda:0", elsewhere=elsewhere)
    )
    assert {each[0] for each in seen} == {*"abc"}  # none is called first while it is read
    for batches in (1, 4):
        reader.begin()
        seen.clear()
        for _ in range(batches):
            reader.read()
        assert (
            "".join(each[0] for each in seen)
            == "".join(f"{each * 5}" for each in 11 * "abc")[: 40 * batches]
        )
        assert len(set(seen[:4])) == 4
    assert reader.minimum_samples == 288


@pytest.mark.usefixtures("_never_late")
def test_calls_can_be_made_where_they_were_read() -> None:
    seen: list[tuple[int, int]] = []

    def at(place: int) -> Callable[[], object]:
        def call() -> None:
            seen.append((place, torch.cuda.current_stream().cuda_stream))
            torch.cuda._sleep(0)

        return call

    calls, *elsewhere = ([at(place)] for place in range(8))
    reader = cuda_cold.open_reader(
        Workload(calls=calls, set_bytes=1, device="cuda:0", elsewhere=elsewhere)
    )
    for _ in range(9):
        reader.read()
    read = set(seen)
    seen.clear()
    for _ in range(4):
        for place, where in enumerate(reader.where):
            with where():
                at(place)()
    assert len(seen) == 32
    assert set(seen) <= read
    assert len({stream for _, stream in seen}) > 8  # another one each time
    assert torch.cuda.current_stream() == torch.cuda.default_stream()


@pytest.mark.usefixtures("_never_late")
@pytest.mark.parametrize(("allocated_bytes", "count"), [(0, 72), (1 << 29, 2), (1 << 31, 1)])
def test_batches_take_turns_on_streams_of_their_own(allocated_bytes: int, count: int) -> None:
    seen: list[int] = []

    def call() -> None:
        seen.append(torch.cuda.current_stream().cuda_stream)
        torch.empty(allocated_bytes, dtype=torch.uint8, device="cuda")
        torch.cuda._sleep(0)

    reader = cuda_cold.open_reader(Workload(calls=[call], set_bytes=1, device="cuda:0"))
    # Each stream has run it before it is read there, the first one twice.
    assert sorted(Counter(seen).values()) == [*[1] * (count - 1), 2]
    first = set(seen)
    seen.clear()
    for _ in range(9):
        reader.read()
    assert Counter(seen) == dict.fromkeys(first, 360 // count)
    assert len(first) == count
    assert reader.minimum_samples == max(160, 4 * count)
    assert torch.cuda.default_stream().cuda_stream not in first


@pytest.mark.usefixtures("_never_late")
def test_the_first_of_two_sides_has_as_many_streams_as_the_second() -> None:
    a, b = (torch.ones(256, 256, device="cuda") for _ in range(2))
    torch._C._cuda_clearCublasWorkspaces()
    readers = [
        cuda_cold.open_reader(Workload(calls=[lambda: a @ b], set_bytes=1, device="cuda:0"))
        for _ in range(2)
    ]
    assert [reader.minimum_samples for reader in readers] == [288, 288]


@pytest.mark.usefixtures("_never_late")
def test_slow_calls_are_made_on_fewer_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def call() -> None:
        seen.append(torch.cuda.current_stream().cuda_stream)
        torch.cuda._sleep(10_000_000)  # some 5 ms

    monkeypatch.setattr(cuda_cold, "_FIRST_CALLS_S", 0.05)
    reader = cuda_cold.open_reader(Workload(calls=[call], set_bytes=1, device="cuda:0"))
    assert len(set(seen)) == len(seen) - 1 == 16
    seen.clear()
    reader.read()
    assert len(set(seen)) == 8
    assert reader.minimum_samples == 160


@pytest.mark.usefixtures("_never_late")
def test_what_counts_begins_on_the_same_stream_whatever_was_read_before() -> None:
    seen: list[int] = []

    def call() -> None:
        seen.append(torch.cuda.current_stream().cuda_stream)
        torch.cuda._sleep(0)

    firsts: list[list[int]] = []
    for before in range(3):
        reader = cuda_cold.open_reader(Workload(calls=[call], set_bytes=1, device="cuda:0"))
        for _ in range(before):
            reader.read()
        reader.begin()
        seen.clear()
        reader.read()
        firsts.append(seen[::5])
    assert firsts[0] == firsts[1] == firsts[2]
    assert len(set(firsts[0])) == 8
