"""On a real GPU: timers, streams, faults. Skipped, with the reason, where there is none."""

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

_CUDA = """\
#include <perfci_cuda.h>

__global__ void axpb(const float *x, float *y, float a, float b, int64_t count) {
  const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) y[i] = a * x[i] + b;
  BODY
}

extern "C" int perfci_run(const perfci_call *call) {
  const perfci_tensor *x = &call->inputs[0];
  perfci_call other = *call;
  HOST
  const int64_t count = x->shape[0];
  return perfci_launch(&other, {(count + 255) / 256, 256, 0}, axpb, (const float *)x->data,
                       (float *)call->outputs[0].data, (float)call->scalars[0].real,
                       (float)call->scalars[1].real, count);
}
"""


def _cuda(body: str = "", host: str = "") -> str:
    return _CUDA.replace("BODY", body).replace("HOST", host)


_WAITS = """\
import torch


def run(x, a, b):
    y = a * x + b
    torch.cuda.synchronize()
    return y
"""
_HANGS = 'for (;;) asm volatile("");'
_FAULTS = "*(volatile float *)8 = 1.0f;"
_OVERRUNS = "if (i == 0) y[count] = 1.0f;"


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], list[Any]]:
    """One run of well and ill behaved variants: (variant, case) → its rows, one a timer."""
    root = tmp_path_factory.mktemp("gpu")
    scratch.write_kernel(
        root,
        good__cu=_cuda(),
        eager__py=scratch.EAGER,
        waits__py=_WAITS,
        hangs__cu=_cuda(_HANGS),
        faults__cu=_cuda(_FAULTS),
        overruns__cu=_cuda(_OVERRUNS),
        astray__cu=_cuda(host="other.stream = nullptr;"),
    )
    scratch.quick(root, timeout_s=15)
    arguments = ("run", "--device", "0", "--passes", "2", "--commit", "abcdef1", "--json")
    ended = scratch.perfci(root, *arguments, "--out", root / "run.json.gz")
    assert ended.returncode == 1, ended.stderr
    rows: dict[tuple[str, str], list[Any]] = {}
    for row in json.loads(ended.stdout)["measurements"]:
        rows.setdefault((row["variant"], row["case"]), []).append(row)
    return rows


def _statuses(rows: list[Any]) -> dict[str, str]:
    return {row["contract"]["timer"]: row["status"] for row in rows}


@pytest.mark.parametrize("variant", ["good", "eager"])
def test_every_timer_reads_a_kernel_that_behaves(measured: Any, variant: str) -> None:
    rows = measured[variant, "large"]
    assert _statuses(rows) == {"cold": "passed", "hot": "passed", "host": "passed"}
    assert all(len(row["passes"]) == 2 for row in rows)
    for each in (one for row in rows for one in row["passes"]):
        assert not each["clocks"] or all(clock["sm_mhz"] > 0 for clock in each["clocks"])
    assert [row["status"] for row in measured[variant, "odd"]] == ["passed"]


def test_a_kernel_that_waits_for_the_device_is_invalid_where_that_matters(measured: Any) -> None:
    rows = measured["waits", "large"]
    assert _statuses(rows) == {
        "cold": "invalid_timing",
        "hot": "invalid_timing",
        "host": "passed",
    }
    reasons = {row["contract"]["timer"]: row["message"] for row in rows}
    assert "waits for the device" in reasons["cold"]
    assert "cannot be captured" in reasons["hot"]


@pytest.mark.parametrize(
    ("variant", "status", "message"),
    [
        ("hangs", "timeout", "no answer within 15 s"),
        ("faults", "runtime_error", ""),
        ("overruns", "wrong_values", "writes outside of its output"),
        ("astray", "wrong_values", ""),
    ],
)
def test_a_kernel_that_misbehaves_costs_its_own_rows(
    measured: Any, variant: str, status: str, message: str
) -> None:
    for case in ("large", "one", "odd"):
        assert {row["status"] for row in measured[variant, case]} == {status}
        assert all(message in row["message"] for row in measured[variant, case])


def test_code_for_another_architecture_is_named(tmp_path: Path) -> None:
    scratch.write_kernel(tmp_path, good__cu=_cuda())
    scratch.quick(tmp_path, architectures=["sm_80"])
    ended = scratch.perfci(tmp_path, "check", "--device", "0", "--json")
    assert ended.returncode == 1
    for row in json.loads(ended.stdout)["checks"]:
        assert row["status"] == "runtime_error"
        assert "compute capability" in row["message"]
        assert "the binary is for 8.0" in row["message"]
