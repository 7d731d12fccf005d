"""A project with a remote, as a pipeline clones it: two commits on main, and what tests change."""

from dataclasses import dataclass
from pathlib import Path

import scratch

_SETTINGS = '[tool.perfci.ci]\nrunners = ["h200", "a100"]\n'


@dataclass(frozen=True)
class Place:
    """A bare remote, where its commits are made, and the SHAs of its first and second one."""

    remote: Path
    work: Path
    first: str
    base: str

    def change(self, path: str, text: str, branch: str = "topic") -> str:
        """A commit that changes one file on a branch, pushed."""
        if branch != scratch.git(self.work, "branch", "--show-current"):
            scratch.git(self.work, "switch", "-q", "-c", branch)
        file = self.work / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return self.commit("Change")

    def commit(self, message: str) -> str:
        sha = scratch.commit_all(self.work, message)
        scratch.git(self.work, "push", "-q", "--force", "origin", "HEAD")
        return sha

    def clone(self, branch: str) -> Path:
        """What actions/checkout leaves: one commit, detached."""
        path = self.work.parent / "clone"
        depth = ("--depth=1", "--no-tags", "--branch", branch)
        scratch.git(path.parent, "clone", "-q", *depth, f"file://{self.remote}", str(path))
        scratch.git(path, "switch", "-q", "--detach")
        return path


def make_place(folder: Path) -> Place:
    """A project with one kernel and its remote."""
    work, remote = folder / "work", folder / "remote.git"
    scratch.quick(work)
    with (work / "pyproject.toml").open("a") as file:
        file.write(_SETTINGS)
    scratch.write_kernel(work)
    scratch.git(work, "init", "-q")
    scratch.git(folder, "init", "-q", "--bare", str(remote))
    scratch.git(work, "remote", "add", "origin", str(remote))
    first = scratch.commit_all(work, "one")
    (work / "README.md").write_text("Kernels.\n")
    base = scratch.commit_all(work, "two")
    scratch.git(work, "push", "-q", "origin", "main")
    return Place(remote, work, first, base)
