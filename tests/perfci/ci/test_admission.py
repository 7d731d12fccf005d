"""Who may use a runner: every combination of what an event can be."""

import itertools
from dataclasses import replace

import pytest

from perfci.ci.admission import admit
from perfci.ci.event import Event, Kind, Provider, PullRequest

_LABEL = "perf-approved"
_ACTIONS = ("opened", "synchronize", "reopened", "labeled", "unlabeled", "edited")


def _event(kind: Kind, provider: Provider = Provider.GITHUB, **fields: object) -> Event:
    event = Event(
        provider=provider,
        kind=Kind.PUSH,
        repository="example/kernels",
        ref="refs/heads/main",
        default_branch="main",
        head="f" * 40,
    )
    head = None if kind is Kind.DELETION else event.head
    return replace(event, kind=kind, head=head, **fields)  # type: ignore[arg-type]


def _request(**fields: object) -> PullRequest:
    request = PullRequest(
        number=7,
        action="opened",
        base_branch="main",
        head_repository="example/kernels",
        is_fork=False,
    )
    return replace(request, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize("provider", [*Provider])
@pytest.mark.parametrize("kind", [each for each in Kind if each is not Kind.PULL_REQUEST])
def test_what_is_no_pull_request(kind: Kind, provider: Provider) -> None:
    admitted = admit(_event(kind, provider), label=_LABEL).is_admitted
    assert admitted is (kind is not Kind.WORKFLOW_RUN)


@pytest.mark.parametrize(
    ("provider", "is_fork", "action", "label", "is_on"),
    [
        *itertools.product(
            Provider, (False, True), _ACTIONS, (None, _LABEL, "documentation"), (False, True)
        )
    ],
)
def test_a_pull_request(
    provider: Provider, is_fork: bool, action: str, label: str | None, is_on: bool
) -> None:
    request = _request(
        is_fork=is_fork,
        head_repository="stranger/kernels" if is_fork else "example/kernels",
        action=action,
        label=label,
        labels=(_LABEL,) if is_on else (),
    )
    event = _event(Kind.PULL_REQUEST, provider, pull_request=request)
    approved = (provider, action, label) == (Provider.GITHUB, "labeled", _LABEL)
    assert admit(event, label=_LABEL).is_admitted is (not is_fork or approved)


def test_a_fork_that_is_gone_is_one_still() -> None:
    request = _request(is_fork=True, head_repository=None)
    admission = admit(_event(Kind.PULL_REQUEST, pull_request=request), label=_LABEL)
    assert not admission.is_admitted
    assert "a repository that is gone" in admission.reason


def test_a_machine_may_be_for_some_repositories_only() -> None:
    event = _event(Kind.PUSH)
    assert admit(event, label=_LABEL, repositories=("example/kernels",)).is_admitted
    refused = admit(event, label=_LABEL, repositories=("other/kernels",))
    assert (refused.is_admitted, refused.reason) == (
        False,
        "example/kernels is none of other/kernels",
    )


def test_the_label_says_for_which_commit_it_counts() -> None:
    request = _request(is_fork=True, head_repository="stranger/kernels")
    event = _event(Kind.PULL_REQUEST, pull_request=request)
    assert "look at ffffffffff, then put the label 'mine' on" in admit(event, label="mine").reason
    labeled = replace(event, pull_request=replace(request, action="labeled", label="mine"))
    assert admit(labeled, label="mine").reason == (
        "ffffffffff of stranger/kernels was approved by 'mine'"
    )
