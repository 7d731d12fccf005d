"""A repository on GitHub, as far as a report needs it: the only caller of PyGithub.

PyGithub's own retries and pauses are switched off. By default it repeats a refusal or a broken
connection up to ten times, sleeping inside; here each call is one request, and what is to be done
about a failure is decided by ``perfci.ci.patience``.
"""

import contextlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

import requests
from github import Auth, Github, GithubException
from github.GithubException import (
    BadAttributeException,
    RateLimitExceededException,
    UnknownObjectException,
)
from github.NamedUser import NamedUser
from github.Organization import Organization
from github.PullRequest import PullRequest
from github.Repository import Repository as GitHubRepository

from perfci.ci.patience import GoneError, RefusedError, UnavailableError
from perfci.history.text import one_line

_TIMEOUT_S = 30
_PER_PAGE = 100
_LIMITED_WAIT_S = 60.0
"""How long to leave GitHub alone that says 'too much' and not for how long: its own advice."""

_WHO_AM_I = "query { viewer { databaseId } }"


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Where GitHub is, which repository is meant, and the token that opens it."""

    api_url: str
    repository: str
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """One comment of a pull request; ``author`` is None where the account is gone."""

    number: int
    author: int | None
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pull:
    """One open pull request; ``head_repository`` is None where the fork is gone."""

    number: int
    head: str
    head_repository: str | None
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRun:
    """One check run of a commit; ``annotations`` is how many it has."""

    number: int
    external_id: str
    status: str
    conclusion: str | None
    annotations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFile:
    """A file that a pull request changes; ``patch`` is empty where GitHub gives none.

    ``former_path`` is where it was before, empty where that is the same.
    """

    path: str
    patch: str
    former_path: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelling:
    """That a label was put on; ``actor`` is who did it, None where the account is gone."""

    at: datetime
    actor: int | None


class Repository:
    """A repository on GitHub. Each method is one call, or one call a page.

    All raise RefusedError, GoneError where there is no such thing, or UnavailableError.
    """

    def __init__(self, access: Access) -> None:
        self._github = Github(
            auth=Auth.Token(access.token),
            base_url=access.api_url,
            timeout=_TIMEOUT_S,
            user_agent="perfci",
            per_page=_PER_PAGE,
            retry=None,
            seconds_between_requests=None,
            seconds_between_writes=None,
            lazy=True,
        )
        self._repository = self._github.get_repo(access.repository)
        self._own_number: int | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._github.close()

    # No cached_property, which until Python 3.12 lets one instance at a time ask, of all there are.
    @property
    def own_number(self) -> int:
        """The number of the account whose token this is, a bot's too; asked for once."""
        if self._own_number is None:
            with _translated():
                # GET /user is refused to the token of a workflow; this is not.
                _, answer = self._github.requester.graphql_query(_WHO_AM_I, {})
                self._own_number = int(answer["data"]["viewer"]["databaseId"])
        return self._own_number

    def list_pulls(self, owner: str, branch: str) -> list[Pull]:
        """The open pull requests from a branch of an owner's repositories."""
        with _translated():
            pulls = self._repository.get_pulls(state="open", head=f"{owner}:{branch}")
            return [_pull(each) for each in pulls]

    def list_open(self, numbers: Sequence[int]) -> list[Pull]:
        """Those of the pull requests with these numbers that are there and open.

        GitHub's events may name some of another repository, a fork that takes in a branch of this.
        """
        found = []
        for each in numbers:
            with _translated(), contextlib.suppress(UnknownObjectException):
                pull = self._repository.get_pull(each)
                found += [_pull(pull)] if pull.state == "open" else []
        return found

    def list_changed_files(self, number: int) -> list[ChangedFile]:
        """The files that a pull request changes."""
        with _translated():
            return [
                ChangedFile(
                    path=each.filename,
                    patch=each.patch or "",
                    former_path=each.previous_filename or "",
                )
                for each in self._repository.get_pull(number).get_files()
            ]

    def list_labellings(self, number: int, label: str) -> list[Labelling]:
        """When and by whom a label was put onto a pull request, each time."""
        with _translated():
            return [
                Labelling(at=each.created_at, actor=_number_of(each.actor))
                for each in self._repository.get_issue(number).get_events()
                if each.event == "labeled" and each.label.name == label
            ]

    def list_comments(self, number: int) -> list[Comment]:
        """The comments of a pull request, the oldest first."""
        with _translated():
            return [
                Comment(number=each.id, author=_number_of(each.user), body=each.body or "")
                for each in self._repository.get_issue(number).get_comments()
            ]

    def create_comment(self, number: int, body: str) -> None:
        """Write a comment under a pull request."""
        with _translated():
            self._repository.get_issue(number).create_comment(body)

    def update_comment(self, number: int, comment: int, body: str) -> None:
        """Write over a comment of a pull request."""
        with _translated():
            self._repository.get_issue(number).get_comment(comment).edit(body)

    def delete_comment(self, number: int, comment: int) -> None:
        """Delete a comment of a pull request."""
        with _translated():
            self._repository.get_issue(number).get_comment(comment).delete()

    def list_check_runs(self, head: str, name: str) -> list[CheckRun]:
        """The check runs of that name at a commit, all of them."""
        with _translated():
            commit = self._repository.get_commit(head)
            return [
                CheckRun(
                    number=each.id,
                    external_id=each.external_id or "",
                    status=each.status,
                    conclusion=each.conclusion,
                    annotations=each.output.annotations_count or 0,
                )
                for each in commit.get_check_runs(check_name=name, filter="all")
            ]

    def create_check_run(
        self,
        head: str,
        name: str,
        *,
        external_id: str,
        details_url: str,
        title: str,
        summary: str,
    ) -> None:
        """Start a check run at a commit: it is in progress."""
        with _translated():
            self._repository.create_check_run(
                name,
                head,
                external_id=external_id,
                details_url=details_url,
                status="in_progress",
                output={"title": title, "summary": summary},
            )

    def complete_check_run(
        self,
        number: int,
        *,
        conclusion: str,
        title: str,
        summary: str,
        completed_at: datetime | None = None,
    ) -> None:
        """End a check run, now or at a time in UTC."""
        moment: dict[str, Any] = {} if completed_at is None else {"completed_at": completed_at}
        with _translated():
            self._repository.get_check_run(number).edit(
                status="completed",
                conclusion=conclusion,
                output={"title": title, "summary": summary},
                **moment,
            )

    def annotate_check_run(
        self, number: int, *, title: str, summary: str, annotations: Sequence[dict[str, Any]]
    ) -> None:
        """Add annotations, at most 50, to those that a check run has."""
        with _translated():
            self._repository.get_check_run(number).edit(
                output={"title": title, "summary": summary, "annotations": list(annotations)}
            )


