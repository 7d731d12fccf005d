"""The recipes of docs/recipes do what they say, line by line, on a repository with a remote."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import events
import pytest
import scratch
import yaml
from remotes import changes_in, make_remote

_DOCS = Path(__file__).parents[1] / "docs"
_RECIPES = _DOCS / "recipes"
_WRONG = scratch.PLAIN.replace("+ b;", "- b;")
pytestmark = pytest.mark.long


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    """A bare repository with a kernel at main."""
    remote, root = make_remote(tmp_path), tmp_path / "root"
    scratch.quick(root)
    with (root / "pyproject.toml").open("a") as file:
        file.write('\n[tool.perfci.ci]\nrunners = ["h200"]\n')
    scratch.write_kernel(root)
    scratch.git(root, "init", "-q")
    scratch.git(root, "remote", "add", "origin", str(remote))
    scratch.commit_all(root, "One")
    scratch.git(root, "push", "-q", "origin", "main")
    scratch.git(remote, "symbolic-ref", "HEAD", "refs/heads/main")
    return remote


@pytest.fixture
def machine(tmp_path: Path) -> dict[str, str]:
    """The variables of a machine that has perfci, and no GPU that anybody may use."""
    variables = {"CUDA_VISIBLE_DEVICES": "", "GIT_CONFIG_GLOBAL": "/dev/null"}
    return scratch.environment_with_perfci(tmp_path / "machine", variables)


def _run(
    command: list[str], folder: Path, variables: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, env=variables, capture_output=True, text=True, check=False
    )


class _Pipeline:
    """A pipeline as GitLab runs it: each job in a clone of its own, with what others left."""

    def __init__(
        self, remote: Path, machine: Mapping[str, str], variables: Mapping[str, str]
    ) -> None:
        self.jobs: dict[str, Any] = yaml.safe_load((_RECIPES / "gitlab-ci.yml").read_text())
        self._remote = remote
        self.artefacts = remote.parent / "artifacts"
        project = variables["CI_PROJECT_PATH"]
        address = f"https://perfci:token-1@{variables['CI_SERVER_HOST']}/{project}.git"
        self._variables = {
            **machine,
            **variables,
            "PERF_HISTORY_TOKEN": "token-1",
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": f"url.{remote}.insteadOf",
            "GIT_CONFIG_VALUE_0": address,
        }

    def run(self, name: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a job's lines in a fresh clone of one commit, and keep its artefacts."""
        job = self.jobs[name]
        folder = self._remote.parent / name
        shutil.rmtree(folder, ignore_errors=True)
        scratch.git(folder.parent, "clone", "-q", "--depth=1", f"file://{self._remote}", name)
        sha = self._variables["CI_COMMIT_SHA"]
        scratch.git(folder, "fetch", "-q", "--depth=1", "origin", sha)
        scratch.git(folder, "checkout", "-q", "--detach", sha)
        if self.artefacts.exists():
            shutil.copytree(self.artefacts, folder, dirs_exist_ok=True)
        lines = "\n".join(job["script"])
        ended = _run(
            ["bash", "-eo", "pipefail", "-c", lines], folder, {**self._variables, **variables}
        )
        for each in job.get("artifacts", {}).get("paths", []):
            if (folder / each).exists():
                shutil.copytree(folder / each, self.artefacts / each, dirs_exist_ok=True)
        return ended


def _push(remote: Path, subject: str, *, branch: str = "main", **files: str) -> str:
    root = remote.parent / "root"
    scratch.git(root, "switch", "-q", "-C", branch)
    scratch.write_kernel(root, **files)
    sha = scratch.commit_all(root, subject)
    scratch.git(root, "push", "-q", "origin", branch)
    return sha


def _pipeline(remote: Path, machine: Mapping[str, str], event: str, sha: str) -> _Pipeline:
    shas = {events.HEAD: sha, events.BASE: scratch.git(remote, "rev-parse", f"{sha}~1")}
    variables = events.gitlab(event, shas=shas, CI_SERVER_HOST="gitlab.example")
    return _Pipeline(remote, machine, variables)


@pytest.mark.parametrize(("event", "runs"), [("push", 1), ("schedule", 3)])
def test_gitlab_records_what_is_on_the_default_branch(
    remote: Path, machine: dict[str, str], event: str, runs: int
) -> None:
    sha = _push(remote, "Two", plain__cpp=scratch.PLAIN + "// two\n")
    pipeline = _pipeline(remote, machine, event, sha)
    measured = pipeline.run("measure", RUNNER="h200")
    assert measured.returncode == 0, measured.stderr
    assert pipeline.run("verdict").returncode == 0
    recorded = pipeline.run("record")
    assert recorded.returncode == 0, recorded.stderr
    things = "run" if runs == 1 else "runs"
    assert recorded.stdout.endswith(f"{runs} {things} sent, 0 received\n")
    assert len(_added(remote)) == runs
    ended = _run(["perfci", "history", "sync"], remote.parent / "root", machine)
    assert ended.stdout == f"0 runs sent, {runs} received\n"
    listed = _run(["perfci", "history", "ls", "--json"], remote.parent / "root", machine)
    assert [each["commit"]["sha"] for each in json.loads(listed.stdout)] == [sha] * runs


