"""Streams that are closed, full or unread never look like a verdict and cost no run."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import scratch

from perfci.history.stores import open_store


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = scratch.quick(tmp_path_factory.mktemp("streams") / "root")
    scratch.write_kernel(root, eager__py=scratch.EAGER)
    assert scratch.perfci(root, "run", "--commit", "abcdef1").returncode == 0
    return root


def _shell(root: Path, command: str) -> subprocess.CompletedProcess[str]:
    program = f"{shlex.quote(sys.executable)} -m perfci"
    return subprocess.run(
        ["sh", "-c", command.replace("perfci", program, 1)],
        cwd=root,
        env=scratch.environment(root),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("command", ["show", "show --json", "history ls", "list", "--help"])
def test_an_output_that_cannot_be_written_is_one_line(root: Path, command: str) -> None:
    ended = _shell(root, f"perfci {command} >/dev/full")
    assert ended.returncode == 2
    assert ended.stderr == "perfci: the output cannot be written: no space left on device\n"


@pytest.mark.parametrize("closed", [">&-", "<&-", ">&- <&- 2>&-", "2>/dev/full", "2>&-"])
def test_what_is_asked_is_answered_whatever_else_is_closed(root: Path, closed: str) -> None:
    assert _shell(root, f"perfci show {closed}").returncode == 0
    assert _shell(root, f"perfci show --run nothing {closed}").returncode == 6


@pytest.mark.parametrize("closed", ["2>/dev/full", "2>&-", ">&- <&- 2>&-"])
def test_a_run_is_recorded_though_nobody_hears_of_it(
    root: Path, tmp_path: Path, closed: str
) -> None:
    store = tmp_path / "history.db"
    command = f"perfci run --commit abcdef1 --case one --store {shlex.quote(str(store))} {closed}"
    assert _shell(root, command).returncode == 0
    with open_store(f"sqlite:///{store}") as history:
        (run,) = history.runs()
        assert [cell.status for cell in history.cells(run_ids=[run.run_id])] == ["passed"]
