"""On a real GPU: which kernels a call launches. Skipped, with the reason, where there is none."""

import gc
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import scratch
import torch

from perfci.collector import uncollected
from perfci.device import has_gpu_driver
from perfci.gpu.launches import find_launches
from perfci.history.codec import read_run_file

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.long,
    pytest.mark.skipif(not has_gpu_driver(), reason="needs a CUDA device"),
]

_KNOWN = """\
#include <perfci_cuda.h>

namespace {

__global__ void axpb(const float *x, float *y, float a, float b, int64_t count) {
  __shared__ float fixed[256];
  extern __shared__ float given[];
  const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  fixed[threadIdx.x] = a;
  given[threadIdx.x] = b;
  __syncthreads();
  if (i < count) y[i] = fixed[255 - threadIdx.x] * x[i] + given[255 - threadIdx.x];
}

}  // namespace

extern "C" int perfci_run(const perfci_call *call) {
  const perfci_tensor *x = &call->inputs[0];
  const int64_t count = x->shape[0];
  return perfci_launch(call, {(count + 255) / 256, 256, 2048}, axpb, (const float *)x->data,
                       (float *)call->outputs[0].data, (float)call->scalars[0].real,
                       (float)call->scalars[1].real, count);
}
"""
_SPILLS = """\
#include <perfci_cuda.h>

// Each thread keeps 120 values, which the 64 registers that a block of 1024 leaves it cannot hold.
template <int KEPT>
__global__ void __launch_bounds__(1024) hold(const float *x, float *y, float a, float b,
                                             int64_t count) {
  float kept[KEPT];
#pragma unroll
  for (int i = 0; i < KEPT; ++i) kept[i] = x[(threadIdx.x + i) % count];
  __syncthreads();
  for (int64_t i = int64_t(blockIdx.x) * 1024 + threadIdx.x; i < count; i += gridDim.x * 1024) {
    float sum = 0.0f;
#pragma unroll
    for (int j = 0; j < KEPT; ++j) sum += kept[j] * kept[j * 7 % KEPT];
    y[i] = sum == 0.123f ? sum : a * x[i] + b;
  }
}

extern "C" int perfci_run(const perfci_call *call) {
  const perfci_tensor *x = &call->inputs[0];
  float *y = (float *)call->outputs[0].data;
  if (cudaMemsetAsync(y, 0, x->shape[0] * sizeof *y, perfci_stream(call)) != cudaSuccess)
    return perfci_fail(call, "no memset");
  return perfci_launch(call, {2, 1024, 0}, hold<120>, (const float *)x->data, y,
                       (float)call->scalars[0].real, (float)call->scalars[1].real, x->shape[0]);
}
"""
_TRITON = """\
# perfci: devices = ["cuda"]
# perfci: compiles = true
import torch
import triton
import triton.language as tl


@triton.jit
def axpb_program(x, y, a, b, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    tl.store(y + at, a * tl.load(x + at, mask=inside) + b, mask=inside)


def run(x, a, b):
    y = torch.empty_like(x)
    axpb_program[(triton.cdiv(x.numel(), 1024),)](x, y, a, b, x.numel(), BLOCK=1024, num_warps=4)
    return y
"""
_WAITS = """\
import torch


def run(x, a, b):
    y = a * x + b
    torch.cuda.current_stream().synchronize()
    return y
"""


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], list[Any]]:
    """One run of several variants: (variant, case) → its rows in the run's file, one a timer."""
    root = tmp_path_factory.mktemp("launches")
    scratch.write_kernel(
        root,
        known__cu=_KNOWN,
        spills__cu=_SPILLS,
        eager__py=scratch.EAGER,
        programs__py=_TRITON,
        waits__py=_WAITS,
    )
    scratch.quick(root)
    file = root / "run.json.gz"
    arguments = ("run", "--device", "0", "--passes", "2", "--commit", "abcdef1")
    ended = scratch.perfci(root, *arguments, "--out", file)
    rows: dict[tuple[str, str], list[Any]] = {}
    for row in read_run_file(file).measurements:
        rows.setdefault((row.variant, row.case), []).append(row)
    assert {row.status.value for name in ("known", "spills") for row in rows[name, "large"]} == {
        "passed"
    }, ended.stderr
    return rows


def _launches(rows: Any, variant: str) -> Any:
    """The launches of a variant at the timed case, which are the same in the row of every timer."""
    timed = rows[variant, "large"]
    assert len(timed) == 3
    assert len({row.launches for row in timed}) == 1
    return timed[0].launches


def test_a_cuda_variant_is_known_by_its_launch(rows: Any) -> None:
    (launch,) = _launches(rows, "known")
    assert launch.function == "(anonymous namespace)::axpb"
    assert (launch.grid, launch.block) == ((256, 1, 1), (256, 1, 1))
    assert launch.shared_bytes == 2048 + 1024
    assert (launch.local_bytes, launch.spill_bytes) == (0, 0)
    assert 8 <= launch.registers <= 40
    assert launch.blocks_per_sm >= 2
    assert launch.occupancy == 1.0


def test_spills_are_told_by_the_compiler_and_seen_by_the_driver(rows: Any) -> None:
    (launch,) = _launches(rows, "spills")
    assert launch.function == "hold<120>"
    assert (launch.grid, launch.block) == ((2, 1, 1), (1024, 1, 1))
    assert launch.registers <= 64
    assert launch.local_bytes > 0
    assert launch.spill_bytes > 0
    assert 0 < launch.occupancy <= 1


