"""The linters of workflows find what is planted, and nothing in what there is."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from projects import ROOT

_PROGRAMS = Path(sys.executable).parent
_PLANTED = """\
name: Planted
on: push
permissions: {}
jobs:
  one:
    runs-on: ubuntu-24.04
    steps:
      - uses: actions/checkout@v4
      - run: echo "${{ github.event.head_commit.message }}"
"""


def _lint(program: str, *arguments: str, folder: Path = ROOT) -> tuple[int, str]:
    if not (_PROGRAMS / program).exists():
        pytest.skip(f"{program} is not installed")
    ended = subprocess.run(
        [str(_PROGRAMS / program), *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return ended.returncode, ended.stdout + ended.stderr


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """A repository with a workflow that is wrong."""
    folder = tmp_path / ".github/workflows"
    folder.mkdir(parents=True)
    (folder / "planted.yml").write_text(_PLANTED)
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    return tmp_path


def test_actionlint(planted: Path) -> None:
    assert _lint("actionlint") == (0, "")
    code, found = _lint("actionlint", folder=planted)
    assert code == 1
    assert "potentially untrusted" in found
    assert 'runtime "node20" is deprecated' in found


def test_actionlint_of_the_action(tmp_path: Path) -> None:
    """It takes an action for a workflow: so the steps are handed to it as those of one."""
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    inputs = {name: {"type": "string"} for name in action["inputs"]}
    job = {
        "runs-on": "ubuntu-24.04",
        "timeout-minutes": 10,
        "outputs": {name: each["value"] for name, each in action["outputs"].items()},
        "steps": action["runs"]["steps"],
    }
    workflow = {
        "name": "Action",
        "on": {"workflow_call": {"inputs": inputs}},
        "permissions": {},
        "jobs": {"action": job},
    }
    path = tmp_path / "workflow.yml"
    path.write_text(yaml.safe_dump(workflow))
    assert _lint("actionlint", str(path)) == (0, "")
    job["outputs"]["verdict"] = "${{ steps.nothing.outputs.verdict }}"
    path.write_text(yaml.safe_dump(workflow))
    assert _lint("actionlint", str(path))[0] == 1


def test_zizmor(planted: Path) -> None:
    arguments = ("--offline", "--no-progress", "--quiet", ".")
    code, found = _lint("zizmor", *arguments)
    assert code == 0, found
    code, found = _lint("zizmor", *arguments, folder=planted)
    assert code > 0
    for each in ("template-injection", "unpinned-uses", "artipacked"):
        assert f"[{each}]" in found
