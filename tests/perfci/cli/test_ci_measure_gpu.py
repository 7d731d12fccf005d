"""perfci ci measure on a GPU: a night's work ends with compute-sanitizer."""

from pathlib import Path

import pytest
import scratch

from perfci.ci.parcel import read_parcel
from perfci.device import has_gpu_driver
from perfci.history.codec import read_run_file
from perfci.toolchain import find_compiler

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.nvcc,
    pytest.mark.long,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not has_gpu_driver(), reason="needs a CUDA device"),
    pytest.mark.skipif(find_compiler("nvcc") is None, reason="nvcc is not installed"),
]

_CASES = """\
[[bench]]
name = "large"
tier = "smoke"
count = 65536
"""


def test_a_night_is_a_run_the_noise_and_the_sanitizer(tmp_path: Path) -> None:
    root, out = scratch.quick(tmp_path / "root"), tmp_path / "parcel"
    scratch.write_kernel(root, cases__toml=_CASES, launched__cu=scratch.CUDA)
    scratch.git(root, "init", "-q")
    head = scratch.commit_all(root, "one")
    ended = scratch.perfci(root, "ci", "measure", "--device", "0", "--out", out)
    parcel = read_parcel(out)
    assert [(each.name, each.exit_code) for each in parcel.steps] == [
        ("run", 0),
        ("noise", 0),
        ("sanitize", 0),
    ], ended.stderr
    runs = [read_run_file(out / name) for name in parcel.runs]
    assert {run.commit.sha for run in runs} == {head}
    assert {run.environment.device.kind for run in runs} == {"cuda"}
    assert sorted(run.trigger for run in runs) == ["noise", "noise", "schedule"]
