"""What GitHub runs: actions pinned to commits, least permissions, nothing pasted into a shell."""

import re
from pathlib import Path

import pytest

WORKFLOWS = sorted((Path(__file__).parent.parent / ".github" / "workflows").glob("*.yml"))
_PINNED = re.compile(r"uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
_RUN = re.compile(r"^( *)(?:- )?run: (.*(?:\n(?:\1  .*|\s*)$)*)", re.MULTILINE)


@pytest.fixture(params=WORKFLOWS, ids=lambda path: path.name)
def text(request: pytest.FixtureRequest) -> str:
    """The text of one workflow."""
    return str(request.param.read_text(encoding="utf-8"))


def test_there_are_workflows() -> None:
    assert {path.name for path in WORKFLOWS} >= {"ci.yml", "perf.yml"}


def test_actions_are_pinned_to_commits(text: str) -> None:
    used = [line for line in text.splitlines() if "uses:" in line]
    assert used
    assert [line for line in used if not _PINNED.search(line)] == []


def test_nothing_is_permitted_but_what_a_job_names(text: str) -> None:
    assert re.search(r"^permissions: \{\}$", text, re.MULTILINE)
    assert "pull_request_target" not in text
    assert set(re.findall(r"^ +([\w-]+): (?:write|read)$", text, re.MULTILINE)) <= {"contents"}
    assert ": write" not in text


def test_no_expression_is_pasted_into_a_shell(text: str) -> None:
    scripts = [match[2] for match in _RUN.finditer(text)]
    assert len(scripts) == len(re.findall(r"\brun: ", text))
    assert [script for script in scripts if "${{" in script] == []


def test_code_of_strangers_does_not_reach_a_runner_of_ones_own(text: str) -> None:
    assert not ("self-hosted" in text and "pull_request" in text)
