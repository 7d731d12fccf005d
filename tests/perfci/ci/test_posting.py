"""One comment and one check run, kept as they should be: repeated, cut, refused, at once."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from github_double import NO_RIGHTS, REPOSITORY, SECONDARY, STRANGER, TOKEN, GitHubDouble, Pull

from perfci.ci.conclusion import Conclusion
from perfci.ci.github import Access, Repository
from perfci.ci.mark import Mark, marked, read_mark
from perfci.ci.patience import Patience, RefusedError, UnavailableError
from perfci.ci.posting import (
    Desk,
    Replacing,
    Said,
    SupersededError,
    complete_check,
    post_comment,
    start_check,
    withdraw_check,
)

_HEAD = "a" * 40
_MARK = Mark(check="perfci", head=_HEAD, run_id=7, attempt=1, started_at="2026-01-31T12:00:00Z")
_RERUN = replace(_MARK, attempt=2, started_at="2026-01-31T14:00:00Z")
_OTHER_RUN = replace(_MARK, run_id=8, started_at="2026-01-31T13:00:00Z")
_SAID = Said(title="1 slower", summary="summary")
_BUSY = Said(title="measuring", summary="summary")

Desks = Callable[..., Desk]


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
def desk(github: GitHubDouble, waits: list[float]) -> Iterator[Desks]:
    github.pulls[3] = Pull(3, _HEAD, "topic")
    opened: list[Repository] = []

    def desk(mark: Mark = _MARK) -> Desk:
        access = Access(api_url=github.url, repository=REPOSITORY, token=TOKEN)
        opened.append(Repository(access))
        patience = Patience(sleep=waits.append)
        url = "https://example.invalid/run"
        return Desk(repository=opened[-1], patience=patience, mark=mark, details_url=url)

    yield desk
    for each in opened:
        each.__exit__()


def _annotations(count: int) -> list[dict[str, Any]]:
    return [
        {
            "path": f"kernels/{n}.py",
            "start_line": 1,
            "end_line": 1,
            "annotation_level": "failure",
            "message": "slower",
        }
        for n in range(count)
    ]


def _texts(github: GitHubDouble) -> list[str]:
    return [each["body"].split("\n", 1)[-1] for each in github.comments]


def test_a_comment_is_written_once_and_then_updated(github: GitHubDouble, desk: Desks) -> None:
    post_comment(desk(), 3, "first", Replacing.ANY)
    post_comment(desk(), 3, "first", Replacing.ANY)
    post_comment(desk(_RERUN), 3, "second", Replacing.ANY)
    assert _texts(github) == ["second"]
    assert github.count("POST", "/comments") == 1
    assert github.count("PATCH", "/comments") == 1


def test_an_older_attempt_never_replaces_a_newer_one(github: GitHubDouble, desk: Desks) -> None:
    post_comment(desk(_RERUN), 3, "newer", Replacing.ANY)
    post_comment(desk(), 3, "older", Replacing.ANY)
    assert _texts(github) == ["newer"]


def test_two_projects_have_a_comment_each(github: GitHubDouble, desk: Desks) -> None:
    post_comment(desk(), 3, "one", Replacing.ANY)
    post_comment(desk(replace(_MARK, check="perfci (libs/other)")), 3, "other", Replacing.ANY)
    assert _texts(github) == ["one", "other"]


def test_what_somebody_else_wrote_is_left_alone(github: GitHubDouble, desk: Desks) -> None:
    forged = marked(replace(_MARK, started_at="2099-01-01T00:00:00Z"), "forged")[1]
    github.add_comment(3, forged, author=STRANGER)
    github.add_comment(3, "perfci is slow", author=STRANGER)
    post_comment(desk(), 3, "ours", Replacing.ANY)
    assert _texts(github) == ["forged", "perfci is slow", "ours"]


def test_a_notice_is_not_written_where_there_is_no_comment(
    github: GitHubDouble, desk: Desks
) -> None:
    post_comment(desk(), 3, "measuring", Replacing.STALE)
    assert github.comments == []


def test_a_notice_replaces_what_is_stale_and_no_other_runs_verdict(
    github: GitHubDouble, desk: Desks
) -> None:
    post_comment(desk(), 3, "verdict", Replacing.ANY)
    post_comment(desk(_OTHER_RUN), 3, "nothing to do", Replacing.STALE)
    assert _texts(github) == ["verdict"]
    post_comment(desk(_RERUN), 3, "measuring again", Replacing.STALE)
    assert _texts(github) == ["measuring again"]
    newer_head = replace(_OTHER_RUN, head="b" * 40, started_at="2026-01-31T15:00:00Z")
    post_comment(desk(newer_head), 3, "measuring the next", Replacing.STALE)
    assert _texts(github) == ["measuring the next"]


@pytest.mark.parametrize("cut", [0, 0.5])
@pytest.mark.parametrize("method", ["GET", "POST", "PATCH"])
def test_a_cut_connection_leaves_one_comment(
    github: GitHubDouble, desk: Desks, waits: list[float], method: str, cut: int
) -> None:
    """The call is carried out, its answer does not arrive: to repeat it would say it twice."""
    if method == "PATCH":
        github.add_comment(3, marked(_MARK, "old")[1])
    github.fail(method, "/comments", cut=cut)
    post_comment(desk(_RERUN), 3, "verdict", Replacing.ANY)
    assert _texts(github) == ["verdict"]
    assert waits == [1.0]


@pytest.mark.parametrize(
    ("how", "waited"),
    [
        ({"status": 429, "headers": {"Retry-After": "5"}}, 5.0),
        ({"status": 403, "message": SECONDARY}, 60.0),
        ({"status": 500}, 1.0),
        ({"status": 502, "page": "<html>"}, 1.0),
        ({"status": 503, "headers": {"Retry-After": "4"}}, 4.0),
    ],
)
@pytest.mark.parametrize("call", ["graphql", "/comments"])
def test_what_passes_is_waited_for(
    github: GitHubDouble, desk: Desks, waits: list[float], call: str, how: Any, waited: float
) -> None:
    github.fail("POST", call, **how)
    post_comment(desk(), 3, "verdict", Replacing.ANY)
    assert _texts(github) == ["verdict"]
    assert waits == [waited]


def test_what_does_not_pass_is_given_up_in_time(
    github: GitHubDouble, desk: Desks, waits: list[float]
) -> None:
    github.fail("POST", "/comments", status=503, times=9)
    with pytest.raises(UnavailableError, match="503"):
        post_comment(desk(), 3, "verdict", Replacing.ANY)
    assert waits == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0]


def test_a_token_without_rights_is_refused_at_once(
    github: GitHubDouble, desk: Desks, waits: list[float]
) -> None:
    github.rights = set()
    with pytest.raises(RefusedError, match=NO_RIGHTS):
        post_comment(desk(), 3, "verdict", Replacing.ANY)
    assert waits == []


def test_a_comment_that_is_deleted_meanwhile_is_written_anew(
    github: GitHubDouble, desk: Desks
) -> None:
    github.add_comment(3, marked(_MARK, "old")[1])
    github.fail("PATCH", "/comments", status=404, message="Not Found")
    post_comment(desk(_RERUN), 3, "verdict", Replacing.ANY)
    assert _texts(github) == ["verdict"]


@pytest.mark.parametrize("marks", [(_MARK, _RERUN), (_RERUN, _MARK), (_MARK, _OTHER_RUN)])
def test_of_two_jobs_at_once_the_newer_leaves_the_one_comment(
    github: GitHubDouble, desk: Desks, marks: tuple[Mark, Mark]
) -> None:
    """Both have seen that there is none before either writes one."""
    github.meet("GET", "/comments")
    desks = [desk(mark) for mark in marks]
    with ThreadPoolExecutor(2) as pool:
        posted = [
            pool.submit(post_comment, each, 3, f"attempt {each.mark.order}", Replacing.ANY)
            for each in desks
        ]
        for each in posted:
            each.result()
    newest = max(marks, key=lambda mark: mark.order)
    assert _texts(github) == [f"attempt {newest.order}"]
    found = read_mark(github.comments[0]["body"])
    assert found is not None
    assert found.run_id == newest.run_id


def test_a_check_is_in_progress_and_then_completed(github: GitHubDouble, desk: Desks) -> None:
    start_check(desk(), _BUSY)
    (check,) = github.check_runs
    assert (check["status"], check["head_sha"], check["name"]) == ("in_progress", _HEAD, "perfci")
    assert check["details_url"] == "https://example.invalid/run"
    complete_check(desk(), Conclusion.FAILURE, _SAID)
    (check,) = github.check_runs
    assert (check["status"], check["conclusion"]) == ("completed", "failure")
    assert check["output"]["title"] == "1 slower"


def test_two_jobs_that_begin_at_once_leave_nothing_in_progress(
    github: GitHubDouble, desk: Desks
) -> None:
    """As for `requested` and `in_progress`, of which GitHub tells at the same time."""
    github.meet("GET", "/check-runs")
    desks = [desk(), desk()]
    with ThreadPoolExecutor(2) as pool:
        for each in [pool.submit(start_check, one, _BUSY) for one in desks]:
            each.result()
    assert [each["status"] for each in github.check_runs] == ["in_progress"] * 2
    complete_check(desk(), Conclusion.FAILURE, _SAID, _annotations(3))
    assert [each["conclusion"] for each in github.check_runs] == ["failure"] * 2
    assert [len(each["annotations"]) for each in github.check_runs] == [0, 3]


def test_a_start_that_comes_late_hides_no_verdict(github: GitHubDouble, desk: Desks) -> None:
    complete_check(desk(), Conclusion.FAILURE, _SAID)
    post_comment(desk(replace(_MARK, is_ended=True)), 3, "verdict", Replacing.ANY)
    start_check(desk(), _BUSY)
    post_comment(desk(), 3, "measuring", Replacing.STALE)
    assert [each["conclusion"] for each in github.check_runs] == ["failure"]
    assert _texts(github) == ["verdict"]


def test_a_rerun_begins_anew(github: GitHubDouble, desk: Desks) -> None:
    for mark in (_MARK, _RERUN):
        start_check(desk(mark), _BUSY)
        assert github.check_runs[-1]["status"] == "in_progress"
        complete_check(desk(mark), Conclusion.SUCCESS, _SAID)
    assert [each["status"] for each in github.check_runs] == ["completed", "completed"]


def test_another_run_of_a_commit_does_not_hide_its_verdict(
    github: GitHubDouble, desk: Desks
) -> None:
    """As where a label is put on that has nothing to do with perfci."""
    complete_check(desk(), Conclusion.FAILURE, _SAID)
    start_check(desk(_OTHER_RUN), _BUSY)
    withdraw_check(desk(_OTHER_RUN), Said(title="nothing to measure", summary=""))
    assert [each["conclusion"] for each in github.check_runs] == ["failure"]


def test_a_run_that_is_approved_is_in_progress_though_one_before_it_waits(
    github: GitHubDouble, desk: Desks
) -> None:
    complete_check(desk(), Conclusion.ACTION_REQUIRED, _SAID)
    start_check(desk(_OTHER_RUN), _BUSY)
    assert [each["status"] for each in github.check_runs] == ["completed", "in_progress"]


def test_a_check_that_has_nothing_to_say_is_skipped(github: GitHubDouble, desk: Desks) -> None:
    withdraw_check(desk(), Said(title="nothing to measure", summary=""))
    assert github.check_runs == []
    start_check(desk(), _BUSY)
    withdraw_check(desk(), Said(title="nothing to measure", summary=""))
    assert [each["conclusion"] for each in github.check_runs] == ["skipped"]


def test_a_verdict_is_shown_though_the_start_was_not(github: GitHubDouble, desk: Desks) -> None:
    complete_check(desk(), Conclusion.FAILURE, _SAID)
    (check,) = github.check_runs
    assert check["conclusion"] == "failure"


def test_an_older_attempt_that_ends_late_says_no_verdict(github: GitHubDouble, desk: Desks) -> None:
    start_check(desk(), _BUSY)
    start_check(desk(_RERUN), _BUSY)
    for _ in range(2):
        with pytest.raises(SupersededError):
            complete_check(desk(), Conclusion.SUCCESS, _SAID)
    older, newer = github.check_runs
    assert (older["conclusion"], older["completed_at"]) == ("cancelled", "2026-01-31T12:00:00Z")
    assert newer["status"] == "in_progress"


def test_annotations_are_sent_fifty_at_a_time(github: GitHubDouble, desk: Desks) -> None:
    complete_check(desk(), Conclusion.FAILURE, _SAID, _annotations(120))
    (check,) = github.check_runs
    assert [each["path"] for each in check["annotations"]] == [
        f"kernels/{n}.py" for n in range(120)
    ]
    assert github.count("PATCH", "/check-runs") == 4  # the verdict first, then 50, 50, 20


@pytest.mark.parametrize("cut", [0, 0.5])
def test_annotations_are_not_said_twice_after_a_cut(
    github: GitHubDouble, desk: Desks, waits: list[float], cut: int
) -> None:
    complete_check(desk(), Conclusion.FAILURE, _SAID)
    github.fail("PATCH", "/check-runs", cut=cut)
    complete_check(desk(), Conclusion.FAILURE, _SAID, _annotations(70))
    assert len(github.check_runs[0]["annotations"]) == 70
    assert waits == [1.0]


def test_a_check_run_that_was_made_though_the_answer_was_cut_is_the_one(
    github: GitHubDouble, desk: Desks
) -> None:
    github.fail("POST", "/check-runs", cut=0)
    start_check(desk(), _BUSY)
    complete_check(desk(), Conclusion.SUCCESS, _SAID)
    assert len(github.check_runs) == 1
