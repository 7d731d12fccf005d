"""A project on a GitHub of the tests' own: perfci itself, with one small kernel."""

import json
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import events
import planted
import scratch
from forge import Finished, Forge
from github_double import MEMBER, REPOSITORY, TOKEN, GitHubDouble, Pull, serving
from remotes import make_remote

ROOT = Path(__file__).parents[2]
VARIANT = "kernels/axpb/plain.cpp"
_CREATED_AT = "2026-11-02T09:00:00Z"
_LEFT_OUT = ("kernels/", "tests/", "docs/", "examples/", "benchmarks/")


@dataclass
class Project:
    """The work of somebody who pushes, the remote, and the GitHub that sees it."""

    folder: Path
    remote: Path
    work: Path
    github: GitHubDouble
    forge: Forge
    base: str

    def push(self, text: str) -> Finished:
        """Push another text of the variant to main, and let the workflow run about it."""
        head = planted.commit(self.work, "Change", text)
        scratch.git(self.work, "push", "-q", "origin", "main")
        return self._run("push", {events.BASE: self.base, events.HEAD: head}, head)

    def request(
        self, text: str, name: str = "pull_request", repository: str = REPOSITORY
    ) -> Finished:
        """Let both workflows run about a pull request with another text of the variant.

        A label that the event tells of was put on by the member who has started the run.
        """
        scratch.git(self.work, "switch", "-q", "-c", "topic")
        head = planted.commit(self.work, "Change", text)
        scratch.git(self.work, "switch", "-q", "--detach", self.base)
        merge = planted.merge(self.work, "topic", "Merge topic into main")
        refs = [f"{head}:refs/pull/7/head", f"{merge}:refs/pull/7/merge"]
        scratch.git(self.work, "push", "-q", "origin", *refs)
        patch = scratch.git(self.work, "diff", "-U3", self.base, head, "--", VARIANT)
        file = {"filename": VARIANT, "status": "modified", "patch": patch[patch.index("@@") :]}
        pull = Pull(7, head, "topic", repository, files=[file])
        if name.endswith("_labeled"):
            pull.labelled = [("perf-approved", _CREATED_AT, MEMBER)]
        self.github.pulls[7] = pull
        self._tell("requested", head, repository)
        shas = {events.BASE: self.base, events.HEAD: head, events.MERGE: merge}
        finished = self._run(name, shas, merge)
        self._tell("completed", head, repository, conclusion=finished.conclusion)
        return finished

    def dispatch(self, name: str) -> Finished:
        """Ask for something by hand at what main is now; what a range begins at is the base."""
        head = scratch.git(self.remote, "rev-parse", "main")
        return self._run(name, {events.BASE: self.base, events.HEAD: head}, head)

    def _run(self, name: str, shas: dict[str, str], sha: str) -> Finished:
        event = events.github(name, self.folder, shas=shas)
        finished = self.forge.run("perf.yml", {**event, "GITHUB_SHA": sha})
        assert finished is not None
        return finished

    def _tell(self, action: str, head: str, repository: str, **run: Any) -> None:
        """Let the reporting workflow run about the measuring one."""
        shas = {events.HEAD: head}
        event = events.github(f"workflow_run_{action}", self.folder, shas=shas)
        path = Path(event["GITHUB_EVENT_PATH"])
        payload = json.loads(path.read_text())
        payload["workflow_run"].update(
            run_attempt=1,
            created_at=_CREATED_AT,
            run_started_at=_CREATED_AT,
            actor={"id": MEMBER},
            head_repository={"full_name": repository},
            **run,
        )
        path.write_text(json.dumps(payload))
        finished = self.forge.run("perf-report.yml", {**event, "GITHUB_SHA": self.base})
        assert finished is not None
        assert finished.results == {"report": "success"}, finished.printed

    @property
    def comment(self) -> str:
        """The one comment that there is."""
        (comment,) = self.github.comments
        return str(comment["body"])

    @property
    def checks(self) -> list[str]:
        """How each check run has ended, or that it has not."""
        return [each.get("conclusion") or each["status"] for each in self.github.check_runs]


@contextmanager
def make_project(
    folder: Path, variant: str, runners: Sequence[str] = ("h200",)
) -> Iterator[Project]:
    """A project with one variant at main, measured on runners that have no GPU."""
    remote, work = make_remote(folder), folder / "work"
    scratch.git(remote, "config", "uploadpack.allowAnySHA1InWant", "true")
    copy_perfci(work)
    _write_settings(work, runners)
    scratch.write_kernel(work, plain__cpp=variant)
    scratch.git(work, "init", "-q")
    scratch.git(work, "remote", "add", "origin", str(remote))
    base = scratch.commit_all(work, "One")
    scratch.git(work, "push", "-q", "origin", "main")
    scratch.git(remote, "symbolic-ref", "HEAD", "refs/heads/main")
    (folder / "forge").mkdir()
    with serving() as github:
        forge = Forge(
            folder=folder / "forge",
            remote=remote,
            vars={"PERFCI_GPU_RUNNER": "true", "PERFCI_DEVICE": "cpu"},
            variables={"GITHUB_API_URL": github.url},
            token=TOKEN,
        )
        yield Project(folder, remote, work, github, forge, base)


def copy_perfci(target: Path) -> None:
    """What it takes to install perfci, as git has it."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for name in filter(None, listed.split("\0")):
        if not name.startswith(_LEFT_OUT) and (ROOT / name).exists():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name, follow_symlinks=False)


def _write_settings(root: Path, runners: Sequence[str]) -> None:
    """Settings that make a run quick; any version of what is needed will do."""
    (root / "constraints.txt").write_text("")
    quick = scratch.quick(root.parent / "settings") / "pyproject.toml"
    with (root / "pyproject.toml").open("a") as file:
        file.write(f"\n{quick.read_text()}\n[tool.perfci.ci]\nrunners = {json.dumps(runners)}\n")
