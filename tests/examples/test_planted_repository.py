"""The script that plants a bad commit among forty, and has it found."""

import subprocess
import sys
from pathlib import Path

import pytest
import scratch

from perfci.build import build
from perfci.config import load_config
from perfci.device import has_gpu_driver
from perfci.kernel import discover
from perfci.selection import Selection, select, variants_of
from perfci.toolchain import find_compiler

_SCRIPT = Path(__file__).parents[2] / "examples/planted_repository.py"


def _run(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(_SCRIPT), *arguments]
    environment = scratch.environment(root, {"PYTHONPATH": str(_SCRIPT.parents[1])})
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("kind", ["slower", "one_case", "wrong"])
def test_forty_commits_of_which_one_is_bad(tmp_path: Path, kind: str) -> None:
    root = tmp_path / "root"
    assert _run(root, "make", kind, str(root)).returncode == 0
    shas = scratch.git(root, "rev-list", "--reverse", "main").split()
    assert len(shas) == 40
    changed = scratch.git(root, "show", "--format=%s", shas[26], "--", "kernels")
    assert changed.startswith("Tidy the loop")
    assert scratch.git(root, "status", "--porcelain") == ""


@pytest.mark.nvcc
@pytest.mark.skipif(find_compiler("nvcc") is None, reason="nvcc is not installed")
def test_twelve_commits_for_a_gpu_that_compile(tmp_path: Path) -> None:
    root = tmp_path / "root"
    assert _run(root, "make", "compensated", str(root)).returncode == 0
    shas = scratch.git(root, "rev-list", "--reverse", "main").split()
    assert len(shas) == 12
    assert "lost = 0.0f" in scratch.git(root, "show", shas[7], "--", "kernels")
    built = scratch.perfci(root, "build", "--device", "cuda")
    assert built.returncode == 0, built.stderr
    assert "2 compiled" in built.stdout


@pytest.mark.nvcc
@pytest.mark.long
@pytest.mark.skipif(find_compiler("nvcc") is None, reason="nvcc is not installed")
def test_of_the_twelve_only_messages_and_the_bad_one_change_the_code(tmp_path: Path) -> None:
    root = tmp_path / "root"
    assert _run(root, "make", "compensated", str(root)).returncode == 0
    config = load_config(root, environment={}, cache=str(tmp_path / "cache"))
    codes = []
    for sha in scratch.git(root, "rev-list", "--reverse", "main").split():
        scratch.git(root, "checkout", "--quiet", sha)
        chosen = select(discover(config.kernels), Selection(variants=("plain",)), "cuda")
        (built,) = build(variants_of(chosen), config, architectures=("90",))
        codes.append(built.code)
    changed = [number for number in range(2, 13) if codes[number - 1] != codes[number - 2]]
    assert changed == [3, 7, 8, 11]


@pytest.mark.gpu
@pytest.mark.long
@pytest.mark.skipif(not has_gpu_driver(), reason="needs a CUDA device")
@pytest.mark.parametrize("act", ["gate", "bisect"])
def test_a_few_percent_are_called_on_a_gpu(tmp_path: Path, act: str) -> None:
    ended = _run(tmp_path / "root", act, "compensated", str(tmp_path / "root"))
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.long
@pytest.mark.timeout(1500)
def test_the_bad_commit_alone_is_called(tmp_path: Path) -> None:
    root = tmp_path / "root"
    ended = _run(root, "gate", "wrong", str(root), "--harmless", "3")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "right  commit 27" in ended.stdout
    assert "incorrect/plain/square" in ended.stdout
    assert ended.stdout.endswith("0 mistakes in 4 gates\n")


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", ["slower", "one_case", "wrong"])
def test_the_bad_commit_is_found_among_all(tmp_path: Path, kind: str) -> None:
    ended = _run(tmp_path / "root", "bisect", kind, str(tmp_path / "root"))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.startswith("right  found, commit 27 of 40, ")