def test_two_operations_of_pytorch_are_two_kernels(rows: Any) -> None:
    launches = _launches(rows, "eager")
    assert len(launches) == 2
    for each in launches:
        assert each.function.startswith("at::native::")
        assert "elementwise_kernel" in each.function
        assert each.spill_bytes is None
        assert each.grid[0] * each.block[0] > 1


def test_a_triton_variant_is_known_by_its_programs(rows: Any) -> None:
    (launch,) = _launches(rows, "programs")
    assert launch.function == "axpb_program"
    assert (launch.grid, launch.block) == ((64, 1, 1), (128, 1, 1))
    assert launch.spill_bytes is None


def test_a_variant_that_waits_has_no_launches_and_disturbs_nobody(rows: Any) -> None:
    assert _launches(rows, "waits") == ()
    statuses = {row.contract.timer: row.status.value for row in rows["waits", "large"]}
    assert statuses == {"cold": "invalid_timing", "hot": "invalid_timing", "host": "passed"}
    assert {row.status.value for row in rows["waits", "odd"]} == {"passed"}


def test_a_case_that_is_only_checked_has_none(rows: Any) -> None:
    for variant in ("known", "spills", "eager", "programs", "waits"):
        for case in ("one", "odd"):
            (row,) = rows[variant, case]
            assert (row.status.value, row.launches) == ("passed", ())


def test_a_check_asks_for_none(tmp_path: Path) -> None:
    scratch.write_kernel(scratch.quick(tmp_path), eager__py=scratch.EAGER)
    ended = scratch.perfci(tmp_path, "check", "--device", "0", "--json")
    assert ended.returncode == 0, ended.stderr
    assert [each["launches"] for each in json.loads(ended.stdout)["checks"]] == [[], [], []]


@pytest.fixture
def x() -> Iterator[torch.Tensor]:
    stream = torch.cuda.current_stream()
    yield torch.ones(1 << 16, device="cuda")
    assert torch.cuda.current_stream() == stream
    _require_sound()


def _require_sound() -> None:
    """A process in which captures came to nothing draws, allocates and captures as before."""
    torch.cuda.synchronize()
    assert torch.rand(64, device="cuda").isfinite().all()
    assert float(torch.ones(1 << 20, device="cuda").sum()) == 1 << 20
    graph, y = torch.cuda.CUDAGraph(), torch.zeros(8, device="cuda")
    with torch.cuda.graph(graph):
        y += 1
    graph.replay()
    assert float(y[0]) == 1.0
    torch.cuda.synchronize()


def _wait_for_stream(y: torch.Tensor) -> None:
    torch.cuda.current_stream().synchronize()


def _ask_for_value(y: torch.Tensor) -> None:
    float(y[0])


def _draw(y: torch.Tensor) -> None:
    torch.rand(64, device="cuda")


def _raise_while_captured(y: torch.Tensor) -> None:
    if torch.cuda.is_current_stream_capturing():
        raise ValueError("no")


def _leave_work_on_another_stream(y: torch.Tensor) -> None:
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        y.mul_(2)


@pytest.mark.parametrize(
    "act",
    [_wait_for_stream, _ask_for_value, _draw, _raise_while_captured, _leave_work_on_another_stream],
)
def test_what_cannot_be_captured_has_no_launches(x: torch.Tensor, act: Any) -> None:
    assert find_launches(lambda: act(x * 2)) == ()
    assert len(find_launches(lambda: x * 2)) == 1


def test_a_failed_capture_keeps_no_memory_that_only_the_collector_would_free(
    x: torch.Tensor,
) -> None:
    def call() -> None:
        _wait_for_stream(torch.ones(1 << 26, device="cuda"))

    gc.collect()
    torch.cuda.empty_cache()
    with uncollected():
        assert find_launches(call) == ()
        torch.cuda.empty_cache()
        assert torch.cuda.memory_reserved() < 4 << 26


def test_a_copy_is_no_kernel(x: torch.Tensor) -> None:
    y = torch.empty_like(x)
    assert find_launches(lambda: y.copy_(x)) == ()


def test_a_call_runs_once_and_is_captured_once(x: torch.Tensor) -> None:
    y, calls = torch.zeros_like(x), []

    def call() -> None:
        calls.append(torch.cuda.is_current_stream_capturing())
        y.add_(x)

    assert len(find_launches(call)) == 1
    torch.cuda.synchronize()
    assert calls == [False, True]
    assert float(y[0]) == 1.0


def test_work_on_a_stream_of_its_own_is_seen(x: torch.Tensor) -> None:
    side = torch.cuda.Stream()

    def call() -> torch.Tensor:
        doubled = x * 2
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            more = doubled + 1
            doubled.record_stream(side)
        torch.cuda.current_stream().wait_stream(side)
        more.record_stream(torch.cuda.current_stream())
        return more * doubled

    assert len(find_launches(call)) == 3


def test_memory_that_a_call_leaves_is_given_back(x: torch.Tensor) -> None:
    def call() -> torch.Tensor:
        return torch.ones(1 << 26, device="cuda") * 2

    call()
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    assert len(find_launches(call)) == 2
    assert torch.cuda.memory_allocated() == before
