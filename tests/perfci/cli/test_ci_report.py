"""perfci ci report: each recorded event, from its plan to its comment, check and exit code."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import events
import gates
import parcels
import pytest
import records
import scratch
from github_double import MEMBER, NO_RIGHTS, STRANGER, TOKEN, GitHubDouble, Pull, serving
from pipelines import Place, make_place

from perfci.ci.act import Act
from perfci.history.model import Verdict

Call = Callable[..., Any]
_RUNNERS = ("h200", "a100")
_RUN = 6001
_CREATED_AT = "2026-11-02T09:00:00Z"


@pytest.fixture
def github() -> Iterator[GitHubDouble]:
    with serving() as double:
        yield double


@dataclass
class Walk:
    """One event on its way: planned and merged in a clone, reported from the default branch."""

    github: GitHubDouble
    place: Place
    call: Call
    folder: Path
    head: str
    clone: Path
    attempt: int = 1

    def begin(self, name: str, source: str | None) -> Any:
        return self.report("requested", name, source, "--started")

    def measure(self, name: str, verdicts: dict[str, Verdict]) -> int:
        """What the runners leave, if the plan asks them to; the exit code of the merge."""
        job = self.job(name)
        plan = json.loads(self.call(self.clone, "ci", "plan", "--json", **job).out)
        for runner in plan["runners"]:
            if runner in verdicts:
                parcel = self.parcel(plan, runner, verdicts[runner])
                parcels.write(self.folder / "artefacts" / f"parcel-{runner}", parcel)
        out = self.folder / "artefacts" / "verdict"
        ended = self.call(self.clone, "ci", "merge", self.folder / "artefacts", "--out", out, **job)
        return int(ended.code)

    def end(self, name: str, source: str | None, **variables: str) -> Any:
        artefacts = self.folder / "artefacts"
        return self.report("completed", name, source, artefacts, **variables)

    def job(self, name: str) -> dict[str, str]:
        shas = {events.BASE: self.place.base, events.HEAD: self.head}
        return events.github(name, self.folder, shas=shas, GITHUB_RUN_ATTEMPT=str(self.attempt))

    def report(
        self, action: str, name: str, source: str | None, *arguments: Any, **variables: str
    ) -> Any:
        job = events.github(f"workflow_run_{action}", self.folder, shas={events.HEAD: self.head})
        path = Path(job["GITHUB_EVENT_PATH"])
        payload = json.loads(path.read_text())
        payload["workflow_run"].update(
            event=self.job(name)["GITHUB_EVENT_NAME"],
            run_attempt=self.attempt,
            run_started_at=f"2026-11-02T{8 + self.attempt:02}:00:00Z",
            head_repository=None if source is None else {"full_name": source},
            actor={"id": MEMBER if name.endswith("_labeled") else STRANGER},
        )
        path.write_text(json.dumps(payload))
        here = {
            "GITHUB_API_URL": self.github.url,
            "GITHUB_TOKEN": TOKEN,
            "GITHUB_STEP_SUMMARY": str(self.folder / "summary.md"),
            **variables,
        }
        return self.call(self.place.work, "ci", "report", *arguments, **{**job, **here})

    def parcel(self, plan: dict[str, Any], runner: str, verdict: Verdict) -> Any:
        commit = records.run().commit
        known = {
            "runner": runner,
            "act": Act(plan["act"]),
            "base": plan["base"],
            "head": plan["head"],
            "run_id": str(_RUN),
            "attempt": self.attempt,
            "exit_code": 0,
            "gates": (),
        }
        if plan["act"] == "gate":
            judged = parcels.judgement(
                gates.gate(
                    [gates.comparison(verdict)],
                    base=replace(commit, sha=plan["base"]),
                    head=replace(commit, sha=plan["head"]),
                )
            )
            known |= {"gates": (judged,), "exit_code": judged.exit_code}
        return parcels.parcel(**known)

    @property
    def titles(self) -> list[str]:
        return [each["body"].split("\n")[1].removeprefix("### ") for each in self.github.comments]

    @property
    def checks(self) -> list[str]:
        return [each.get("conclusion") or each["status"] for each in self.github.check_runs]


@pytest.fixture
def walk(github: GitHubDouble, call: Call, tmp_path: Path) -> Walk:
    place = make_place(tmp_path)
    text = scratch.body("int a = 0; (void)a;")
    head = place.change("kernels/axpb/plain.cpp", text)
    clone = place.clone("topic")
    scratch.git(place.work, "switch", "-q", "main")  # the report runs at the default branch
    patch = {"filename": "kernels/axpb/plain.cpp", "status": "modified", "patch": "@@ -1 +1 @@\n+a"}
    github.pulls[7] = Pull(7, head, "topic", files=[patch])
    return Walk(github, place, call, tmp_path, head, clone)


_OWN = "example/kernels"
_STRANGER = "stranger/kernels"
_GREEN = dict.fromkeys(_RUNNERS, Verdict.UNCHANGED)
_RED = {**_GREEN, "h200": Verdict.REGRESSION}


@pytest.mark.parametrize(
    ("name", "source", "code", "check", "comment"),
    [
        ("pull_request", _OWN, 1, "failure", "✗ perfci: 1 slower, 1 unchanged"),
        ("pull_request_synchronize", _OWN, 1, "failure", "✗ perfci: 1 slower, 1 unchanged"),
        ("pull_request_labeled", _OWN, 1, "failure", "✗ perfci: 1 slower, 1 unchanged"),
        ("pull_request_closed", _OWN, 0, "skipped", None),
        ("pull_request_fork", _STRANGER, 9, "action_required", None),
        ("pull_request_fork_synchronize", _STRANGER, 9, "action_required", None),
        ("pull_request_fork_other_label", _STRANGER, 9, "action_required", None),
        ("pull_request_fork_gone", None, 9, "action_required", None),
        ("pull_request_fork_labeled", _STRANGER, 1, "failure", "✗ perfci: 1 slower, 1 unchanged"),
        ("merge_group", _OWN, 1, "failure", None),
        ("push", _OWN, 0, "success", None),
        ("push_forced", _OWN, 0, "success", None),
        ("push_new_default_branch", _OWN, 0, "success", None),
        ("push_tag", _OWN, 0, "success", None),
        ("push_new_branch", _OWN, 0, "skipped", None),
    ],
)
def test_each_event_to_its_comment_check_and_exit_code(
    walk: Walk, name: str, source: str | None, code: int, check: str, comment: str | None
) -> None:
    pull = walk.github.pulls[7]
    pull.repository = source
    if name == "pull_request_fork_labeled":
        pull.labelled = [("perf-approved", _CREATED_AT, MEMBER)]
    elif source != _OWN:
        pull.labelled = [("perf-approved", "2026-11-01T09:00:00Z", MEMBER)]  # of an earlier commit
    assert walk.begin(name, source).code == 0
    assert walk.checks == ["in_progress"]
    assert walk.measure(name, _RED) == code
    ended = walk.end(name, source)
    assert (ended.code, ended.err) == (0, "")
    assert walk.checks == [check]
    assert walk.titles == ([] if comment is None else [comment])
    (found,) = walk.github.check_runs
    assert (found["name"], found["head_sha"]) == ("perfci", walk.head)
    assert ended.out.split()[1] == f"{check}:"


@pytest.mark.parametrize(
    "name",
    [
        "schedule",
        "delete",
        "workflow_dispatch",
        "workflow_dispatch_backfill",
        "workflow_dispatch_bisect",
        "workflow_dispatch_selftest",
    ],
)
def test_what_concerns_no_change_has_no_check(walk: Walk, name: str) -> None:
    for ended in (walk.begin(name, _OWN), walk.end(name, _OWN)):
        assert ended.code == 0
        assert "there is no check: nothing to say" in ended.out
    assert walk.github.calls == []


def test_a_green_one_is_green(walk: Walk) -> None:
    assert walk.measure("pull_request", _GREEN) == 0
    walk.end("pull_request", _OWN)
    assert (walk.titles, walk.checks) == (["✓ perfci: 2 unchanged"], ["success"])


def test_one_reports_and_one_stays_silent(walk: Walk) -> None:
    assert walk.measure("pull_request", {"h200": Verdict.UNCHANGED}) == 9
    ended = walk.end("pull_request", _OWN)
    assert walk.titles == ["✗ perfci: 1 unchanged; a100 did not report"]
    assert walk.checks == ["failure"]
    assert "a100: missing: it did not report" in ended.out


def test_a_rerun_is_in_progress_until_it_has_a_verdict_of_its_own(walk: Walk) -> None:
    walk.begin("pull_request", _OWN)
    walk.measure("pull_request", _RED)
    walk.end("pull_request", _OWN)
    walk.attempt = 2
    walk.begin("pull_request", _OWN)
    assert walk.titles == ["… perfci: measuring"]
    assert walk.checks == ["failure", "in_progress"]
    assert walk.measure("pull_request", _GREEN) == 0
    walk.end("pull_request", _OWN)
    assert walk.titles == ["✓ perfci: 2 unchanged"]
    assert walk.checks == ["failure", "success"]


def test_a_token_without_rights_leaves_the_verdict_in_the_summary(walk: Walk) -> None:
    walk.github.rights = set()
    assert walk.measure("pull_request", _RED) == 1
    ended = walk.end("pull_request", _OWN)
    assert ended.code == 0
    refused = "perfci: GitHub refuses the {} (403 {}); the job needs '{}'\n"
    assert ended.err == (
        refused.format("check run", NO_RIGHTS, "checks: write")
        + refused.format("comment", NO_RIGHTS, "pull-requests: write")
    )
    summary = (walk.folder / "summary.md").read_text(encoding="utf-8")
    assert summary.startswith("### ✗ perfci: 1 slower, 1 unchanged\n")
    assert "✗ failure: 1 slower, 1 unchanged" in ended.out


@pytest.mark.parametrize(
    ("name", "comments"), [("pull_request", ["✗ perfci: 1 slower, 1 unchanged"]), ("push_tag", [])]
)
def test_a_job_reports_of_its_own_run(walk: Walk, name: str, comments: list[str]) -> None:
    walk.github.pulls[8] = Pull(8, walk.head, "topic")
    here = {"GITHUB_API_URL": walk.github.url, "GITHUB_TOKEN": TOKEN}
    started = walk.call(walk.clone, "ci", "report", "--started", **{**walk.job(name), **here})
    assert started.code == 0, started.err
    assert walk.checks == ["in_progress"]
    code = walk.measure(name, _RED)
    artefacts = walk.folder / "artefacts"
    ended = walk.call(walk.clone, "ci", "report", artefacts, **{**walk.job(name), **here})
    assert (ended.code, ended.err) == (0, "")
    assert walk.titles == comments
    assert [each["pull"] for each in walk.github.comments] == [7] * len(comments)
    assert walk.checks == ["failure" if code else "success"]


def test_a_job_for_a_fork_may_not_report(walk: Walk) -> None:
    """Its token may write nothing; and if it might, nothing has said that it is approved."""
    walk.github.pulls[7].repository = _STRANGER
    name = "pull_request_fork_labeled"
    assert walk.measure(name, _GREEN) == 0
    here = {"GITHUB_API_URL": walk.github.url, "GITHUB_TOKEN": TOKEN}
    artefacts = walk.folder / "artefacts"
    ended = walk.call(walk.clone, "ci", "report", artefacts, **{**walk.job(name), **here})
    assert ended.code == 0
    assert walk.checks == ["action_required"]


def test_a_deleted_branch_is_not_reported_of(walk: Walk) -> None:
    ended = walk.call(walk.clone, "ci", "report", "--started", **walk.job("push_deleted"))
    assert ended.code == 2
    assert "there is no commit" in ended.err


def test_a_page_of_the_job_that_cannot_be_written_is_said(walk: Walk) -> None:
    walk.measure("pull_request", _RED)
    gone = str(walk.folder / "gone" / "summary.md")
    ended = walk.end("pull_request", _OWN, GITHUB_STEP_SUMMARY=gone)
    assert ended.code == 0
    assert ended.err == f"perfci: {gone}: cannot be written: No such file or directory\n"


def test_a_run_that_left_nothing_is_missing(walk: Walk) -> None:
    ended = walk.report("completed", "pull_request", _OWN, walk.folder / "nowhere")
    assert ended.code == 0
    assert walk.titles == ["✗ perfci: h200 did not report; a100 did not report"]


def test_a_verdict_file_that_is_none_is_not_believed(walk: Walk) -> None:
    """It would say that there was nothing to measure."""
    walk.measure("pull_request_closed", _GREEN)
    path = walk.folder / "artefacts" / "verdict" / "verdict.json"
    path.write_text(path.read_text().replace('"version": 1', '"version": 2'))
    ended = walk.end("pull_request", _OWN)
    assert ended.err == "perfci: verdict.json: no verdict of version 1\n"
    assert walk.checks == ["failure"]


def test_a_verdict_file_that_never_ends_is_not_read(walk: Walk) -> None:
    walk.measure("pull_request", _GREEN)
    path = walk.folder / "artefacts" / "verdict" / "verdict.json"
    path.unlink()
    os.mkfifo(path)
    ended = walk.end("pull_request", _OWN)
    assert ended.err.startswith("perfci: verdict.json: not there, no plain file")
    assert walk.checks == ["success"]


def test_artefacts_of_an_earlier_attempt_take_nothing_away(walk: Walk) -> None:
    """Whoever downloads all artefacts of a run has those of every attempt."""
    walk.measure("pull_request_closed", _GREEN)
    artefacts = walk.folder / "artefacts"
    (artefacts / "verdict").rename(artefacts / "verdict-1")
    walk.attempt = 2
    walk.measure("pull_request_closed", _GREEN)
    assert walk.end("pull_request_closed", _OWN).err == ""
    assert walk.titles == []


@pytest.mark.parametrize("name", ["x" * 300, "loop"])
def test_a_folder_that_cannot_be_looked_at_has_nothing_in_it(walk: Walk, name: str) -> None:
    (walk.folder / "loop").symlink_to("loop")
    assert walk.report("completed", "pull_request", _OWN, walk.folder / name).code == 0
    assert walk.checks == ["failure"]


@pytest.mark.parametrize(
    ("arguments", "variables", "code", "words"),
    [
        ((), {}, 2, "give either --started or the folder"),
        (("--started", "x"), {}, 2, "give either --started or the folder"),
        (("x",), {"GITHUB_ACTIONS": ""}, 2, "is for a job of GitHub's"),
        (("x",), {"GITHUB_EVENT_NAME": "issues"}, 2, "perfci ci acts on push"),
        (("x",), {"GITHUB_EVENT_PATH": ""}, 2, "cannot be read"),
        (("x",), {"GITHUB_TOKEN": ""}, 3, "GITHUB_TOKEN is not set"),
        (("x",), {"GITHUB_SERVER_URL": "javascript:x"}, 2, "is no address"),
    ],
)
def test_what_is_not_as_it_should_be_is_one_line(
    walk: Walk, arguments: tuple[str, ...], variables: dict[str, str], code: int, words: str
) -> None:
    ended = walk.report("completed", "pull_request", _OWN, *arguments, **variables)
    assert ended.code == code
    assert words in ended.err
    assert len(ended.err.splitlines()) == 1
    assert walk.github.calls == []


def test_without_pygithub_it_says_what_to_install(
    walk: Walk, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("perfci.ci.github", "perfci.ci.reporting", "perfci.ci.posting"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setitem(sys.modules, "github", None)
    ended = walk.begin("pull_request", _OWN)
    assert ended.code == 3
    assert ended.err == "perfci: PyGithub is not here: pip install 'perfci[ci]'\n"
