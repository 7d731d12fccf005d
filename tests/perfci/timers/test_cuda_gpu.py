"""On a real GPU: what the timers say of launches that overlap, and of calls that launch nothing."""

import json
from pathlib import Path
from typing import Any

import pytest
import scratch

from perfci.device import has_gpu_driver

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.long,
    pytest.mark.skipif(not has_gpu_driver(), reason="needs a CUDA device"),
]

_OVERLAPS = """\
#include <perfci_cuda.h>

__global__ void axpb(const float *x, float *y, float a, float b, int64_t count) {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();
#endif
  const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) y[i] = a * x[i] + b;
}

extern "C" int perfci_run(const perfci_call *call) {
  const perfci_tensor *x = &call->inputs[0];
  const int64_t count = x->shape[0];
  cudaLaunchAttribute early = {};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3((unsigned)((count + 255) / 256));
  config.blockDim = dim3(256);
  config.stream = perfci_stream(call);
  config.attrs = &early;
  config.numAttrs = 1;
  const cudaError_t error = cudaLaunchKernelEx(
      &config, axpb, (const float *)x->data, (float *)call->outputs[0].data,
      (float)call->scalars[0].real, (float)call->scalars[1].real, count);
  return error == cudaSuccess ? 0 : perfci_cuda_fail(call, "launching", error);
}
"""
_IN_EVERY_OTHER_GRAPH = scratch.CUDA.replace(
    "  return perfci_launch(",
    "  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;\n"
    "  unsigned long long capture = 0;\n"
    "  cudaStreamGetCaptureInfo(perfci_stream(call), &status, &capture);\n"
    "  static unsigned long long last = 0, captures = 0;\n"
    "  const bool captured = status == cudaStreamCaptureStatusActive;\n"
    "  if (captured && capture != last) last = capture, ++captures;\n"
    "  if (captured && captures % 2) return perfci_launch(call, {1, 1, 0}, nothing);\n"
    "  return perfci_launch(",
).replace('extern "C"', '__global__ void nothing() {}\n\nextern "C"')
_ABSENT = """\
import torch

_last = {}


def run(x, a, b):
    if not torch.cuda.is_current_stream_capturing():
        _last[x.data_ptr()] = a * x + b
    return _last[x.data_ptr()]
"""


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Any]:
    """(variant, timer) → its row at the timed case."""
    root = tmp_path_factory.mktemp("timers")
    scratch.write_kernel(root, overlaps__cu=_OVERLAPS, absent__py=_ABSENT, eager__py=scratch.EAGER)
    scratch.quick(root)
    arguments = ("run", "--device", "0", "--passes", "1", "--commit", "abcdef1", "--json")
    ended = scratch.perfci(root, *arguments, "--out", root / "run.json.gz")
    assert ended.stdout, ended.stderr
    measured = json.loads(ended.stdout)["measurements"]
    return {(row["variant"], row["contract"]["timer"]): row for row in measured if row["contract"]}


def test_launches_that_overlap_are_marked(rows: Any) -> None:
    assert rows["overlaps", "hot"]["status"] == "passed", rows["overlaps", "hot"]
    assert "launches overlap" in rows["overlaps", "hot"]["message"]
    assert rows["overlaps", "cold"]["message"] == ""
    assert rows["eager", "hot"]["message"] == ""


def test_a_graph_of_nothing_is_no_latency(rows: Any) -> None:
    row = rows["absent", "hot"]
    assert row["status"] == "invalid_timing", row
    assert "nothing is launched on the stream of the call" in row["message"]


def test_the_clocks_agree_about_what_behaves(rows: Any) -> None:
    assert {rows["eager", timer]["status"] for timer in ("cold", "hot", "host")} == {"passed"}


def test_a_graph_that_computes_nothing_is_found_beside_one_that_does(tmp_path: Path) -> None:
    root = scratch.quick(tmp_path / "root", cell_budget_s=0.2)
    scratch.write_kernel(root, idle__cu=_IN_EVERY_OTHER_GRAPH)
    arguments = ("run", "--device", "0", "--passes", "1", "--commit", "abcdef1", "--json")
    ended = scratch.perfci(root, *arguments, "--out", root / "run.json.gz")
    rows = json.loads(ended.stdout)["measurements"]
    timed = [row for row in rows if row["case"] == "large"]
    assert {row["status"] for row in timed} == {"wrong_values"}, timed
    assert all("right before the timing, wrong after it" in row["message"] for row in timed)
