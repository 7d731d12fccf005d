"""action.yml, step by step, in a repository that has kernels and nothing of perfci."""

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import events
import planted
import pytest
import scratch
import yaml
from forge import Forge
from github_double import TOKEN, GitHubDouble, Pull, serving
from projects import copy_perfci
from remotes import make_remote
from steps import Steps, run_action

from perfci.ci.parcel import read_parcel
from perfci.ci.verdict_file import read_verdict_file
from perfci.history.stores import open_store

pytest.importorskip("setuptools", reason="needs setuptools to install perfci")
pytest.importorskip("github", reason="needs PyGithub to report")

_WRONG = scratch.PLAIN.replace("+ b;", "- b;")


@dataclass
class User:
    """Somebody else's repository with a pull request, and a job of theirs that uses the action."""

    job: Steps
    action: Path
    base: str
    head: str

    def use(self, **inputs: str) -> tuple[subprocess.CompletedProcess[str], dict[str, str]]:
        """Carry out the action: how it ended, and its outputs."""
        action = yaml.safe_load((self.action / "action.yml").read_text())
        return run_action(action, self.action, self.job, inputs)

    @property
    def packages(self) -> set[str]:
        """What is in this job's own Python, whose torch is the machine's."""
        site = next((self.job.machine.folder / "python/lib").glob("python3*/site-packages"))
        return {each.name for each in site.iterdir()}


def _make_user(folder: Path, event: str, variables: dict[str, str]) -> User:
    remote, work = make_remote(folder), scratch.quick(folder / "work")
    scratch.write_kernel(work)
    scratch.git(work, "init", "-q")
    scratch.git(work, "remote", "add", "origin", f"file://{remote}")
    base = scratch.commit_all(work, "One")
    scratch.git(work, "push", "-q", "origin", "main")
    scratch.git(work, "switch", "-q", "-c", "topic")
    head = planted.commit(work, "Subtract", _WRONG)
    scratch.git(work, "push", "-q", "origin", "topic")
    shas = {events.BASE: base, events.HEAD: head}
    (folder / "forge").mkdir()
    forge = Forge(folder / "forge", remote)
    machine = forge.make_machine({**events.github(event, folder, shas=shas), **variables})
    machine.workspace.rmdir()
    scratch.git(folder, "clone", "-q", f"file://{remote}", str(machine.workspace))
    scratch.git(machine.workspace, "checkout", "-q", "--detach", head)
    copy_perfci(folder / "action")
    return User(Steps(machine, {"github": {"token": TOKEN}}, {}), folder / "action", base, head)


def _give_python(user: User) -> None:
    machine = user.job.machine
    machine.make_python(machine.folder / "python")
    machine.paths.append(str(machine.folder / "python/bin"))


@pytest.fixture
def github() -> Iterator[GitHubDouble]:
    with serving() as double:
        yield double


@pytest.mark.long
def test_a_pull_request_that_is_wrong(github: GitHubDouble, tmp_path: Path) -> None:
    user = _make_user(tmp_path, "pull_request", {"GITHUB_API_URL": github.url})
    github.pulls[7] = Pull(7, user.head, "topic")
    _give_python(user)
    before = user.packages
    ended, outputs = user.use(device="cpu", comment="true")
    assert ended.returncode == 1
    assert outputs["verdict"] == "failure", ended.stdout
    folder = Path(outputs["paths"])
    assert read_verdict_file(folder / "verdict.json").exit_code == 1
    assert (folder / "parcel/gate.log").exists()
    assert user.job.summary.count("✗ perfci: 3 incorrect") == 1
    assert [each["conclusion"] for each in github.check_runs] == ["failure"]
    (comment,) = github.comments
    assert "✗ perfci: 3 incorrect" in comment["body"]
    assert {each.partition("-")[0] for each in user.packages - before} == {"perfci"}


@pytest.mark.long
def test_what_is_asked_for_is_done(tmp_path: Path) -> None:
    user = _make_user(tmp_path, "push", {})
    _give_python(user)
    asked = {"command": "gate", "base": f"{user.base}", "kernels": "kernels", "thresholds": "0.9"}
    ended, outputs = user.use(device="cpu", store="kept.db", **asked)
    assert outputs["verdict"] == "failure", ended.stdout
    (gate,) = read_parcel(Path(outputs["paths"]) / "parcel").gates
    assert (gate.base.sha, gate.head.sha) == (user.base, user.head)
    ended, outputs = user.use(device="cpu", store="kept.db", command="run")
    assert outputs["verdict"] == "failure", ended.stdout
    with open_store(f"sqlite:///{user.job.machine.workspace}/kept.db") as store:
        assert [each.commit.sha for each in store.runs()] == [user.head]
    ended, outputs = user.use(device="cpu", thresholds="much")
    assert "PERFCI_THRESHOLD" in ended.stdout
    assert outputs["verdict"] == ""


def test_nothing_is_installed_where_there_is_no_torch(tmp_path: Path) -> None:
    user = _make_user(tmp_path, "push", {})
    _give_python(user)
    site = next((user.job.machine.folder / "python/lib").glob("python3*/site-packages"))
    (site / "machine.pth").unlink()
    ended, outputs = user.use()
    assert ended.returncode == 1
    assert "::error::this job's Python has no torch" in ended.stdout
    assert outputs["verdict"] == ""
    assert user.packages == set()
