"""GitLab's events as recorded: what perfci reads in each."""

from pathlib import Path

import events
import pytest
from events import BASE, HEAD

from perfci.ci.event import Kind, Provider
from perfci.ci.events_gitlab import read_gitlab
from perfci.errors import EventError

_NOWHERE = Path("/nowhere")


@pytest.mark.parametrize(
    ("name", "kind", "base", "ref"),
    [
        ("push", Kind.PUSH, BASE, "refs/heads/main"),
        ("push_new_branch", Kind.PUSH, None, "refs/heads/topic"),
        ("tag", Kind.TAG, None, "refs/tags/v1.0"),
        ("merge_request", Kind.PULL_REQUEST, BASE, "refs/merge-requests/7/head"),
        ("merge_request_merged", Kind.PULL_REQUEST, BASE, "refs/merge-requests/7/head"),
        ("merge_request_fork", Kind.PULL_REQUEST, BASE, "refs/merge-requests/7/head"),
        ("schedule", Kind.SCHEDULE, None, "refs/heads/main"),
        ("web", Kind.DISPATCH, None, "refs/heads/main"),
    ],
)
def test_what_an_event_is_about(name: str, kind: Kind, base: str | None, ref: str) -> None:
    event = read_gitlab(events.gitlab(name), _NOWHERE)
    assert (event.provider, event.kind) == (Provider.GITLAB, kind)
    assert (event.head, event.base, event.ref) == (HEAD, base, ref)
    assert (event.repository, event.default_branch) == ("example/kernels", "main")
    assert (event.run_id, event.attempt) == ("6001", 1)


@pytest.mark.parametrize(
    ("name", "source", "is_fork", "labels"),
    [
        ("merge_request", "example/kernels", False, ("perf", "backend")),
        ("merge_request_fork", "stranger/kernels", True, ("perf-approved",)),
    ],
)
def test_whose_a_merge_request_is(
    name: str, source: str, is_fork: bool, labels: tuple[str, ...]
) -> None:
    request = read_gitlab(events.gitlab(name), _NOWHERE).pull_request
    assert request is not None
    assert (request.number, request.base_branch) == (7, "main")
    assert (request.head_repository, request.is_fork) == (source, is_fork)
    assert request.labels == labels


@pytest.mark.parametrize(
    ("name", "variables", "words"),
    [
        ("push", {"CI_PIPELINE_SOURCE": ""}, "CI_PIPELINE_SOURCE is not set"),
        ("push", {"CI_PIPELINE_SOURCE": "chat"}, "CI_PIPELINE_SOURCE=chat: perfci ci acts on"),
        ("push", {"CI_COMMIT_SHA": "HEAD"}, "'HEAD' is no commit"),
        ("push", {"CI_COMMIT_BEFORE_SHA": "x"}, "'x' is no commit"),
        ("push", {"CI_COMMIT_REF_NAME": "a\nb"}, "no name"),
        ("push", {"CI_DEFAULT_BRANCH": ""}, "CI_DEFAULT_BRANCH is not set"),
        ("merge_request", {"CI_MERGE_REQUEST_IID": "x"}, "CI_MERGE_REQUEST_IID=x: must be"),
        ("merge_request", {"CI_MERGE_REQUEST_IID": "0"}, "above 0"),
    ],
)
def test_what_is_no_event_is_one_line(name: str, variables: dict[str, str], words: str) -> None:
    with pytest.raises(EventError) as refused:
        read_gitlab(events.gitlab(name, **variables), _NOWHERE)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)
