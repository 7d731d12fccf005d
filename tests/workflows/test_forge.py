"""The driver of workflows does what GitHub does, and refuses what it does not know."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import events
import pytest
import scratch
import yaml
from expressions import ExpressionError
from forge import Finished, Forge
from remotes import make_remote
from steps import UnknownError, read_values

Run = Callable[..., Finished | None]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs a workflow of some jobs about a push to main."""
    remote, work = make_remote(tmp_path), tmp_path / "work"
    (work / ".github/workflows").mkdir(parents=True)
    (tmp_path / "forge").mkdir()
    scratch.git(work, "init", "-q")

    def run(jobs: dict[str, Any], event: str = "push", **workflow: Any) -> Finished | None:
        whole = {"on": {"push": {"branches": ["main"]}}, "permissions": {}, **workflow}
        for job in jobs.values():
            job.update({"runs-on": "ubuntu-24.04", "timeout-minutes": 1, **job})
        text = yaml.safe_dump({**whole, "jobs": jobs}, sort_keys=False)
        (work / ".github/workflows/x.yml").write_text(text)
        sha = scratch.commit_all(work, "Workflow")
        scratch.git(work, "push", "-q", str(remote), "main")
        variables = events.github(event, tmp_path)
        return Forge(tmp_path / "forge", remote).run("x.yml", {**variables, "GITHUB_SHA": sha})

    return run


def test_a_job_needs_another_and_sees_its_outputs(run: Run) -> None:
    first = {
        "steps": [
            {"id": "say", "run": 'echo "word=a b" >> "$GITHUB_OUTPUT"; echo X=1 >> "$GITHUB_ENV"'},
            {"run": '[ "$X" = 1 ]'},
        ],
        "outputs": {"word": "${{ steps.say.outputs.word }}"},
    }
    second = {
        "needs": "first",
        "if": "needs.first.outputs.word == 'a b'",
        "steps": [{"run": "test $WORD = a", "env": {"WORD": "${{ needs.first.outputs.word }}"}}],
    }
    skipped = {"needs": "first", "if": "needs.first.outputs.word == 'b'", "steps": []}
    after = {"needs": ["second", "skipped"], "if": "always()", "steps": []}
    finished = run({"first": first, "second": second, "skipped": skipped, "after": after})
    assert finished is not None
    assert finished.results == {
        "first": "success",
        "second": "failure",  # the word is two words to a shell
        "skipped": "skipped",
        "after": "success",
    }, finished.printed


def test_after_a_step_has_failed_those_alone_run_that_ask_for_it(run: Run) -> None:
    steps = [
        {"name": "forgiven", "run": "false", "continue-on-error": True},
        {"name": "fails", "run": "false\ntrue"},
        {"name": "next", "run": "true"},
        {"name": "condition", "if": "github.ref == 'refs/heads/main'", "run": "true"},
        {"name": "failure", "if": "failure()", "run": "true"},
        {"name": "always", "if": "${{ always() }}", "run": "true"},
    ]
    finished = run({"job": {"steps": steps}})
    assert finished is not None
    job = finished.jobs["job"]
    assert job.steps is not None
    assert {each.name: each.outcome for each in job.steps.done} == {
        "forgiven": "forgiven",
        "fails": "failure",
        "next": "skipped",
        "condition": "skipped",
        "failure": "success",
        "always": "success",
    }
    assert job.result == "failure"


def test_a_pipe_fails_where_the_shell_is_named(run: Run) -> None:
    jobs = {"job": {"steps": [{"run": "false | true"}, {"run": "false | true", "shell": "bash"}]}}
    finished = run(jobs)
    assert finished is not None
    assert "false | true: success" in finished.printed
    assert "false | true: failure" in finished.printed


@pytest.mark.parametrize("event", ["push_new_branch", "pull_request"])
def test_a_workflow_starts_at_its_own_events(run: Run, event: str) -> None:
    assert run({"job": {"steps": []}}, event, on={"push": {"branches": ["other"]}}) is None


@pytest.mark.parametrize(
    ("job", "problem"),
    [
        ({"steps": [{"uses": "actions/cache@v4"}]}, "uses: actions/cache"),
        ({"steps": [{"run": "true", "timeout-minutes": 3}]}, "a step: timeout-minutes"),
        ({"steps": [{"run": "true", "shell": "pwsh"}]}, "shell: pwsh"),
        ({"steps": [{"run": "echo ${{ github.ref }}"}]}, "pasted"),
        ({"container": "image", "steps": []}, "container"),
        ({"runs-on": "windows-latest", "steps": []}, "runs-on"),
        ({"steps": [{"if": "hashFiles('x')", "run": "true"}]}, "hashFiles"),
        ({"steps": [{"run": "true", "env": {"X": "${{ secrets.X }}"}}]}, "secrets"),
        ({"if": "needs.nobody.result == 'success'", "steps": []}, "needs.nobody"),
        (
            {"steps": [{"uses": "actions/upload-artifact@x", "with": {"overwrite": True}}]},
            "upload-artifact: overwrite",
        ),
    ],
)
def test_what_is_not_known_is_refused(run: Run, job: dict[str, Any], problem: str) -> None:
    with pytest.raises((UnknownError, ExpressionError), match=problem):
        run({"job": job})


def test_values_of_several_lines() -> None:
    text = "one=1\ntwo<<MARK\na=b\n\nc\nMARK\nthree=x=y\n"
    assert read_values(text) == {"one": "1", "two": "a=b\n\nc", "three": "x=y"}
    with pytest.raises(UnknownError):
        read_values("two<<MARK\na")
