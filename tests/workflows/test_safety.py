"""What GitHub runs: actions pinned to commits, least permissions, nothing pasted into a shell."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from expressions import find_expressions
from projects import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
_PINNED = re.compile(r"uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
_WRITES = {
    "perf.yml: record": {"contents": "write"},
    "perf-report.yml: report": {
        "actions": "read",
        "checks": "write",
        "contents": "read",
        "pull-requests": "write",
    },
}
"""Which jobs may do more than read what is checked out."""


@pytest.fixture(params=WORKFLOWS, ids=lambda path: path.name)
def path(request: pytest.FixtureRequest) -> Path:
    """One workflow."""
    return Path(request.param)


def _read(path: Path) -> dict[Any, Any]:
    return dict(yaml.safe_load(path.read_text()))


def _jobs() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in WORKFLOWS:
        for name, job in _read(path)["jobs"].items():
            yield f"{path.name}: {name}", job


def _job(workflow: str, name: str) -> dict[str, Any]:
    return dict(_read(ROOT / ".github/workflows" / workflow)["jobs"][name])


def test_there_are_workflows() -> None:
    assert {path.name for path in WORKFLOWS} == {"ci.yml", "perf.yml", "perf-report.yml"}


def test_actions_are_pinned_to_commits(path: Path) -> None:
    used = [line for line in path.read_text().splitlines() if "uses:" in line]
    assert used
    assert [line for line in used if not _PINNED.search(line)] == []


def test_nothing_is_permitted_but_what_a_job_names(path: Path) -> None:
    workflow = _read(path)
    assert workflow["permissions"] == {}
    assert "pull_request_target" not in workflow[True]
    for name, job in workflow["jobs"].items():
        allowed = _WRITES.get(f"{path.name}: {name}", {"contents": "read"})
        assert job["permissions"] == allowed


@pytest.mark.parametrize(("name", "job"), list(_jobs()), ids=[name for name, _ in _jobs()])
def test_a_job_ends_leaves_no_token_and_pastes_nothing(name: str, job: dict[str, Any]) -> None:
    assert job["timeout-minutes"] <= 240
    for step in job["steps"]:
        assert list(find_expressions(step.get("run", ""))) == []
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False
    assert "secrets" not in str(job)


def test_the_guide_names_what_the_action_takes_and_gives() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    guide = (ROOT / "docs/ci.md").read_text().partition("### The action")[2]
    named = set(re.findall(r"`(\w+)`", guide.partition("\n## ")[0]))
    assert {*action["inputs"], *action["outputs"]} <= named


def test_the_action_pastes_nothing_and_uses_no_other() -> None:
    steps = yaml.safe_load((ROOT / "action.yml").read_text())["runs"]["steps"]
    assert [list(find_expressions(each["run"])) for each in steps] == [[]] * len(steps)
    with_token = [each["name"] for each in steps if "token" in str(each.get("env"))]
    assert with_token == ["Say that it is being measured", "Say the verdict"]


def test_a_machine_of_ones_own_is_handed_no_token() -> None:
    """Code of a fork can come there, once somebody has approved it."""
    own = [name for name, job in _jobs() if "self-hosted" in job["runs-on"]]
    assert own == ["perf.yml: measure"]
    assert "github.token" not in str(_job("perf.yml", "measure"))


def test_what_may_write_checks_out_the_default_branch_alone() -> None:
    for name in _WRITES:
        workflow, _, job = name.partition(": ")
        steps = _job(workflow, job)["steps"]
        assert "ref" not in steps[0]["with"]
    assert "github.ref == 'refs/heads/main'" in _job("perf.yml", "record")["if"]


def test_a_run_that_is_cancelled_leaves_no_verdict_that_passes() -> None:
    """A job that is skipped passes for a check that is required."""
    assert _job("perf.yml", "verdict")["if"].startswith("${{ always() && ")


def test_git_finds_the_token_in_the_variables_of_the_step_that_records() -> None:
    step = next(each for each in _job("perf.yml", "record")["steps"] if "env" in each)
    variables = {**step["env"], "GITHUB_TOKEN": "token-1", "GIT_CONFIG_GLOBAL": "/dev/null"}
    asked = "protocol=https\nhost=github.example\n\n"
    filled = subprocess.run(
        ["git", "credential", "fill"],
        input=asked,
        env={**variables, "GIT_CONFIG_NOSYSTEM": "1", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert {"username=x-access-token", "password=token-1"} <= set(filled)
