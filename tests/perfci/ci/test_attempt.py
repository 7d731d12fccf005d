"""What GitHub tells of the run that is reported, and what is no such thing."""

import json
from pathlib import Path
from typing import Any

import pytest

from perfci.ci.attempt import read_attempt
from perfci.errors import EventError


def _event(**run: Any) -> dict[str, Any]:
    known = {
        "id": 7,
        "run_attempt": 2,
        "created_at": "2026-01-31T11:00:00Z",
        "run_started_at": "2026-01-31T12:00:00Z",
        "actor": {"id": 9, "login": "member"},
        "triggering_actor": {"id": 8, "login": "repeats"},
        "event": "pull_request",
        "head_sha": "a" * 40,
        "head_branch": "topic",
        "head_repository": {"full_name": "fork/kernels"},
        "conclusion": "success",
        "pull_requests": [{"number": 3}],
    }
    return {
        "action": "completed",
        "repository": {"full_name": "example/kernels"},
        "workflow_run": {**known, **run},
    }


def _write(folder: Path, event: Any) -> Path:
    path = folder / "event.json"
    path.write_text(json.dumps(event), encoding="utf-8")
    return path


def test_an_attempt_is_read(tmp_path: Path) -> None:
    attempt = read_attempt(_write(tmp_path, _event()))
    assert (attempt.repository, attempt.kind, attempt.head) == (
        "example/kernels", "pull_request", "a" * 40
    )  # fmt: skip
    assert (attempt.run_id, attempt.attempt, attempt.pulls) == (7, 2, (3,))
    assert attempt.actor == 9
    assert attempt.is_fork
    assert attempt.url == "https://github.com/example/kernels/actions/runs/7/attempts/2"


@pytest.mark.parametrize("url", ["javascript:alert(1)", "https://x) [y](https://z", ""])
def test_an_address_that_is_none_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(EventError, match="is no address"):
        read_attempt(_write(tmp_path, _event()), server_url=url)


def test_a_fork_that_is_gone_is_a_fork(tmp_path: Path) -> None:
    attempt = read_attempt(_write(tmp_path, _event(head_repository=None, head_branch=None)))
    assert attempt.head_repository is None
    assert attempt.is_fork


@pytest.mark.parametrize(
    ("run", "place"),
    [
        ({"head_sha": "HEAD"}, "HEAD"),
        ({"head_sha": "0" * 40}, "0" * 40),
        ({"id": "7"}, "workflow_run.id"),
        ({"id": True}, "workflow_run.id"),
        ({"run_attempt": 0}, "workflow_run.run_attempt"),
        ({"run_started_at": "yesterday"}, "workflow_run.run_started_at"),
        ({"head_branch": "a\nb"}, "workflow_run.head_branch"),
        ({"head_repository": {"full_name": "a/b/c"}}, "workflow_run.head_repository.full_name"),
        ({"pull_requests": [{"number": "3"}]}, "workflow_run.pull_requests[0].number"),
        ({"pull_requests": {}}, "workflow_run.pull_requests"),
    ],
)
def test_what_is_not_as_github_writes_it_is_named(
    tmp_path: Path, run: dict[str, Any], place: str
) -> None:
    with pytest.raises(EventError) as raised:
        read_attempt(_write(tmp_path, _event(**run)))
    assert place in str(raised.value)
    assert "event.json: no workflow_run event: " in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("event", [[], {}, {"workflow_run": []}, {"workflow_run": {}}, 1])
def test_another_event_is_none(tmp_path: Path, event: Any) -> None:
    with pytest.raises(EventError, match="no workflow_run event"):
        read_attempt(_write(tmp_path, event))


def test_a_file_that_is_no_event_is_named(tmp_path: Path) -> None:
    path = tmp_path / "event.json"
    with pytest.raises(EventError, match="cannot be read"):
        read_attempt(path)
    path.write_text("{", encoding="utf-8")
    with pytest.raises(EventError, match="truncated"):
        read_attempt(path)
