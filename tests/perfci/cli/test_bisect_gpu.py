"""A bisection on a GPU: the launch that got slower is found, by the timer that is asked for."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import scratch

from perfci.device import has_gpu_driver
from perfci.toolchain import find_compiler

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.nvcc,
    pytest.mark.long,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(not has_gpu_driver(), reason="needs a CUDA device"),
    pytest.mark.skipif(find_compiler("nvcc") is None, reason="nvcc is not installed"),
]

_SOURCE = """\
#include <perfci.h>

constexpr int kThreads = 256;

__global__ void axpb(const float *x, float *y, int64_t count, int64_t stride, float a, float b) {
  for (int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    y[i] = a * x[i * stride] + b;
}

extern "C" int perfci_run(const perfci_call *call) {
  const perfci_tensor *x = &call->inputs[0], *y = &call->outputs[0];
  if (x->dtype != PERFCI_FLOAT32) return perfci_fail(call, "refused 0");
  axpb<<<64, kThreads, 0, (cudaStream_t)call->stream>>>(
      (const float *)x->data, (float *)y->data, x->shape[0], x->strides[0],
      (float)call->scalars[0].real, (float)call->scalars[1].real);
  const cudaError_t error = cudaGetLastError();
  return error == cudaSuccess ? 0 : perfci_fail(call, cudaGetErrorString(error));
}
"""


def _bisect(root: Path, *arguments: str) -> tuple[int, Any, str]:
    command = [sys.executable, "-m", "perfci", "bisect", "--json", "--out", "../files"]
    ended = subprocess.run(
        [*command, *arguments],
        cwd=root,
        env=scratch.environment(root),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.stdout, ended.stderr
    return ended.returncode, json.loads(ended.stdout), ended.stderr


def test_a_smaller_block_is_found_among_other_changes(tmp_path: Path) -> None:
    root = scratch.quick(tmp_path / "root", cell_budget_s=0.1)
    scratch.write_kernel(root, launched__cu=_SOURCE)
    scratch.git(root, "init", "-q")
    shas = [scratch.commit_all(root, "Begin")]
    for number in range(1, 8):
        text = _SOURCE.replace("refused 0", f"refused {number}")
        if number >= 5:
            text = text.replace("kThreads = 256", "kThreads = 16")
        scratch.write_kernel(root, launched__cu=text)
        shas.append(scratch.commit_all(root, f"Change {number}"))
    cell = ("--kernel", "axpb", "--variant", "launched", "--case", "large", "--timer", "hot")
    code, told, err = _bisect(root, shas[0], shas[-1], *cell)
    assert (code, told["ending"]) == (0, "found"), err
    assert told["suspects"][0]["sha"] == shas[5]
    assert told["ends"]["proof"]["timer"].startswith("hot/")
    (confirmed,) = told["confirmations"]
    assert "launch 64 × 256 → 64 × 16" in "; ".join(confirmed["differences"])
    assert told["confidence"] > 0.95
