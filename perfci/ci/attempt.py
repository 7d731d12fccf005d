"""One attempt of a run of the measuring workflow, as GitHub tells of it.

This is what a report goes by. It is GitHub's own word; what the runners hand over is the word of
the code that was measured, which may be a fork's.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from perfci.ci.event import Event, Kind, require_sha
from perfci.errors import EventError
from perfci.history.strict import JsonError, read_json
from perfci.history.text import is_safe, one_line

GITHUB = "https://github.com"

_LARGEST_EVENT_BYTES = 25 * 2**20
"""What GitHub's events are at most."""

_BEFORE_ALL = "1970-01-01T00:00:00Z"
_KINDS = {
    Kind.PULL_REQUEST: "pull_request",
    Kind.MERGE_GROUP: "merge_group",
    Kind.PUSH: "push",
    Kind.TAG: "push",
}
"""What GitHub calls the events of which there is a check."""

_REPOSITORY = re.compile(r"[A-Za-z0-9._-]{1,100}/[A-Za-z0-9._-]{1,100}", re.ASCII)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)
_URL = re.compile(r"https?://[\w.:/-]{1,300}", re.ASCII)
_LONGEST_NAME = 1000

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One attempt of a workflow's run.

    ``kind`` is the event that had started it. ``head_repository`` is None where the fork is gone.
    ``created_at`` is when the run came to be, ``started_at`` when this attempt did. ``actor`` is
    the number of the account whose act has started the run, whoever repeats it; None where that is
    not known. ``pulls`` are the pull requests that GitHub names, of a fork's branch none.
    ``conclusion`` is None while it goes on.
    """

    repository: str
    kind: str
    head: str
    branch: str
    head_repository: str | None
    run_id: int
    attempt: int
    created_at: str
    started_at: str
    actor: int | None
    url: str
    conclusion: str | None
    pulls: tuple[int, ...]

    @property
    def is_fork(self) -> bool:
        """Whether the code is another repository's."""
        return self.head_repository != self.repository


def read_attempt(path: Path, *, server_url: str = GITHUB) -> Attempt:
    """The attempt that the file of a workflow_run event tells of. Raises EventError.

    ``server_url`` is where people see it.
    """
    where = one_line(str(path))
    try:
        with path.open("rb") as file:
            text = file.read(_LARGEST_EVENT_BYTES + 1)
        if len(text) > _LARGEST_EVENT_BYTES:
            raise EventError(f"{where}: larger than an event can be: not read")
        return _attempt(_Reader(read_json(text), ""), server_url)
    except OSError as error:
        raise EventError(f"{where}: cannot be read: {error.strerror}") from None
    except (JsonError, ValueError) as error:
        raise EventError(f"{where}: no workflow_run event: {one_line(str(error))}") from None


def own_attempt(event: Event, *, server_url: str = GITHUB) -> Attempt:
    """The attempt that this very job is of. Raises EventError where there is no head.

    A job is not told when its run began, so that attempts are in the order of their numbers.
    """
    if event.head is None or not event.run_id.isdecimal():
        raise EventError("there is no commit, or no run, that could be reported of")
    if not is_url(server_url):
        raise EventError(f"GITHUB_SERVER_URL={one_line(server_url, limit=60)} is no address")
    request = event.pull_request
    return Attempt(
        repository=event.repository,
        kind=_KINDS.get(event.kind, str(event.kind)),
        head=event.head,
        branch="",
        head_repository=event.repository if request is None else request.head_repository,
        run_id=int(event.run_id),
        attempt=event.attempt,
        created_at=_BEFORE_ALL,
        started_at=_BEFORE_ALL,
        actor=None,
        url=f"{server_url}/{event.repository}/actions/runs/{event.run_id}/attempts/{event.attempt}",
        conclusion=None,
        pulls=() if request is None else (request.number,),
    )


def is_url(text: str) -> bool:
    """Whether a text may stand in a link as its address."""
    return _URL.fullmatch(text) is not None


def _attempt(event: "_Reader", server_url: str) -> Attempt:
    run = event.enter("workflow_run")
    repository = event.enter("repository").text("full_name", _REPOSITORY)
    run_id, attempt = run.number("id"), run.number("run_attempt")
    if not is_url(server_url):
        raise ValueError(f"GITHUB_SERVER_URL={one_line(server_url, limit=60)} is no address")
    owner = run.enter("head_repository") if run.has("head_repository") else None
    actor = run.enter("actor").number("id") if run.has("actor") else None
    return Attempt(
        repository=repository,
        kind=run.text("event"),
        head=require_sha(run.text("head_sha")),
        branch=run.text("head_branch") if run.has("head_branch") else "",
        head_repository=owner.text("full_name", _REPOSITORY) if owner else None,
        run_id=run_id,
        attempt=attempt,
        created_at=run.text("created_at", _TIME),
        started_at=run.text("run_started_at", _TIME),
        actor=actor,
        url=f"{server_url}/{repository}/actions/runs/{run_id}/attempts/{attempt}",
        conclusion=run.text("conclusion") if run.has("conclusion") else None,
        pulls=tuple(each.number("number") for each in run.list("pull_requests")),
    )


@dataclass(frozen=True, slots=True)
class _Reader:
    """An object of the event; whatever is not as expected is a ValueError that names its place."""

    value: Any
    place: str

    def has(self, name: str) -> bool:
        return isinstance(self.value, dict) and self.value.get(name) is not None

    def enter(self, name: str) -> "_Reader":
        return _Reader(self._get(name, dict), self._at(name))

    def text(self, name: str, pattern: re.Pattern[str] | None = None) -> str:
        text: str = self._get(name, str)
        fits = len(text) <= _LONGEST_NAME and "\n" not in text and is_safe(text)
        if not fits or (pattern is not None and not pattern.fullmatch(text)):
            raise ValueError(f"{self._at(name)} is {one_line(repr(text), limit=60)}")
        return text

    def number(self, name: str) -> int:
        number: int = self._get(name, int)
        if not 0 < number < 10**18:
            raise ValueError(f"{self._at(name)} is {one_line(str(number), limit=30)}")
        return number

    def list(self, name: str) -> list["_Reader"]:
        values: list[Any] = self._get(name, list)
        return [_Reader(each, f"{self._at(name)}[{n}]") for n, each in enumerate(values)]

    def _get(self, name: str, kind: type[Value]) -> Value:
        found = self.value.get(name) if isinstance(self.value, dict) else None
        if not isinstance(found, kind) or isinstance(found, bool):
            raise ValueError(f"{self._at(name)} is missing or of another kind")  # noqa: TRY004
        return found

    def _at(self, name: str) -> str:
        return f"{self.place}.{name}".lstrip(".")