def _pull(pull: PullRequest) -> Pull:
    source: GitHubRepository | None = pull.head.repo  # None where the fork is gone
    return Pull(
        number=pull.number,
        head=pull.head.sha,
        head_repository=None if source is None else source.full_name,
        labels=tuple(label.name for label in pull.labels),
    )


def _number_of(user: NamedUser | Organization | None) -> int | None:
    """The number of an account; None where it is gone."""
    return None if user is None else user.id


@contextmanager
def _translated() -> Iterator[None]:
    """The many ways in which a call fails as the few that matter."""
    try:
        yield
    except GithubException as error:
        raise _translate(error) from None
    except requests.RequestException as error:
        # Its text may name hosts and ports; its kind says what a reader needs.
        raise UnavailableError(f"no answer ({type(error).__name__})") from None
    except (BadAttributeException, ValueError, TypeError, KeyError, AssertionError):
        # Cut within JSON, or the page of some proxy: PyGithub has no error of its own for it.
        raise UnavailableError("an answer that is none of GitHub's") from None


def _translate(error: GithubException) -> Exception:
    reason = one_line(f"{error.status} {_message_of(error)}", limit=160)
    headers = error.headers or {}
    wait_s = _read_seconds(headers.get("retry-after"))
    is_limit = isinstance(error, RateLimitExceededException) or error.status == 429
    if is_limit or (error.status == 403 and wait_s is not None):
        return UnavailableError(reason, wait_s=_LIMITED_WAIT_S if wait_s is None else wait_s)
    if error.status >= 500 or error.status == 408:
        return UnavailableError(reason, wait_s=wait_s)
    if isinstance(error, UnknownObjectException) or error.status in (404, 410):
        return GoneError(reason)
    return RefusedError(reason)


def _message_of(error: GithubException) -> str:
    answer = error.data
    message = answer.get("message") if isinstance(answer, dict) else None
    return message if isinstance(message, str) else ""


def _read_seconds(text: str | None) -> float | None:
    return float(text) if text is not None and text.isascii() and text.isdigit() else None
