"""GitHub's events as recorded: what perfci reads in each."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import events
import pytest
from events import BASE, HEAD

from perfci.ci.event import Event, Kind, Provider
from perfci.ci.events_github import read_github
from perfci.errors import EventError

_RECORDED = sorted(
    each for each in events.FOLDER.glob("*.json") if not each.stem.startswith("gitlab_")
)


def _read(tmp_path: Path, name: str, **variables: str) -> Event:
    return read_github(events.github(name, tmp_path, **variables), tmp_path)


@pytest.mark.parametrize(
    ("name", "kind", "head", "base", "ref"),
    [
        ("push", Kind.PUSH, HEAD, BASE, "refs/heads/main"),
        ("push_forced", Kind.PUSH, HEAD, BASE, "refs/heads/main"),
        ("push_new_default_branch", Kind.PUSH, HEAD, None, "refs/heads/main"),
        ("push_new_branch", Kind.PUSH, HEAD, None, "refs/heads/topic/$(touch x);rm -rf ."),
        ("push_deleted", Kind.DELETION, None, BASE, "refs/heads/topic"),
        ("push_tag", Kind.TAG, HEAD, None, "refs/tags/v1.0"),
        ("delete", Kind.DELETION, None, None, "refs/heads/topic"),
        ("pull_request", Kind.PULL_REQUEST, HEAD, BASE, "refs/pull/7/merge"),
        ("pull_request_fork", Kind.PULL_REQUEST, HEAD, BASE, "refs/pull/7/merge"),
        ("merge_group", Kind.MERGE_GROUP, HEAD, BASE, None),
        ("schedule", Kind.SCHEDULE, HEAD, None, "refs/heads/main"),
        ("workflow_dispatch", Kind.DISPATCH, HEAD, None, "refs/heads/main"),
        ("workflow_run_requested", Kind.WORKFLOW_RUN, HEAD, None, "refs/heads/topic"),
        ("workflow_run_completed", Kind.WORKFLOW_RUN, HEAD, None, "refs/heads/topic"),
    ],
)
def test_what_an_event_is_about(
    tmp_path: Path, name: str, kind: Kind, head: str | None, base: str | None, ref: str | None
) -> None:
    event = _read(tmp_path, name)
    assert (event.kind, event.head, event.base) == (kind, head, base)
    assert ref in (None, event.ref)
    assert event.provider is Provider.GITHUB
    assert (event.repository, event.default_branch) == ("example/kernels", "main")
    assert event.is_forced is (name == "push_forced")


def test_a_pull_request_is_looked_at_at_its_own_head_and_not_at_a_merge(tmp_path: Path) -> None:
    variables = events.github("pull_request", tmp_path)
    assert variables["GITHUB_SHA"] == events.MERGE
    assert read_github(variables, tmp_path).head == HEAD


@pytest.mark.parametrize(
    ("name", "source", "is_fork", "label", "labels"),
    [
        ("pull_request", "example/kernels", False, None, ()),
        ("pull_request_labeled", "example/kernels", False, "perf", ("perf",)),
        ("pull_request_fork", "stranger/kernels", True, None, ()),
        ("pull_request_fork_synchronize", "stranger/kernels", True, None, ("perf-approved",)),
        (
            "pull_request_fork_labeled",
            "stranger/kernels",
            True,
            "perf-approved",
            ("documentation", "perf-approved"),
        ),
        ("pull_request_fork_gone", None, True, None, ()),
    ],
)
def test_whose_a_pull_request_is_and_what_is_on_it(
    tmp_path: Path,
    name: str,
    source: str | None,
    is_fork: bool,
    label: str | None,
    labels: tuple[str, ...],
) -> None:
    request = _read(tmp_path, name).pull_request
    assert request is not None
    assert (request.number, request.base_branch) == (7, "main")
    assert (request.head_repository, request.is_fork) == (source, is_fork)
    assert (request.label, request.labels) == (label, labels)


def test_a_repetition_is_numbered(tmp_path: Path) -> None:
    event = _read(tmp_path, "pull_request", GITHUB_RUN_ATTEMPT="3")
    assert (event.attempt, event.run_id) == (3, "6001")


def test_a_workflow_run_event_tells_of_the_run_that_it_is_about(tmp_path: Path) -> None:
    event = _read(tmp_path, "workflow_run_requested", GITHUB_RUN_ID="99")
    assert (event.action, event.run_id, event.attempt) == ("requested", "6001", 2)


def test_what_was_filled_in_is_text(tmp_path: Path) -> None:
    event = _read(tmp_path, "workflow_dispatch_bisect")
    assert event.asked("range") == f"{BASE}..{HEAD}"
    assert (event.asked("case"), event.asked("timer")) == ("large", "")
    path = tmp_path / "workflow_dispatch_bisect.json"
    payload = json.loads(path.read_text())
    payload["inputs"] = {"act": True, "range": None, "runner": 5}
    path.write_text(json.dumps(payload))
    variables = events.github("workflow_dispatch", tmp_path, GITHUB_EVENT_PATH=str(path))
    event = read_github(variables, tmp_path)
    assert event.inputs == (("act", "true"), ("range", ""), ("runner", "5"))


_ODD: tuple[Any, ...] = (None, [], [5], {}, {"name": 5}, "x", "\u202e", 5, -1, True)


@pytest.mark.parametrize("name", [each.stem for each in _RECORDED])
def test_whatever_a_payload_holds_it_is_an_event_or_none(tmp_path: Path, name: str) -> None:
    variables = events.github(name, tmp_path)
    path = Path(variables["GITHUB_EVENT_PATH"])
    for payload in _damaged(json.loads(path.read_text())):
        path.unlink()  # written over, a file is put on the disk at once, which takes its time
        path.write_text(json.dumps(payload))
        try:
            found = read_github(variables, tmp_path)
        except EventError as error:
            assert str(error).isprintable()  # noqa: PT017
        else:
            shas = [each for each in (found.head, found.base) if each is not None]
            assert all(re.fullmatch("[0-9a-f]{40}", each) for each in shas)
            assert repr(found).isprintable()


def _damaged(value: Any) -> Iterator[Any]:
    """The value with one part of it after the other replaced by what should not be there."""
    yield from _ODD
    if isinstance(value, dict):
        for key in value:
            yield from ({**value, key: each} for each in _damaged(value[key]))


def _without(*names: str) -> dict[str, str]:
    return dict.fromkeys(names, "")


@pytest.mark.parametrize(
    ("name", "variables", "words"),
    [
        ("push", _without("GITHUB_EVENT_NAME"), "GITHUB_EVENT_NAME is not set"),
        ("push", _without("GITHUB_EVENT_PATH"), "GITHUB_EVENT_PATH is not set"),
        ("push", {"GITHUB_EVENT_PATH": "/nowhere/event.json"}, "No such file"),
        ("push", {"GITHUB_EVENT_PATH": "/"}, "Is a directory"),
        ("push", {"GITHUB_EVENT_PATH": "a\0b"}, "cannot be read"),
        ("push", {"GITHUB_EVENT_NAME": "issue_comment"}, "=issue_comment: perfci ci acts on push"),
        ("push", {"GITHUB_EVENT_NAME": "pull_request_target"}, "use pull_request"),
        ("push", {"GITHUB_EVENT_NAME": "pull_request"}, "no pull_request.number in it"),
        ("pull_request", {"GITHUB_EVENT_NAME": "push"}, "no ref in it"),
        ("push", {"GITHUB_RUN_ATTEMPT": "two"}, "GITHUB_RUN_ATTEMPT=two: must be a number"),
        ("push", {"GITHUB_RUN_ATTEMPT": "0"}, "attempt 0"),
        ("schedule", {"GITHUB_SHA": "main"}, "'main' is no commit"),
        ("schedule", {"GITHUB_SHA": ""}, "GITHUB_SHA is not set"),
        ("push", {"GITHUB_EVENT_NAME": "x\n::error::y"}, "perfci ci acts on push"),
    ],
)
def test_what_is_no_event_is_one_line(
    tmp_path: Path, name: str, variables: dict[str, str], words: str
) -> None:
    with pytest.raises(EventError) as refused:
        _read(tmp_path, name, **variables)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"a": 1, "a": 2}', '{"a": NaN}', "\x00", "[" * 100_000],
    ids=["empty", "cut", "list", "null", "twice", "nan", "binary", "deep"],
)
def test_a_garbled_file_is_one_line(tmp_path: Path, text: str) -> None:
    variables = events.github("push", tmp_path)
    Path(variables["GITHUB_EVENT_PATH"]).write_text(text)
    with pytest.raises(EventError, match=r"push\.json: no event") as refused:
        read_github(variables, tmp_path)
    assert "\n" not in str(refused.value)


def _changed(payload: Any, path: str, value: Any) -> Any:
    *parts, last = path.split(".")
    found = payload
    for part in parts:
        found = found[part]
    found[last] = value
    return payload


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("pull_request.head.sha", "main"),
        ("pull_request.head.sha", "--upload-pack=touch x"),
        ("pull_request.head.sha", None),
        ("pull_request.head", "x"),
        ("pull_request.number", "7"),
        ("pull_request.number", True),
        ("pull_request.base.ref", 5),
        ("pull_request.base.ref", "a\nb"),
        ("pull_request.labels", 5),
        ("pull_request.labels", [5]),
        ("pull_request.head.repo.full_name", 5),
        ("pull_request.base.repo", None),
        ("repository.default_branch", []),
        ("action", None),
    ],
)
def test_a_field_that_is_none_is_one_line(tmp_path: Path, path: str, value: Any) -> None:
    variables = events.github("pull_request", tmp_path)
    file = Path(variables["GITHUB_EVENT_PATH"])
    file.write_text(json.dumps(_changed(json.loads(file.read_text()), path, value)))
    with pytest.raises(EventError) as refused:
        read_github(variables, tmp_path)
    assert "\n" not in str(refused.value)
