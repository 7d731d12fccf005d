"""On a real GPU: the canary sings behind a flush, and falls silent without one."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count

import pytest
import torch
from records import measurement

from perfci.anchors import CACHE_CASE, COPY, EMPTY, LAUNCH_CASE
from perfci.anchors.canary import find_fault
from perfci.device import has_gpu_driver
from perfci.history.model import Measurement
from perfci.timers import TIMERS, Workload, cuda_cold, timer
from perfci.timers.sampling import measure

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.long,
    pytest.mark.skipif(not has_gpu_driver(), reason="needs a CUDA device"),
]

_SHAPE = (640, 1024)


def _copies() -> list[Callable[[], object]]:
    """Calls that copy 5 MiB each, of four inputs that take turns, as the anchor does."""

    def copying() -> Callable[[], object]:
        x = torch.randn(_SHAPE, dtype=torch.float64, device="cuda")
        out = torch.empty_like(x)
        return lambda: torch.add(x, 0.0, out=out)

    return [copying() for _ in range(4)]


def _rows(timer_name: str) -> Iterator[Measurement]:
    contract = TIMERS[timer_name].contract
    set_bytes = 2 * 8 * _SHAPE[0] * _SHAPE[1]
    for kernel, case, calls in (
        (COPY, CACHE_CASE, _copies()),
        (EMPTY, LAUNCH_CASE, [lambda: torch.cuda._sleep(0)]),
    ):
        workload = Workload(calls=calls, set_bytes=set_bytes, device="cuda:0")
        timing = measure(timer(timer_name).open_reader(workload), contract=contract, budget_s=0.2)
        row = measurement((1.0,), kernel=kernel, case=case, contract=contract, message=timing.note)
        yield replace(row, passes=(replace(row.passes[0], samples_ns=timing.samples_ns),))


def test_the_canary_tells_a_flush_from_none(monkeypatch: pytest.MonkeyPatch) -> None:
    hot = list(_rows("cuda_hot"))
    if any(row.message for row in hot):
        pytest.skip("the copy does not fit in a quarter of the L2 here")
    assert find_fault([*hot, *_rows("cuda_cold")]) == ""
    sizes = count(1)
    monkeypatch.setattr(
        cuda_cold,
        "_flush_buffer",
        lambda device: torch.empty(next(sizes), dtype=torch.uint8, device=device),
    )
    assert "was not flushed" in find_fault([*hot, *_rows("cuda_cold")])
