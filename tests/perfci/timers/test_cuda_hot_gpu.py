"""On a real GPU: in how many graphs a workload is read, and that none returns what is stale."""

from collections import Counter
from collections.abc import Callable

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


def _workload(
    *, allocated_bytes: int = 4096, poison: Callable[[object], None] = lambda _: None
) -> Workload:
    x = torch.ones(allocated_bytes, dtype=torch.uint8, device="cuda")
    return Workload(calls=[lambda: x + 1], set_bytes=4096, device="cuda:0", poison=poison)


@pytest.mark.parametrize(("allocated_bytes", "count"), [(4096, 8), (_GIB // 4, 4), (2 * _GIB, 1)])
def test_there_are_as_many_graphs_as_their_memory_may_take(
    allocated_bytes: int, count: int
) -> None:
    reader = cuda_hot.open_reader(_workload(allocated_bytes=allocated_bytes))
    for _ in range(count + 1):
        reader.read()
    places = {each.data_ptr() for each in reader.returned if isinstance(each, torch.Tensor)}
    assert len(places) == len(reader.returned) == count


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


def test_what_is_returned_is_of_graphs_that_were_read_and_is_written_anew() -> None:
    poisoned: Counter[int] = Counter()

    def poison(returned: object) -> None:
        assert isinstance(returned, torch.Tensor)
        poisoned[returned.data_ptr()] += 1
        returned.fill_(99)

    reader = cuda_hot.open_reader(_workload(poison=poison))
    assert list(poisoned.values()) == [1] * 8
    assert len(reader.returned) == 0
    reader.read()
    assert len(reader.returned) == 1  # with no time for more, the others are not replayed
    measure(reader, contract=_CONTRACT, budget_s=0.5)
    assert len(reader.returned) == 8
    for each in reader.returned:
        assert isinstance(each, torch.Tensor)
        assert bool((each == 2).all())
