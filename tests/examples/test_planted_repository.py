"""The script that plants a bad commit among forty, and has it found."""

import subprocess
import sys
from pathlib import Path

import pytest
import scratch

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


@pytest.mark.long
@pytest.mark.timeout(1500)
def test_the_bad_commit_alone_is_called(tmp_path: Path) -> None:
    root = tmp_path / "root"
    ended = _run(root, "gate", "wrong", str(root), "--harmless", "3")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "right  commit 27" in ended.stdout
    assert "incorrect/plain/square" in ended.stdout
    assert ended.stdout.endswith("wrong: 0 mistakes in 4 gates\n")


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", ["slower", "one_case", "wrong"])
def test_the_bad_commit_is_found_among_all(tmp_path: Path, kind: str) -> None:
    ended = _run(tmp_path / "root", "bisect", kind, str(tmp_path / "root"))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.startswith(f"right  {kind}: found, commit 27 of 40, ")
