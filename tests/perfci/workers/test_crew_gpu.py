"""Sides in processes of their own on a real GPU: every timer, and a fault that is one side's."""

from collections.abc import Mapping

import pytest
import scratch
import sided

from perfci.config import load_config
from perfci.device import find_targets, has_gpu_driver
from perfci.gate.environments import put_into
from perfci.history.model import Measurement, Status
from perfci.kernel import discover
from perfci.progress import LineObserver
from perfci.run import measure_pair
from perfci.selection import Selection, select
from perfci.workers.passes import PassServer

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.long,
    pytest.mark.skipif(not has_gpu_driver(), reason="needs a CUDA device"),
]

_BODY = "  if (i < count) y[i] = a * x[i] + b;\n"
_SLOW = scratch.CUDA.replace(
    _BODY, _BODY + "  for (long long end = clock64() + 40000; clock64() < end;) {}\n"
)
_FAULTS = scratch.CUDA.replace(_BODY, _BODY + "  *(volatile float *)8 = 1.0f;\n")
_WAITS = "import torch\n\n\ndef run(x, a, b):\n    torch.cuda.synchronize()\n    return a * x + b\n"
_TIMERS = ["cold", "hot", "host"]

Rows = Mapping[tuple[str, str], Measurement]


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> tuple[Rows, Rows]:
    """The timed rows of both sides by variant and timer."""
    folder = tmp_path_factory.mktemp("crew")
    quick = {"alike": scratch.CUDA, "slower": scratch.CUDA, "faults": scratch.CUDA}
    slow = {"alike": scratch.CUDA, "slower": _SLOW, "faults": _FAULTS}
    chosen = []
    for name, texts, eager in (("one", quick, scratch.EAGER), ("other", slow, _WAITS)):
        root = scratch.quick(folder / name, timeout_s=60, cell_budget_s=0.2)
        files = {f"{variant}__cu": text for variant, text in texts.items()}
        scratch.write_kernel(root, **files, waits__py=eager)
        kernels = put_into(sided.installation(name), discover(root / "kernels"))
        chosen.append(select(kernels, Selection(cases=("large",)), "cuda"))
    server = PassServer({})
    measured = measure_pair(
        *chosen,
        load_config(folder / "one", environment={}, cache=str(folder / "cache")),
        target=find_targets("0", server.probe_gpus)[0],
        server=server,
        passes=4,
        observer=LineObserver(),
    )
    first, second = (
        {
            (row.variant, row.contract.timer): row
            for row in each.measurements
            if row.contract is not None
        }
        for each in measured
    )
    return first, second


@pytest.mark.parametrize("timer", ["cold", "hot"])  # by host two processes lie 25 % apart and more
def test_the_same_kernel_is_as_fast_in_both_processes(sides: tuple[Rows, Rows], timer: str) -> None:
    before, after = (each["alike", timer] for each in sides)
    assert before.status is after.status is Status.PASSED, (before.message, after.message)
    assert [each.index for each in before.passes] == [each.index for each in after.passes]
    for a, b in zip(before.passes, after.passes, strict=True):
        assert min(b.samples_ns) == pytest.approx(min(a.samples_ns), rel=0.3)


@pytest.mark.parametrize("timer", _TIMERS)
def test_a_slower_side_is_slower_by_every_timer(sides: tuple[Rows, Rows], timer: str) -> None:
    before, after = (each["slower", timer] for each in sides)
    assert before.status is after.status is Status.PASSED, (before.message, after.message)
    for a, b in zip(before.passes, after.passes, strict=True):
        assert min(b.samples_ns) > min(a.samples_ns) + 5000  # 40,000 cycles are 20 µs
    assert (before.launches, after.launches) > ((), ())


def test_a_fault_is_the_side_s_whose_it_is(sides: tuple[Rows, Rows]) -> None:
    good, bad = (each["faults", "cold"] for each in sides)
    assert (good.status, bad.status) == (Status.MISSING, Status.RUNTIME_ERROR)
    assert "nothing to pair with" in good.message


def test_a_side_that_waits_for_the_device_leaves_both_without_what_cannot_be_read(
    sides: tuple[Rows, Rows],
) -> None:
    for timer in ("cold", "hot"):
        one, other = (each["waits", timer] for each in sides)
        assert one.status is other.status is Status.INVALID_TIMING
        assert one.message.startswith("the other side ")
    assert {each["waits", "host"].status for each in sides} == {Status.PASSED}
