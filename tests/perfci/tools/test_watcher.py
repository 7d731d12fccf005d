"""Programs that watch a process: which one is taken, and that nothing of a run outlives it."""

import asyncio
import os
from pathlib import Path

import pytest

from perfci.tools import watcher


def test_of_several_versions_the_newest_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version in ("2024.3.2", "2025.10.0", "2025.9.1"):
        program = tmp_path / version / "perfci-no-such-tool"
        program.parent.mkdir()
        program.touch()
    monkeypatch.setattr(watcher, "_OWN_FOLDERS", tmp_path)
    found = watcher.require_program("perfci-no-such-tool", "install it")
    assert found == str(tmp_path / "2025.10.0" / "perfci-no-such-tool")


def test_nothing_that_a_run_has_started_outlives_it(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    script = f"exec 3> {pipe}; (sleep 20; echo survived >&3) & exit 7"
    watched = asyncio.run(
        watcher.watch(["sh", "-c", script], log=tmp_path / "log", limit_s=60.0, variables={})
    )
    assert watched.code == 7
    os.set_blocking(reading, True)
    assert os.read(reading, 100) == b""  # at once where all that could write has been ended
    os.close(reading)
