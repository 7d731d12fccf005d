"""Clones that sync into one remote at once, and are killed at it, lose and break nothing."""

import json
import os
import random
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import scratch
from records import rich_run
from remotes import BRANCH, Clone, changes_in, make_remote

from perfci.history.model import Run


class _Syncing:
    """A clone, with a process that syncs it again and again, each time with one run more."""

    def __init__(self, clone: Clone) -> None:
        self.clone = clone
        self.recorded: list[Run] = []
        self.acknowledged: list[str] = []
        self._out = clone.path.parent / f"{clone.path.name}.out"
        self._left = clone.path.parent / f"{clone.path.name}.left"
        self._left.mkdir()

    def start(self, *, with_another: bool) -> int:
        """Start a sync; a descriptor that is readable once it has ended."""
        if with_another:
            run = rich_run(f"{self.clone.path.name}-{len(self.recorded)}")
            self.clone.record(run)
            self.recorded.append(run)
        with self._out.open("wb") as out:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "perfci",
                    "history",
                    "sync",
                    "--json",
                    "--store",
                    f"../{self.clone.path.name}.db",
                ],
                cwd=self.clone.path,
                env=scratch.environment(self.clone.path, {"TMPDIR": str(self._left)}),
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return os.pidfd_open(self.process.pid)

    def collect(self) -> None:
        """Take in what a sync that ended by itself says."""
        code = self.process.wait()
        said = self._out.read_text()
        assert code == 0, said
        exchange = json.loads(said[said.index("{\n") :])
        assert exchange["refused"] == exchange["foreign"] == []
        self.acknowledged += exchange["sent"]

    def kill(self, *, with_its_git: bool) -> None:
        """As a machine goes down, or as one process is taken by itself."""
        kill = os.killpg if with_its_git else os.kill
        kill(self.process.pid, signal.SIGKILL)
        self.process.wait()


def _next_to_end(running: dict[int, _Syncing]) -> _Syncing:
    descriptor = select.select(list(running), [], [])[0][0]
    os.close(descriptor)
    return running.pop(descriptor)


def _storm(folder: Path, clones: int, kills: int) -> int:
    """As often as one of the syncs ends, another one is killed, and both clones start anew.

    Returns how many runs were acknowledged.
    """
    chance = random.Random(20260301)
    remote = make_remote(folder)
    # What serves the remote is on another machine, and lives on.
    scratch.git(remote, "config", "gc.auto", "0")
    syncing = [_Syncing(Clone.make(folder / f"c{index}", remote)) for index in range(clones)]
    for each in syncing:
        path = each.clone.path
        scratch.git(path, "config", "remote.origin.receivepack", "setsid git receive-pack")
        scratch.git(path, "config", "remote.origin.uploadpack", "setsid git upload-pack")
    running = {each.start(with_another=True): each for each in syncing}
    for _ in range(kills):
        ended = _next_to_end(running)
        ended.collect()
        descriptor = chance.choice(list(running))
        os.close(descriptor)
        killed = running.pop(descriptor)
        killed.kill(with_its_git=chance.random() < 0.7)
        for each in (ended, killed):
            running[each.start(with_another=True)] = each
    while running:
        _next_to_end(running).collect()
    for each in syncing:
        each.start(with_another=False)
        each.collect()

    recorded = {run.run_id: run for each in syncing for run in each.recorded}
    acknowledged = [run_id for each in syncing for run_id in each.acknowledged]
    assert len(acknowledged) == len(set(acknowledged))
    assert set(acknowledged) <= set(recorded)
    assert changes_in(remote) == sorted(f"A 2026-03/{each}.json.gz" for each in recorded)
    assert scratch.git(remote, "rev-list", "--merges", BRANCH) == ""
    scratch.git(remote, "fsck", "--full", "--strict")
    for each in syncing:
        assert each.clone.runs() == recorded
    return len(acknowledged)


def test_a_few_clones_a_few_kills(tmp_path: Path) -> None:
    assert _storm(tmp_path, clones=4, kills=6) > 6


@pytest.mark.long
@pytest.mark.timeout(900)
def test_sixteen_clones_a_hundred_kills(tmp_path: Path) -> None:
    assert _storm(tmp_path, clones=16, kills=100) > 100
