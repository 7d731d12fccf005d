"""On a real GPU: what the doctor says of it, and that it leaves it as it is."""

import json
import subprocess
from pathlib import Path

import pytest
import scratch

from perfci.device import has_gpu_driver

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.long,
    pytest.mark.skipif(not has_gpu_driver(), reason="needs a CUDA device"),
]

_SETTINGS = "persistence_mode,compute_mode,power.limit,clocks.applications.graphics"


def _settings() -> str:
    command = ["nvidia-smi", f"--query-gpu={_SETTINGS}", "--format=csv"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def test_a_gpu_is_looked_at_and_left_as_it_is(tmp_path: Path) -> None:
    root = scratch.quick(tmp_path / "root")
    before = _settings()
    ended = scratch.perfci(root, "doctor", "--gpu", "--json")
    assert _settings() == before
    assert ended.returncode == 0, ended.stdout + ended.stderr
    found = {each["name"]: each for each in json.loads(ended.stdout)}
    assert {"GPU", "timers", "flush", "company", "noise, cold", "noise, hot"} <= found.keys()
    assert found["timers"]["state"] == "present"
    assert found["flush"]["state"] == "present"
    assert "from pass to pass" in found["noise, cold"]["detail"]
    assert not (root / ".perfci").exists()
