"""On a real GPU: who else is on it is seen, and marks what was measured meanwhile."""

import json
import subprocess
import sys
from collections.abc import Iterator
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

_ONE_CASE = scratch.CASES.partition("\n[[check]]")[0]
_HOLDS = """\
import torch

kept = torch.zeros(1, device="cuda:0")
torch.cuda.synchronize()
print("there", flush=True)
input()
"""


@pytest.fixture
def another() -> Iterator[None]:
    """Another process on the GPU, not started by perfci and idle."""
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "there\n"
        yield
        process.communicate("\n")


def _rows(root: Path) -> list[dict[str, Any]]:
    scratch.quick(root)
    scratch.write_kernel(root, cases__toml=_ONE_CASE, eager__py=scratch.EAGER)
    arguments = ("run", "--device", "0", "--passes", "3", "--commit", "abcdef1", "--json")
    ended = scratch.perfci(root, *arguments, "--out", root / "run.json.gz")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    rows: list[dict[str, Any]] = json.loads(ended.stdout)["measurements"]
    assert len(rows) == 3
    return rows


def test_the_clock_of_every_pass_is_known(tmp_path: Path) -> None:
    rows = _rows(tmp_path / "root")
    clocks_mhz = [each["sm_mhz"] for row in rows for each in row["passes"]]
    if None in clocks_mhz:
        pytest.skip("NVML tells no clocks here")
    assert all(100 < each < 4000 for each in clocks_mhz)
    assert all("sm_mhz" in {each["name"] for each in row["metrics"]} for row in rows)


def test_another_process_marks_what_was_measured_meanwhile(tmp_path: Path, another: None) -> None:
    rows = _rows(tmp_path / "root")
    counts = {each["other_processes"] for row in rows for each in row["passes"]}
    if counts == {None}:
        pytest.skip("NVML lists none of our own processes here")
    assert min(counts) >= 1
    for row in rows:
        assert row["status"] == "passed"
        assert row["message"].startswith("measured while ")
        assert row["message"].endswith("on the GPU: not compared")
