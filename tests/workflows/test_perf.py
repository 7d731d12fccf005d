"""perf.yml and perf-report.yml, step by step, from an event to what is recorded and said."""

import json
from collections.abc import Iterator
from pathlib import Path

import planted
import pytest
import scratch
from projects import Project, make_project

from perfci.dashboard.queries import read_overview
from perfci.dashboard.states import OverviewState

pytest.importorskip("setuptools", reason="needs setuptools to install perfci")
pytest.importorskip("github", reason="needs PyGithub to report")

_GOOD = planted.spin(planted.COUNT)
_HARMLESS = planted.spin(planted.COUNT, "as before")
_SLOWER = planted.spin(planted.COUNT * 13 // 10)
_GREEN = {
    "plan": "success",
    "measure (h200)": "success",
    "record": "skipped",
    "verdict": "success",
}
"""How the jobs of a pull request end that is measured and no slower."""


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    with make_project(tmp_path, _GOOD) as project:
        yield project


@pytest.mark.long
def test_a_push_is_recorded_and_seen_elsewhere(project: Project) -> None:
    finished = project.push(planted.other(2))
    assert finished.results == {
        "plan": "success",
        "measure (h200)": "success",
        "record": "success",
        "verdict": "success",
    }, finished.printed
    clone = project.folder / "clone"
    scratch.git(project.folder, "clone", "-q", str(project.remote), str(clone))
    synced = scratch.perfci(clone, "history", "sync")
    assert synced.stdout == "0 runs sent, 1 received\n", synced.stderr
    (run,) = json.loads(scratch.perfci(clone, "history", "ls", "--json").stdout)
    head = scratch.git(project.remote, "rev-parse", "main")
    assert (run["commit"]["sha"], run["commit"]["branch"], run["trigger"]) == (head, "main", "push")
    store = f"sqlite:///{clone}/.perfci/history.db"
    snapshots, _ = read_overview(store, OverviewState())
    assert [each.run.commit.sha for each in snapshots] == [head]


@pytest.mark.long
def test_a_backfill_records_what_lies_between(project: Project) -> None:
    shas = [planted.commit(project.work, f"Step {n}", planted.other(n)) for n in (2, 3)]
    scratch.git(project.work, "push", "-q", "origin", "main")
    finished = project.dispatch("workflow_dispatch_backfill")
    assert finished.results == {
        "plan": "success",
        "measure (h200)": "success",
        "record": "success",
        "verdict": "success",
    }, finished.printed
    scratch.perfci(project.work, "history", "sync")
    runs = json.loads(scratch.perfci(project.work, "history", "ls", "--json").stdout)
    assert {each["commit"]["sha"] for each in runs} == set(shas)


@pytest.mark.long
def test_a_harmless_pull_request_is_green(project: Project) -> None:
    finished = project.request(_HARMLESS)
    assert finished.results == _GREEN, finished.printed
    assert project.checks == ["success"]
    assert "✓ perfci: 3 unchanged" in project.comment


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_pull_request_that_is_30_percent_slower_is_red(project: Project) -> None:
    finished = project.request(_SLOWER)
    assert finished.results == {
        "plan": "success",
        "measure (h200)": "failure",
        "record": "skipped",
        "verdict": "failure",
    }, finished.printed
    assert project.checks == ["failure"]
    assert "✗ perfci: 1 slower" in project.comment
    assert "✗ perfci: 1 slower" in finished.summaries
    (check,) = project.github.check_runs
    assert [each["path"] for each in check["annotations"]] == ["kernels/axpb/plain.cpp"]


@pytest.mark.long
def test_a_fork_that_nobody_has_approved_runs_nothing(project: Project) -> None:
    finished = project.request(_SLOWER, "pull_request_fork", "stranger/kernels")
    assert finished.results == {
        "plan": "success",
        "measure": "skipped",
        "record": "skipped",
        "verdict": "failure",
    }, finished.printed
    assert project.checks == ["action_required"]
    assert project.github.comments == []


@pytest.mark.long
def test_a_commit_of_a_fork_is_measured_once_it_is_approved(project: Project) -> None:
    finished = project.request(_HARMLESS, "pull_request_fork_labeled", "stranger/kernels")
    assert finished.results == _GREEN, finished.printed
    assert project.checks == ["success"]
    assert "✓ perfci: 3 unchanged" in project.comment


@pytest.mark.long
def test_a_runner_that_says_nothing_is_missing_by_name(tmp_path: Path) -> None:
    with make_project(tmp_path, _GOOD, runners=["h200", "a100"]) as project:
        project.forge.silent = ["a100"]
        finished = project.request(_HARMLESS)
        assert finished.results == {
            "plan": "success",
            "measure (h200)": "success",
            "measure (a100)": "failure",
            "record": "skipped",
            "verdict": "failure",
        }, finished.printed
        assert project.checks == ["failure"]
        assert "a100 did not report" in project.comment
        assert "h200 did not report" not in project.comment
