import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from perfci.history.model import (
    Clock,
    Commit,
    Contract,
    Device,
    Direction,
    Environment,
    Measurement,
    Metric,
    Pass,
    Run,
    Status,
    Stop,
)

START = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
CONTRACT = Contract(timer="cpu", version=1, l2="none", warm_up="adaptive", inputs="rotating")


def _measurements() -> tuple[Measurement, ...]:
    clocks = (Clock(sm_mhz=1980.0, throttle_reasons=("power cap", "heat")), Clock())
    timed = Measurement(
        kernel="rope",
        case="headline",
        variant="fused",
        contract=CONTRACT,
        status=Status.PASSED,
        passes=(
            Pass(index=1, samples_ns=(10.1, 1e-3 / 3, 12.25), loops=7, clocks=clocks),
            Pass(index=0, samples_ns=(11.0,), stop=Stop.OUT_OF_TIME),
        ),
        metrics=(
            Metric(name="rms_error", value=1 / 3, unit="", direction=Direction.LOWER),
            Metric(name="bandwidth", value=2.5e12, unit="B/s", direction=Direction.HIGHER),
        ),
        workload_digest="aa11",
        source_digest="bb22",
        identity=(("device code", "cc33"), ("registers", "32")),
    )
    checked = Measurement(
        kernel="rope", case="one_token", variant="fused", contract=None, status=Status.PASSED
    )
    failed = Measurement(
        kernel="add",
        case="headline",
        variant="plain",
        contract=CONTRACT,
        status=Status.BUILD_FAILED,
        message="line one: 'µ'\n\tline two",
    )
    return timed, checked, failed


@pytest.fixture
def make_run() -> Callable[..., Run]:
    """A builder of rich runs: give an id, and whatever is to differ."""

    def build(
        run_id: str = "r1",
        *,
        sha: str = "a" * 40,
        testbed: str = "bench-1",
        hours: float = 0,
        dirty: str | None = None,
        measurements: tuple[Measurement, ...] | None = None,
    ) -> Run:
        device = Device(kind="cuda", model="NVIDIA H200", uuid="GPU-1", memory_bytes=2**37)
        return Run(
            run_id=run_id,
            commit=Commit(
                sha=sha,
                committed_at=START - timedelta(days=1),
                parents=("b" * 40, "c" * 40),
                position=41,
                branch="main",
                subject="Fuse <rope> & 'add'",
                dirty=dirty,
            ),
            environment=Environment(
                testbed=testbed,
                device=device,
                torch="2.13.0",
                cuda="13.0",
                python="3.11",
                os="Linux",
                host="h",
            ),
            started_at=START + timedelta(hours=hours),
            duration_s=12.5,
            trigger="push",
            attempt=2,
            perfci_version="0.1.0",
            measurements=_measurements() if measurements is None else measurements,
        )

    return build


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
