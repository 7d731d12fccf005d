"""Events: what one may hold, whoever sends it."""

from typing import Any

import pytest

from perfci.ci.event import Event, Kind, Provider, PullRequest

_HEAD = "a" * 40


def _event(**fields: Any) -> Event:
    known: dict[str, Any] = {
        "provider": Provider.GITHUB,
        "kind": Kind.PUSH,
        "repository": "example/kernels",
        "ref": "refs/heads/main",
        "default_branch": "main",
        "head": _HEAD,
    }
    return Event(**{**known, **fields})


def _pull_request(**fields: Any) -> PullRequest:
    known: dict[str, Any] = {
        "number": 7,
        "action": "opened",
        "base_branch": "main",
        "head_repository": "example/kernels",
        "is_fork": False,
    }
    return PullRequest(**{**known, **fields})


def test_a_branch_is_what_a_ref_of_one_names() -> None:
    assert (_event().branch, _event().is_default_branch) == ("main", True)
    topic = _event(ref="refs/heads/fix/main")
    assert (topic.branch, topic.is_default_branch) == ("fix/main", False)
    tag = _event(kind=Kind.TAG, ref="refs/tags/main")
    assert (tag.branch, tag.is_default_branch) == (None, False)


def test_what_was_filled_in_is_found_by_its_name() -> None:
    event = _event(kind=Kind.DISPATCH, inputs=(("act", "bisect"),))
    assert (event.asked("act"), event.asked("range")) == ("bisect", "")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"head": "main"}, "'main' is no commit"),
        ({"head": "A" * 40}, "is no commit"),
        ({"head": "0" * 40}, "is no commit"),
        ({"head": f"{_HEAD}\n"}, "is no commit"),
        ({"base": "--upload-pack=touch x"}, "is no commit"),
        ({"head": None}, "a push event lacks a head commit"),
        ({"kind": Kind.DELETION}, "a deletion event has a head commit"),
        ({"kind": Kind.PULL_REQUEST}, "no pull request"),
        ({"pull_request": _pull_request()}, "without its kind"),
        ({"attempt": 0}, "attempt 0"),
        ({"ref": "refs/heads/a\nb=c"}, "no name"),
        ({"repository": "a\x1b[31m"}, "no name"),
        ({"inputs": (("range", "x" * 1001),)}, "no name"),
    ],
)
def test_what_no_event_may_hold_is_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=r".+") as refused:
        _event(**fields)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    "fields",
    [{"number": 0}, {"base_branch": "a\nb"}, {"labels": ("a\x00",)}, {"label": "x" * 1001}],
)
def test_what_no_pull_request_may_hold_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"no name|above 0"):
        _pull_request(**fields)
