"""compute-sanitizer on a real GPU: each planted mistake is found by the tool that is for it."""

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

_CASES = """\
[[check]]
name = "one_block"
tier = "smoke"
count = 256
"""
_CUDA = """\
#include <perfci_cuda.h>

__global__ void axpb(const float *x, float *y, float a, float b) {
  __shared__ float kept[256];
  const int i = threadIdx.x;
  STATEMENT
}

extern "C" int perfci_run(const perfci_call *call) {
  return perfci_launch(call, {1, 256, 0}, axpb, (const float *)call->inputs[0].data,
                       (float *)call->outputs[0].data, (float)call->scalars[0].real,
                       (float)call->scalars[1].real);
}
"""
_STATEMENTS = {
    "honest": "kept[i] = x[i]; __syncthreads(); y[255 - i] = a * kept[255 - i] + b;",
    "reads_beyond": "kept[i] = x[i]; y[i] = a * kept[i] + b * x[i + 1];",
    "reads_unset": "kept[i] = y[i]; y[i] = a * x[i] + b + 0.0f * kept[i];",
    "races": "kept[i] = x[i]; y[255 - i] = a * kept[255 - i] + b;",
    # Odd lanes meet behind a mask of the even ones; a barrier that only half of a block reaches is
    # none to synccheck, on an H200, since threads that have ended count as arrived.
    "diverges": "y[i] = a * x[i] + b; if (i % 2) __syncwarp(0x55555555u);",
}
_PLANTED = {
    "reads_beyond": ("memcheck", "Invalid __global__ read of size 4 bytes"),
    "reads_unset": ("initcheck", "Uninitialized __global__ memory read of size 4 bytes"),
    "races": ("racecheck", "Race reported between "),
    "diverges": ("synccheck", "Barrier error detected"),
}


@pytest.fixture(scope="module")
def inspected(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Any]:
    """All variants under all tools, by both."""
    root = tmp_path_factory.mktemp("sanitizer") / "root"
    sources = {
        f"{name}__cu": _CUDA.replace("STATEMENT", statement)
        for name, statement in _STATEMENTS.items()
    }
    scratch.write_kernel(root, cases__toml=_CASES, **sources)
    scratch.quick(root, timeout_s=20)
    ended = scratch.perfci(root, "check", "--sanitize", "--device", "0", "--json")
    if ended.returncode == 4 or "Device not supported" in ended.stderr:
        pytest.skip(ended.stderr.strip())
    assert ended.returncode == 1, ended.stdout + ended.stderr
    return {
        (each["variant"], each["tool"]): each for each in json.loads(ended.stdout)["inspections"]
    }


def _explain(row: Any) -> str:
    return f"{json.dumps(row, indent=1)}\n{Path(row['log']).read_text(errors='replace')}"


@pytest.mark.parametrize("tool", ["memcheck", "initcheck", "synccheck", "racecheck"])
def test_an_honest_variant_is_clean(inspected: Any, tool: str) -> None:
    row = inspected["honest", tool]
    assert row["state"] == "clean", _explain(row)


@pytest.mark.parametrize("variant", list(_PLANTED))
def test_a_planted_mistake_is_found_by_its_tool(inspected: Any, variant: str) -> None:
    tool, words = _PLANTED[variant]
    row = inspected[variant, tool]
    assert row["state"] == "found", _explain(row)
    assert row["case"] == "one_block"
    assert row["count"] >= 1, _explain(row)
    assert words in row["message"], _explain(row)
    assert "axpb" in row["message"], _explain(row)
