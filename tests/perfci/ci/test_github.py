"""What is asked of GitHub, and how its failures are told apart; each call is one request."""

import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest
from github_double import (
    BOT,
    FORK,
    NO_RIGHTS,
    REPOSITORY,
    SECONDARY,
    TOKEN,
    GitHubDouble,
    Pull,
)

from perfci.ci.github import Access, ChangedFile, Comment, Repository
from perfci.ci.patience import GoneError, RefusedError, UnavailableError


@pytest.fixture
def repository(github: GitHubDouble) -> Iterator[Repository]:
    access = Access(api_url=github.url, repository=REPOSITORY, token=TOKEN)
    with Repository(access) as opened:
        yield opened


def test_lists_are_read_to_their_last_page(github: GitHubDouble, repository: Repository) -> None:
    github.pulls[7] = Pull(7, "a" * 40, "topic")
    github.page_size = 2
    numbers = [github.add_comment(7, f"comment {n}") for n in range(5)]
    comments = repository.list_comments(7)
    assert [each.number for each in comments] == numbers
    assert comments[0] == Comment(number=numbers[0], author=BOT, body="comment 0")
    assert github.count("GET") == 3


def test_a_pull_request_is_found_by_owner_and_branch(
    github: GitHubDouble, repository: Repository
) -> None:
    github.pulls = {
        1: Pull(1, "a" * 40, "topic", labels=["perf"]),
        2: Pull(2, "b" * 40, "topic", repository=FORK),
        3: Pull(3, "c" * 40, "topic", state="closed"),
        4: Pull(4, "d" * 40, "odd & branch?", repository=None),
    }
    (own,) = repository.list_pulls("example", "topic")
    assert (own.number, own.head, own.head_repository, own.labels) == (
        1, "a" * 40, REPOSITORY, ("perf",)
    )  # fmt: skip
    (gone,) = repository.list_pulls("fork", "odd & branch?")
    assert gone.head_repository is None


def test_changed_files_come_with_their_patches(
    github: GitHubDouble, repository: Repository
) -> None:
    files = [
        {"filename": "a.py", "status": "modified", "patch": "@@ -1 +1 @@"},
        {"filename": "big.bin", "status": "added"},
    ]
    github.pulls[7] = Pull(7, "a" * 40, "topic", files=files)
    assert repository.list_changed_files(7) == [
        ChangedFile(path="a.py", patch="@@ -1 +1 @@"),
        ChangedFile(path="big.bin", patch=""),
    ]


@pytest.mark.parametrize(
    ("how", "error", "reason", "wait_s"),
    [
        ({"status": 403, "message": NO_RIGHTS}, RefusedError, f"403 {NO_RIGHTS}", None),
        ({"status": 401, "message": "Bad credentials"}, RefusedError, "401 Bad creden", None),
        ({"status": 422, "message": "Validation Failed"}, RefusedError, "422 Valid", None),
        ({"status": 404, "message": "Not Found"}, GoneError, "404 Not Found", None),
        ({"status": 410, "message": "Gone"}, GoneError, "410 Gone", None),
        ({"status": 403, "message": SECONDARY}, UnavailableError, "403 You have exc", 60.0),
        (
            {"status": 403, "message": "slow down", "headers": {"Retry-After": "7"}},
            UnavailableError, "403 slow down", 7.0,
        ),
        (
            {"status": 429, "message": "slow down", "headers": {"Retry-After": "9"}},
            UnavailableError, "429 slow down", 9.0,
        ),
        ({"status": 429, "headers": {"Retry-After": "soon"}}, UnavailableError, "429", 60.0),
        ({"status": 500}, UnavailableError, "500", None),
        ({"status": 502, "page": "<html>Bad gateway"}, UnavailableError, "502", None),
        ({"status": 503, "headers": {"Retry-After": "3"}}, UnavailableError, "503", 3.0),
        ({"cut": 0}, UnavailableError, "no answer", None),
        ({"cut": 0.5}, UnavailableError, "no answer", None),
        ({"page": "<html>Welcome to the airport"}, UnavailableError, "none of GitHub's", None),
        ({"page": '[{"id": 1, "body"'}, UnavailableError, "none of GitHub's", None),
    ],
)  # fmt: skip
def test_failures_are_told_apart_in_one_request(
    github: GitHubDouble,
    repository: Repository,
    monkeypatch: pytest.MonkeyPatch,
    how: dict[str, Any],
    error: type[Exception],
    reason: str,
    wait_s: float | None,
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    github.pulls[7] = Pull(7, "a" * 40, "topic")
    github.fail("GET", "comments", **how)
    with pytest.raises(error) as raised:
        repository.list_comments(7)
    assert type(raised.value) is error
    assert reason in str(raised.value)
    assert "\n" not in str(raised.value)
    assert getattr(raised.value, "wait_s", None) == wait_s
    assert github.count("GET") == 1  # PyGithub's own retries are off,
    assert slept == []  # and so are its pauses


def test_calls_follow_one_another_without_a_pause(
    github: GitHubDouble, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    github.pulls[7] = Pull(7, "a" * 40, "topic")
    for _ in range(2):
        repository.create_comment(7, "text")
        repository.list_comments(7)
    assert slept == []


def test_a_server_that_is_not_there_is_unavailable() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with (
            Repository(Access(api_url=url, repository=REPOSITORY, token=TOKEN)) as repository,
            pytest.raises(UnavailableError, match=r"^no answer \(ConnectionError\)$"),
        ):
            repository.list_comments(7)


def test_a_token_that_is_none_is_refused(github: GitHubDouble) -> None:
    access = Access(api_url=github.url, repository=REPOSITORY, token="other")
    with Repository(access) as repository, pytest.raises(RefusedError, match="401"):
        _ = repository.own_number
