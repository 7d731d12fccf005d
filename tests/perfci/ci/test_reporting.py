"""From what GitHub tells of a run and what the runners have left to its comment and its check."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import attempts
import gates
import parcels
import pytest
import rulings
from github_double import MEMBER, NO_RIGHTS, STRANGER, TOKEN, GitHubDouble, Pull

from perfci.ci.github import Access, Repository
from perfci.ci.merging import Found
from perfci.ci.parcel import Parcel
from perfci.ci.patience import Patience
from perfci.ci.reporting import Project, Reporter
from perfci.ci.settings import CiSettings
from perfci.ci.verdict_file import VerdictFile
from perfci.history.model import Verdict

_PROJECT = Project(
    check="perfci", settings=CiSettings(runners=rulings.RUNNERS), kernels="kernels", folder="."
)
_FILES = [
    {"filename": "README.md", "status": "modified", "patch": "@@ -1 +1,2 @@\n a\n+b"},
    {"filename": "kernels/rope/tiled.py", "status": "modified", "patch": "@@ -1 +1 @@\n-a\n+b"},
]
_RERUN = {"attempt": 2, "started_at": "2026-01-31T14:00:00Z"}
_GREEN = tuple(rulings.green(each) for each in rulings.RUNNERS)


class Scene:
    """A repository with a pull request, and the report of any attempt at it."""

    def __init__(self, github: GitHubDouble) -> None:
        self.github = github
        self.waits: list[float] = []
        self.said: list[str] = []
        self.opened: list[Repository] = []
        self.pull = Pull(3, parcels.HEAD, "topic", files=_FILES)
        github.pulls[3] = self.pull

    def reporter(self, project: Project = _PROJECT, **fields: Any) -> Reporter:
        access = Access(api_url=self.github.url, repository=attempts.OWN, token=TOKEN)
        self.opened.append(Repository(access))
        return Reporter(
            repository=self.opened[-1],
            patience=Patience(sleep=self.waits.append),
            attempt=attempts.attempt(**fields),
            project=project,
            complain=self.said.append,
        )

    def end(self, *handed: Parcel, claim: VerdictFile | None = None, **fields: Any) -> int:
        return self.reporter(**fields).end(claim, Found(parcels=handed)).exit_code

    @property
    def texts(self) -> list[str]:
        """The first line that is shown of each comment."""
        return [each["body"].split("\n")[1] for each in self.github.comments]

    @property
    def checks(self) -> list[tuple[str, str | None]]:
        return [(each["status"], each.get("conclusion")) for each in self.github.check_runs]


@pytest.fixture
def scene(github: GitHubDouble) -> Iterator[Scene]:
    scene = Scene(github)
    yield scene
    for each in scene.opened:
        each.__exit__()


def test_a_red_one_from_start_to_end(scene: Scene) -> None:
    scene.reporter().start()
    assert scene.checks == [("in_progress", None)]
    assert scene.texts == []
    assert scene.end(rulings.red("h200"), rulings.green("a100")) == 1
    assert scene.texts == ["### ✗ perfci: 1 slower, 1 unchanged"]
    (check,) = scene.github.check_runs
    assert (check["conclusion"], check["head_sha"]) == ("failure", parcels.HEAD)
    assert check["output"]["title"] == "1 slower, 1 unchanged"
    (note,) = check["annotations"]
    assert (note["path"], note["start_line"]) == ("kernels/rope/tiled.py", 1)
    assert scene.said == []
    assert scene.waits == []


def test_a_green_one_needs_few_calls(scene: Scene) -> None:
    scene.reporter().start()
    assert scene.end(*_GREEN) == 0
    assert scene.texts == ["### ✓ perfci: 2 unchanged"]
    assert scene.checks == [("completed", "success")]
    assert len(scene.github.calls) == 14


def test_a_runner_that_is_silent_is_named_in_check_and_comment(scene: Scene) -> None:
    assert scene.end(rulings.green("h200")) == 9
    assert scene.texts == ["### ✗ perfci: 1 unchanged; a100 did not report"]
    assert scene.checks == [("completed", "failure")]


def test_a_rerun_shows_no_stale_verdict(scene: Scene) -> None:
    scene.end(rulings.red("h200"), rulings.green("a100"))
    scene.reporter(**_RERUN).start()
    assert scene.texts == ["### … perfci: measuring"]
    assert scene.checks[-1] == ("in_progress", None)
    again = [replace(each, attempt=2) for each in _GREEN]
    assert scene.end(*again, **_RERUN) == 0
    assert scene.texts == ["### ✓ perfci: 2 unchanged"]
    assert scene.checks == [("completed", "failure"), ("completed", "success")]


def test_what_an_earlier_attempt_has_left_does_not_count(scene: Scene) -> None:
    assert scene.end(*_GREEN, **_RERUN) == 9
    assert "h200 reported of attempt 1; this is attempt 2" in scene.texts[0]


def test_an_older_attempt_that_reports_late_changes_nothing(scene: Scene) -> None:
    again = [replace(each, attempt=2) for each in _GREEN]
    scene.end(*again, **_RERUN)
    scene.end(rulings.red("h200"), rulings.green("a100"))
    assert scene.texts == ["### ✓ perfci: 2 unchanged"]
    assert scene.checks == [("completed", "success")]


def test_an_attempt_that_a_newer_one_has_overtaken_writes_no_comment(scene: Scene) -> None:
    scene.reporter().start()
    scene.reporter(**_RERUN).start()
    assert scene.end(*_GREEN) == 0
    assert scene.texts == []
    assert scene.checks == [("completed", "cancelled"), ("in_progress", None)]


def test_a_newer_attempt_may_begin_before_any_call_of_an_older_ones_report(scene: Scene) -> None:
    github = scene.github
    scene.end(*_RED)
    count = len(github.calls)
    assert github.check_runs[0]["annotations"]
    for call in range(count):
        github.check_runs.clear()
        github.comments.clear()
        github.before(len(github.calls) + call, scene.reporter(**_RERUN).start)
        assert scene.end(*_RED) == 1
        assert ("in_progress", None) in scene.checks


def test_a_pull_request_that_has_moved_on_gets_no_comment(scene: Scene) -> None:
    scene.pull.head = "9" * 40
    scene.end(rulings.red("h200"), rulings.green("a100"))
    assert scene.texts == []
    assert scene.checks == [("completed", "failure")]
    assert scene.github.check_runs[0]["head_sha"] == parcels.HEAD


def test_a_pull_request_of_the_same_branch_in_a_fork_is_another(scene: Scene) -> None:
    scene.github.pulls[2] = Pull(2, parcels.HEAD, "topic", repository="example/fork-of-kernels")
    scene.end(*_GREEN)
    assert [each["pull"] for each in scene.github.comments] == [3]


def test_of_pull_requests_that_github_names_one_is_it(scene: Scene) -> None:
    scene.github.pulls[2] = Pull(2, parcels.HEAD, "topic")
    scene.end(*_GREEN, pulls=(99, 3))  # the first is another repository's
    assert scene.said == []
    assert [each["pull"] for each in scene.github.comments] == [3]
    scene.pull.state = "closed"
    scene.end(*[replace(each, attempt=2) for each in _GREEN], **_RERUN, pulls=(3,))
    assert "attempt=1" in scene.github.comments[0]["body"]


def test_a_push_has_a_check_and_no_comment(scene: Scene) -> None:
    done = [
        parcels.parcel(runner=each, act="run", exit_code=0, gates=()) for each in rulings.RUNNERS
    ]
    done = [replace(each, act=rulings.Act.RUN) for each in done]
    assert scene.end(*done, kind="push", branch="main") == 0
    assert scene.texts == []
    assert scene.checks == [("completed", "success")]


def test_a_run_that_was_cancelled_blames_no_runner(scene: Scene) -> None:
    assert scene.end(rulings.green("h200"), conclusion="cancelled") == 9
    assert scene.checks == [("completed", "cancelled")]


_APPROVED = ("perf-approved", "2026-01-31T11:59:55Z", MEMBER)
_FORK = {"head_repository": attempts.FORK, "actor": MEMBER}


@pytest.fixture
def forked(scene: Scene) -> Scene:
    scene.pull.repository = attempts.FORK
    return scene


def test_a_fork_waits_for_approval(forked: Scene) -> None:
    forked.reporter(**_FORK).start()
    assert forked.end(*_GREEN, **_FORK) == 9
    assert forked.checks == [("completed", "action_required")]
    summary = forked.github.check_runs[0]["output"]["summary"]
    assert "put the label 'perf-approved' on" in summary
    assert "h200 has reported without approval" in summary
    assert forked.texts == []


def test_a_fork_that_is_approved_is_judged(forked: Scene) -> None:
    forked.pull.labelled = [_APPROVED]
    assert forked.end(*_GREEN, **_FORK) == 0
    assert forked.checks == [("completed", "success")]
    assert forked.texts == ["### ✓ perfci: 2 unchanged"]


def test_a_label_from_an_earlier_commit_approves_nothing(forked: Scene) -> None:
    forked.pull.labels = ["perf-approved"]
    forked.pull.labelled = [
        ("perf-approved", "2026-01-31T11:00:00Z", MEMBER),
        ("perf-approved", "2026-01-31T12:00:05Z", MEMBER),
        ("docs", "2026-01-31T11:59:55Z", MEMBER),
    ]
    forked.pull.unlabelled = [_APPROVED]
    assert forked.end(*_GREEN, **_FORK) == 9
    assert forked.checks == [("completed", "action_required")]


@pytest.mark.parametrize("actor", [STRANGER, None])
def test_a_push_within_seconds_of_the_label_is_not_approved(
    forked: Scene, actor: int | None
) -> None:
    forked.pull.labels = ["perf-approved"]
    forked.pull.labelled = [_APPROVED, ("perf-approved", _APPROVED[1], None)]
    assert forked.end(*_GREEN, head_repository=attempts.FORK, actor=actor) == 9
    assert forked.checks == [("completed", "action_required")]


def test_a_fork_that_touches_no_kernel_needs_no_approval(forked: Scene) -> None:
    forked.pull.files = _FILES[:1]
    forked.reporter(**_FORK).start()
    assert forked.end(**_FORK) == 0
    assert forked.checks == [("completed", "skipped")]
    assert forked.texts == []


def test_a_fork_cannot_choose_by_which_of_its_pull_requests_it_is_judged(forked: Scene) -> None:
    other = replace(forked.pull, number=2, files=_FILES[:1])  # the same commit for another branch
    forked.github.pulls = {2: other, 3: forked.pull}
    forked.reporter(**_FORK).start()
    assert forked.end(pulls=(2,), **_FORK) == 9
    assert forked.checks == [("completed", "action_required")]
    forked.pull.labelled = [_APPROVED]
    assert forked.end(*_GREEN, **_FORK) == 0


def test_what_is_listed_of_another_commit_says_nothing_of_this_one(forked: Scene) -> None:
    class Moving(list[dict[str, str]]):
        def __iter__(self) -> Iterator[dict[str, str]]:
            forked.pull.head = "a" * 40
            return super().__iter__()

    forked.pull.files = Moving(_FILES[:1])
    assert forked.end(**_FORK) == 9
    assert forked.checks == [("completed", "action_required")]


def test_a_file_by_which_the_environment_is_made_is_touched(forked: Scene) -> None:
    forked.pull.files = [{"filename": "deploy/gpu.txt", "status": "modified"}]
    project = replace(_PROJECT, environment=("deploy/gpu.txt",))
    assert forked.end(**_FORK) == 0
    assert forked.end(project=project, **_FORK) == 9


def test_a_kernel_that_is_moved_away_is_touched(forked: Scene) -> None:
    forked.pull.files = [
        {"filename": "old/x.py", "previous_filename": "kernels/rope/x.py", "status": "renamed"}
    ]
    assert forked.end(**_FORK) == 9


def test_where_github_does_not_say_a_fork_is_not_approved(forked: Scene) -> None:
    forked.pull.labelled = [_APPROVED]
    forked.github.fail("GET", "/events", status=403, message=NO_RIGHTS)
    assert forked.end(*_GREEN, **_FORK) == 9
    assert forked.checks == [("completed", "action_required")]
    assert len(forked.said) == 1


_RED = (rulings.red("h200"), rulings.green("a100"))


def test_a_token_without_rights_changes_no_verdict(scene: Scene) -> None:
    scene.github.rights = set()
    scene.reporter().start()
    scene.said.clear()
    assert scene.end(*_RED) == 1
    assert scene.said == [
        f"GitHub refuses the check run (403 {NO_RIGHTS}); the job needs 'checks: write'",
        f"GitHub refuses the comment (403 {NO_RIGHTS}); the job needs 'pull-requests: write'",
    ]
    assert scene.waits == []


def test_without_the_right_to_comment_there_is_still_a_check(scene: Scene) -> None:
    scene.github.rights = {"checks"}
    assert scene.end(*_RED) == 1
    assert scene.checks == [("completed", "failure")]
    assert len(scene.said) == 1


@pytest.mark.parametrize(
    "how",
    [
        {"status": 429, "headers": {"Retry-After": "2"}},
        {"status": 500},
        {"status": 502, "page": "<html>Bad gateway</html>"},
        {"cut": 0},
        {"cut": 0.5},
    ],
)
def test_whichever_call_fails_once_the_outcome_is_the_same(scene: Scene, how: Any) -> None:
    """Every call of a whole report is made to fail in turn."""
    _clear(scene)
    scene.end(*_RED)
    calls = len(scene.github.calls)
    expected = (scene.texts, scene.checks, _notes(scene))
    assert calls > 8
    for number in range(calls):
        _clear(scene)
        scene.github.fail_call(number, **how)
        assert scene.end(*_RED) == 1, number
        assert (scene.texts, scene.checks, _notes(scene)) == expected, number
        assert scene.said == []
        assert len(scene.waits) == 1


def test_what_fails_for_ever_is_given_up_and_said(scene: Scene) -> None:
    scene.github.fail("*", "", times=20, status=503)
    assert scene.end(*_RED) == 1
    assert scene.checks == []
    assert all(each.startswith("GitHub does not take the ") for each in scene.said)
    assert sum(scene.waits) <= 300
    scene.github.faults.clear()


def test_two_projects_of_a_repository_have_a_comment_and_a_check_each(scene: Scene) -> None:
    other = replace(_PROJECT, check="perfci (libs/other)")
    scene.end(*_GREEN)
    scene.reporter(other).end(None, Found(parcels=_RED))
    assert scene.texts == ["### ✓ perfci: 2 unchanged", _OTHER]
    assert [each["name"] for each in scene.github.check_runs] == ["perfci", other.check]


def test_a_start_that_comes_late_hides_no_verdict(scene: Scene) -> None:
    scene.end(*_GREEN)
    scene.reporter().start()
    assert scene.texts == ["### ✓ perfci: 2 unchanged"]
    assert scene.checks == [("completed", "success")]


def test_a_comment_beyond_the_limit_is_cut_to_it(scene: Scene) -> None:
    """The double takes as much as GitHub does, and not a byte more."""
    reason = "wrong values: 核 " * 20
    many = [gates.comparison(Verdict.INCORRECT, f"v{n}", reason=reason) for n in range(900)]
    assert scene.end(rulings.gated("h200", many), rulings.green("a100")) == 1
    assert scene.said == []
    assert scene.texts == ["### ✗ perfci: 900 incorrect, 1 unchanged"]
    (comment,), (check,) = scene.github.comments, scene.github.check_runs
    for text in (comment["body"], check["output"]["summary"]):
        assert 20_000 < len(text.encode()) <= 65_536
        assert re.search(r"\nand [\d,]+ more\n", text)


_OTHER = "### ✗ perfci (libs/other): 1 slower, 1 unchanged"


def _clear(scene: Scene) -> None:
    github = scene.github
    for each in (github.comments, github.check_runs, github.calls, scene.said, scene.waits):
        each.clear()


def _notes(scene: Scene) -> list[str]:
    return [note["path"] for each in scene.github.check_runs for note in each["annotations"]]
