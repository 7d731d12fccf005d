"""Clones that exchange runs through a bare repository beside them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import scratch

from perfci.history.model import Run
from perfci.history.notes import Notes
from perfci.history.remote import open_remote
from perfci.history.stores import Store, open_store
from perfci.history.sync import Exchange, Sync

BRANCH = "perf-history-2026"


def make_remote(folder: Path, *options: str) -> Path:
    """A bare repository that serves single objects and parts of trees, as hosts of git do."""
    scratch.git(folder, "init", "-q", "--bare", *options, "remote.git")
    scratch.git(folder / "remote.git", "config", "uploadpack.allowFilter", "true")
    return folder / "remote.git"


@dataclass
class Clone:
    """A repository with a remote and a store of its own."""

    path: Path
    waits_s: list[float] = field(default_factory=list)

    @classmethod
    def make(cls, path: Path, remote: Path | str, *options: str) -> "Clone":
        path.mkdir()
        scratch.git(path, "init", "-q", *options)
        scratch.git(path, "remote", "add", "origin", str(remote))
        return cls(path)

    @contextmanager
    def store(self) -> Iterator[Store]:
        with open_store(f"sqlite:///{self.path.parent}/{self.path.name}.db") as store:
            yield store

    def record(self, *runs: Run) -> None:
        with self.store() as store:
            for each in runs:
                assert store.add(each)

    def runs(self) -> dict[str, Run]:
        with self.store() as store:
            return {each.run_id: store.run(each.run_id) for each in store.runs()}

    def sync(self, since: int = 2026, **options: Any) -> Exchange:
        with self.store() as store, open_remote(self.path, "origin") as remote:
            return Sync(
                store=store,
                remote=remote,
                base="perf-history",
                since=since,
                notes=Notes(self.path.parent / "notes", store.url),
                wait=self.waits_s.append,
                **{"observe": lambda *_: None, **options},
            ).run()


def files_in(remote: Path, branch: str = BRANCH) -> list[str]:
    """The paths in a branch."""
    return scratch.git(remote, "ls-tree", "-r", "-z", "--name-only", branch).split("\0")[:-1]


def changes_in(remote: Path, branch: str = BRANCH) -> list[str]:
    """What each commit of a branch did, sorted: ``A path`` for a file that was added."""
    log = ("log", "--format=", "--name-status", "--no-renames", "--root", branch)
    return sorted(each.replace("\t", " ") for each in scratch.git(remote, *log).splitlines())


def write_hook(remote: Path, name: str, script: str) -> None:
    """A hook of the remote."""
    path = remote / "hooks" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


class Checkout:
    """A working tree of a branch, by which anybody who may push can put anything into it."""

    def __init__(self, remote: Path, branch: str = BRANCH) -> None:
        self.path = remote.parent / "checkout"
        self._branch = branch
        scratch.git(remote.parent, "clone", "-q", str(remote), str(self.path))
        if scratch.git(remote, "branch", "--list", branch):
            scratch.git(self.path, "checkout", "-q", branch)
        else:
            scratch.git(self.path, "checkout", "-q", "--orphan", branch)

    def write(self, name: str, contents: bytes) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(contents)
        return path

    def push(self) -> str:
        sha = scratch.commit_all(self.path, "By hand")
        scratch.git(self.path, "push", "-q", "origin", f"HEAD:refs/heads/{self._branch}")
        return sha
