"""On a real GPU: in how many graphs a workload is read, and that none returns what is stale."""

from collections.abc import Callable, Sequence

import pytest
import torch

from perfci.device import has_gpu_driver
from perfci.timers import TIMERS, Workload, cuda_hot
from perfci.timers.sampling import measure

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.long,
    pytest.mark.skipif(not has_gpu_driver(), reason="needs a CUDA device"),
]

_CONTRACT = TIMERS["cuda_hot"].contract
_GIB = 2**30


def _workload(*, allocated_bytes: int = 4096) -> Workload:
    x = torch.ones(allocated_bytes, dtype=torch.uint8, device="cuda")
    return Workload(calls=[lambda: x + 1], set_bytes=4096, device="cuda:0")


@pytest.mark.parametrize(("allocated_bytes", "count"), [(4096, 8), (_GIB // 4, 4), (2 * _GIB, 1)])
def test_there_are_as_many_graphs_as_their_memory_may_take(
    allocated_bytes: int, count: int
) -> None:
    reader = cuda_hot.open_reader(_workload(allocated_bytes=allocated_bytes))
    for _ in range(count + 1):
        reader.read()
    written = [replay() for replay in reader.replays]
    places = {each.data_ptr() for each in written if isinstance(each, torch.Tensor)}
    assert len(places) == len(written) == count


def test_batches_take_turns_on_the_graphs_from_the_first_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    replayed: list[int] = []
    inner = cuda_hot._replayed

    def replay(graph: torch.cuda.CUDAGraph) -> object:
        replayed.append(id(graph))
        return inner(graph)

    monkeypatch.setattr(cuda_hot, "_replayed", replay)
    reader = cuda_hot.open_reader(_workload())
    replayed.clear()
    reader.read()
    reader.begin()
    for _ in range(16):
        reader.read()
    assert len(set(replayed)) == 8
    assert replayed[1:9] == replayed[9:]
    assert replayed[0] == replayed[1]


def test_what_is_judged_is_of_graphs_that_were_read() -> None:
    reader = cuda_hot.open_reader(_workload())
    assert len(reader.replays) == 0
    reader.read()
    assert len(reader.replays) == 1  # with no time for more, the others are not replayed
    measure(reader, contract=_CONTRACT, budget_s=0.5)
    assert len(reader.replays) == 8


def test_a_graph_that_leaves_its_work_to_another_is_told_from_those_that_do_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x, y, other = (torch.ones(4096, dtype=torch.uint8, device="cuda") for _ in range(3))
    captured: list[object] = []
    inner = cuda_hot._captured

    def capture(calls: Sequence[Callable[[], object]], launches: int) -> object:
        captured.append(calls)
        return inner(calls, launches)

    def call() -> torch.Tensor:
        writes = len(captured) <= 2  # the probe, and the first of eight that are read
        torch.add(x, 1, out=y if writes else other)
        return y

    monkeypatch.setattr(cuda_hot, "_captured", capture)
    reader = cuda_hot.open_reader(
        Workload(calls=[call], set_bytes=4096, device="cuda:0", poison=lambda _: y.fill_(99))
    )
    for _ in range(16):
        reader.read()
    right = []
    for replay in reader.replays:
        assert replay() is y
        right.append(bool((y == 2).all()))
    assert right == [True] + [False] * 7
