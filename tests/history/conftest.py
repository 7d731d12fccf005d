import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from records import rich_run
from remotes import Clone, make_remote

from perfci.history.model import Run


@pytest.fixture
def make_run() -> Callable[..., Run]:
    """A builder of rich runs: give an id, and whatever is to differ."""
    return rich_run


@dataclass(frozen=True)
class Repository:
    """A real git repository for tests; every commit gets a later date unless told otherwise."""

    path: Path

    def git(self, *arguments: str, **environment: str) -> str:
        command = ["git", "-C", str(self.path), *arguments]
        ended = subprocess.run(
            command, check=True, capture_output=True, env={**ENVIRONMENT, **environment}
        )
        return ended.stdout.decode().strip()

    def commit(self, subject: str = "change", *, at: int = 1_700_000_000, file: str = "f") -> str:
        with (self.path / file).open("a") as stream:
            stream.write(subject + "\n")
        self.git("add", "--all")
        date = f"{at} +0200"
        self.git("commit", "-qm", subject, GIT_COMMITTER_DATE=date, GIT_AUTHOR_DATE=date)
        return self.git("rev-parse", "HEAD")

    def write(self, name: str, text: str) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def clone(self, name: str, *options: str) -> "Repository":
        target = self.path.parent / name
        self.git("clone", "-q", *options, f"file://{self.path}", str(target))
        return Repository(target)


ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
}


@pytest.fixture
def make_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Repository]:
    """A builder of repositories below ``tmp_path``, away from the user's own configuration."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")

    def build(name: str = "repository", *options: str) -> Repository:
        repository = Repository(tmp_path / name)
        repository.path.mkdir()
        repository.git("init", "-q", "--initial-branch=main", *options)
        return repository

    return build


@pytest.fixture
def repository(make_repository: Callable[..., Repository]) -> Repository:
    """An empty repository."""
    return make_repository()


@pytest.fixture
def remote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty bare repository, away from the user's own configuration."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    return make_remote(tmp_path)


@pytest.fixture
def clone(remote: Path) -> Callable[..., Clone]:
    """A builder of clones by name."""
    return lambda name="a": Clone.make(remote.parent / name, remote)
