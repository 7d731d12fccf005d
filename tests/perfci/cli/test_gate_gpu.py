"""A gate on a GPU: a launch that changed is measured, a comment is not."""

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
  if (x->dtype != PERFCI_FLOAT32) return perfci_fail(call, "x is not float32");
  axpb<<<64, kThreads, 0, (cudaStream_t)call->stream>>>(
      (const float *)x->data, (float *)y->data, x->shape[0], x->strides[0],
      (float)call->scalars[0].real, (float)call->scalars[1].real);
  const cudaError_t error = cudaGetLastError();
  return error == cudaSuccess ? 0 : perfci_fail(call, cudaGetErrorString(error));
}
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository whose head has a comment more, and a tenth of the threads."""
    root = scratch.quick(tmp_path_factory.mktemp("gate") / "root", cell_budget_s=0.1)
    scratch.write_kernel(root, launched__cu=_SOURCE, commented__cu=_SOURCE)
    scratch.git(root, "init", "-q")
    scratch.commit_all(root, "one")
    scratch.git(root, "switch", "-q", "-c", "topic")
    scratch.write_kernel(
        root,
        launched__cu=_SOURCE.replace("kThreads = 256", "kThreads = 16"),
        commented__cu="// A comment.\n" + _SOURCE,
    )
    scratch.commit_all(root, "A smaller block")
    return root


def _gate(root: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    out = root.parent / "files"
    command = [sys.executable, "-m", "perfci", "gate", "--json", "--out", str(out), *arguments]
    ended = subprocess.run(
        command,
        cwd=root,
        env=scratch.environment(root),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.stdout, ended.stderr
    (gate,) = json.loads(ended.stdout)["gates"]
    return ended.returncode, gate


def _verdicts(gate: dict[str, Any], variant: str) -> dict[str, tuple[str, str]]:
    return {
        each["key"]["contract"].partition("/")[0]: (each["verdict"], each["reason"])
        for each in gate["comparisons"]
        if each["key"]["variant"] == variant and each["key"]["contract"]
    }


def test_a_smaller_block_is_not_the_same_code_and_slower(root: Path) -> None:
    code, gate = _gate(root)
    assert code == 1
    launched = _verdicts(gate, "launched")
    assert launched["cold"][0] == launched["hot"][0] == "regression"
    told = [each["differences"] for each in gate["comparisons"] if each["differences"]]
    assert any("host code changed" in each for each in told)
    assert any("launch 64 × 256 → 64 × 16" in " ".join(each) for each in told)
    same = ("unchanged", "the same code: not measured")
    assert _verdicts(gate, "commented") == {"cold": same, "hot": same, "host": same}


def test_a_comment_is_not_measured(root: Path) -> None:
    code, gate = _gate(root, "--variant", "commented")
    assert (code, gate["passes"], gate["runs"]) == (0, 0, [])
