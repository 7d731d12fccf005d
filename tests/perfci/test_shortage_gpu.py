"""On a real GPU: memory that runs out in a worker is told with its sizes."""

import json
import re
from pathlib import Path

import pytest
import scratch

from perfci.device import has_gpu_driver

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.long,
    pytest.mark.skipif(not has_gpu_driver(), reason="needs a CUDA device"),
]

# What compiles lets the fork server import PyTorch's compiler, which asks NVML for GPUs.
_HUNGRY = """\
# perfci: compiles = true
import torch


def run(x, a, b):
    return torch.empty(1 << 50, dtype=torch.uint8, device=x.device)
"""


def test_memory_that_runs_out_is_told_with_its_sizes(tmp_path: Path) -> None:
    root = scratch.quick(tmp_path / "root")
    scratch.write_kernel(root, hungry__py=_HUNGRY)
    ended = scratch.perfci(root, "check", "--device", "0", "--json")
    (message,) = {row["message"] for row in json.loads(ended.stdout)["checks"]}
    sizes = r"tried to allocate \S+ [GT]iB, \S+ GiB of \S+ GiB were free"
    assert re.fullmatch(rf"out of memory: {sizes} \(hungry\.py:6\)", message), message