def test_gitlab_turns_red_for_a_merge_request_that_is_wrong(
    remote: Path, machine: dict[str, str]
) -> None:
    sha = _push(remote, "Subtract", branch="topic", plain__cpp=_WRONG)
    pipeline = _pipeline(remote, machine, "merge_request", sha)
    assert pipeline.run("measure", RUNNER="h200").returncode == 1
    verdict = pipeline.run("verdict")
    assert verdict.returncode == 1
    assert "incorrect" in (pipeline.artefacts / "verdict/comment.md").read_text()


def test_gitlab_takes_no_silence_for_green(remote: Path, machine: dict[str, str]) -> None:
    sha = _push(remote, "Two", branch="topic", plain__cpp=scratch.PLAIN + "// two\n")
    pipeline = _pipeline(remote, machine, "merge_request", sha)
    verdict = pipeline.run("verdict")
    assert verdict.returncode == 9, verdict.stderr
    assert "h200" in verdict.stdout


def test_gitlab_hands_the_token_to_the_job_that_records_alone() -> None:
    recipe = yaml.safe_load((_RECIPES / "gitlab-ci.yml").read_text())
    jobs = {name: job for name, job in recipe.items() if "script" in job}
    assert set(jobs) == {"measure", "verdict", "record"}
    assert {job["stage"] for job in jobs.values()} == set(recipe["stages"])
    assert [name for name in jobs if "TOKEN" in str(jobs[name])] == ["record"]
    (rule,) = jobs["record"]["rules"]
    assert rule["if"] == "$CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH"


def _added(remote: Path) -> list[str]:
    branches = scratch.git(
        remote, "branch", "--list", "--format=%(refname:short)", "perf-history-*"
    )
    return [change for each in branches.split() for change in changes_in(remote, each)]


def _crontab() -> tuple[str, str]:
    """The path and the command of the crontab in the documentation."""
    text = (_DOCS / "other-ci.md").read_text()
    path = re.search(r"^PATH=(.*)$", text, re.MULTILINE)
    command = re.search(r"^17 3 \* \* \*  (.*)$", text, re.MULTILINE)
    assert path
    assert command
    assert all(found[0] in (_RECIPES / "nightly.sh").read_text() for found in (path, command))
    return path[1], command[1]


def _night(remote: Path) -> tuple[int, str]:
    """Let cron run its line with the variables that it has; the exit code and the log."""
    place = remote.parent
    shutil.copy(_RECIPES / "nightly.sh", place)
    path, command = _crontab()
    program = scratch.put_program(place / "cron-bin")
    variables = {
        "HOME": str(place),
        "SHELL": "/bin/sh",
        "PATH": path.replace("/opt/perfci/bin", str(program.parent)),
        "CUDA_VISIBLE_DEVICES": "",
        **{name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ},
    }
    ended = _run(["/bin/sh", "-c", command.replace("/srv/perf", str(place))], place, variables)
    assert ended.stdout + ended.stderr == ""
    return ended.returncode, (place / "nightly.log").read_text()


def test_cron_says_what_kept_it_from_measuring(remote: Path) -> None:
    scratch.git(remote.parent, "clone", "-q", str(remote), "kernels")
    _push(remote, "Break the settings", cases__toml="bench = 1\n")
    code, log = _night(remote)
    assert code == 3
    assert "cases.toml" in log
    assert _added(remote) == []


def test_cron_measures_records_and_shares(remote: Path, machine: dict[str, str]) -> None:
    scratch.git(remote.parent, "clone", "-q", str(remote), "kernels")
    clone = remote.parent / "kernels"
    scratch.git(clone, "remote", "set-head", "origin", "--delete")
    sha = _push(remote, "Two", plain__cpp=scratch.PLAIN + "// two\n")
    code, log = _night(remote)
    assert code == 0, log
    assert log.endswith("3 runs sent, 0 received\n")
    listed = _run(["perfci", "history", "ls", "--json"], clone, machine)
    assert {each["commit"]["sha"] for each in json.loads(listed.stdout)} == {sha}
    assert len(_added(remote)) == 3
