"""GitHub's events: the variables that its runner sets, and the file with the webhook's payload."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from perfci.ci.event import Event, Kind, Provider, PullRequest
from perfci.errors import EventError
from perfci.history.strict import JsonError, read_json
from perfci.history.text import one_line, printable

_LARGEST_PAYLOAD_BYTES = 32 * 2**20
"""GitHub itself delivers none above 25 MB."""


class _Payload:
    """A payload whose parts are asked for by path; what is not as documented is one line."""

    def __init__(self, body: Any, where: str) -> None:
        self._body = body
        self._where = where

    def find(self, path: str) -> Any:
        """What lies at a path such as ``pull_request.head.sha``; None where nothing does."""
        found = self._body
        for part in path.split("."):
            if not isinstance(found, dict):
                return None
            found = found.get(part)
        return found

    def text(self, path: str) -> str:
        """The text at a path. Raises EventError where there is none."""
        return str(self._required(path, str))

    def text_or_none(self, path: str) -> str | None:
        """The text at a path, None where nothing lies there. Raises EventError of what is none."""
        return None if self.find(path) is None else self.text(path)

    def number(self, path: str) -> int:
        """The whole number at a path. Raises EventError where there is none."""
        return int(self._required(path, int))

    def mapping_or_empty(self, path: str) -> Mapping[str, Any]:
        """What lies at a path by names, nothing where nothing lies there. Raises EventError."""
        found: Mapping[str, Any] = self._required(path, dict) if self.find(path) is not None else {}
        return found

    def _required(self, path: str, kind: type) -> Any:
        found = self.find(path)
        if not isinstance(found, kind) or isinstance(found, bool):
            raise EventError(
                f"{self._where}: no {path} in it, which an event of this kind has: "
                "GITHUB_EVENT_NAME and GITHUB_EVENT_PATH must be those of one event"
            )
        return found


def read_github(variables: Mapping[str, str], root: Path) -> Event:  # noqa: ARG001
    """The event that a job on GitHub is about.

    Raises EventError where there is none, it is not understood, or it is one that perfci does not
    act on.
    """
    name = _variable(variables, "GITHUB_EVENT_NAME")
    if name not in _READERS:
        raise EventError(
            f"GITHUB_EVENT_NAME={one_line(name, limit=60)}: perfci ci acts on "
            f"{', '.join(_READERS)}{_WHY_NOT.get(name, '')}"
        )
    path = Path(_variable(variables, "GITHUB_EVENT_PATH"))
    payload = _Payload(_read_payload(path), one_line(str(path)))
    known: dict[str, Any] = {
        "provider": Provider.GITHUB,
        "repository": payload.text_or_none("repository.full_name")
        or _variable(variables, "GITHUB_REPOSITORY"),
        "default_branch": payload.text_or_none("repository.default_branch") or "",
        "ref": variables.get("GITHUB_REF", ""),
        "run_id": variables.get("GITHUB_RUN_ID", ""),
        "attempt": _attempt(variables),
    }
    try:
        return Event(**{**known, **_READERS[name](payload, variables)})
    except (TypeError, ValueError) as error:
        raise EventError(f"{one_line(str(path))}: {name}: {one_line(str(error))}") from None


def _push(payload: _Payload, variables: Mapping[str, str]) -> dict[str, Any]:  # noqa: ARG001
    ref = payload.text("ref")
    payload.text("repository.default_branch")  # by which it is told what is measured
    if payload.find("deleted") is True:
        return {"kind": Kind.DELETION, "ref": ref, "head": None, "base": _former(payload)}
    # What follows an annotated tag is the tag's own object; the commit is beside it.
    head = payload.text_or_none("head_commit.id") or payload.text("after")
    if ref.startswith("refs/tags/"):
        return {"kind": Kind.TAG, "ref": ref, "head": head}
    forced = payload.find("forced") is True
    base = _former(payload)
    return {"kind": Kind.PUSH, "ref": ref, "head": head, "base": base, "is_forced": forced}


def _former(payload: _Payload) -> str | None:
    """Where a branch was before a push; None where it was nowhere, which is a SHA of zeros."""
    before = payload.text("before")
    return before if before.strip("0") else None


def _delete(payload: _Payload, variables: Mapping[str, str]) -> dict[str, Any]:  # noqa: ARG001
    kind = "tags" if payload.text("ref_type") == "tag" else "heads"
    return {"kind": Kind.DELETION, "ref": f"refs/{kind}/{payload.text('ref')}", "head": None}


def _pull_request(payload: _Payload, variables: Mapping[str, str]) -> dict[str, Any]:
    number = payload.number("pull_request.number")
    home = payload.text("pull_request.base.repo.full_name")
    source = payload.text_or_none("pull_request.head.repo.full_name")
    labels = payload.find("pull_request.labels")
    action = payload.text("action")
    request = PullRequest(
        number=number,
        action=action,
        base_branch=payload.text("pull_request.base.ref"),
        head_repository=source,
        is_fork=source != home,
        labels=tuple(printable(_Payload(e, "labels").text("name")) for e in labels or ()),
        label=printable(payload.text("label.name")) if action == "labeled" else None,
    )
    return {
        "kind": Kind.PULL_REQUEST,
        "repository": home,
        "ref": variables.get("GITHUB_REF") or f"refs/pull/{number}/merge",
        "head": payload.text("pull_request.head.sha"),
        "base": payload.text("pull_request.base.sha"),
        "pull_request": request,
    }


def _merge_group(payload: _Payload, variables: Mapping[str, str]) -> dict[str, Any]:  # noqa: ARG001
    return {
        "kind": Kind.MERGE_GROUP,
        "ref": payload.text("merge_group.head_ref"),
        "head": payload.text("merge_group.head_sha"),
        "base": payload.text("merge_group.base_sha"),
    }


def _schedule(payload: _Payload, variables: Mapping[str, str]) -> dict[str, Any]:
    ref = _variable(variables, "GITHUB_REF")  # the default branch's, by GitHub's own rule
    return {
        "kind": Kind.SCHEDULE,
        "ref": ref,
        "default_branch": payload.text_or_none("repository.default_branch")
        or ref.removeprefix("refs/heads/"),
        "head": _variable(variables, "GITHUB_SHA"),
    }


def _dispatch(payload: _Payload, variables: Mapping[str, str]) -> dict[str, Any]:
    inputs = payload.mapping_or_empty("inputs")
    return {
        "kind": Kind.DISPATCH,
        "ref": payload.text("ref"),
        "head": _variable(variables, "GITHUB_SHA"),
        "inputs": tuple((name, _word(inputs[name])) for name in inputs),
    }


def _word(value: Any) -> str:
    """What was filled in, as text: boxes are true or false, what was left out is empty."""
    if value is None or isinstance(value, bool):
        return "" if value is None else str(value).lower()
    return str(value).strip()


def _workflow_run(payload: _Payload, variables: Mapping[str, str]) -> dict[str, Any]:  # noqa: ARG001
    branch = payload.text_or_none("workflow_run.head_branch")
    return {
        "kind": Kind.WORKFLOW_RUN,
        "action": payload.text("action"),
        "ref": f"refs/heads/{printable(branch)}" if branch else "",
        "head": payload.text("workflow_run.head_sha"),
        "run_id": str(payload.number("workflow_run.id")),
        "attempt": payload.number("workflow_run.run_attempt"),
    }


_READERS: Mapping[str, Callable[[_Payload, Mapping[str, str]], dict[str, Any]]] = {
    "push": _push,
    "delete": _delete,
    "pull_request": _pull_request,
    "merge_group": _merge_group,
    "schedule": _schedule,
    "workflow_dispatch": _dispatch,
    "workflow_run": _workflow_run,
}
_WHY_NOT = {
    "pull_request_target": "; pull_request_target gives the code of forks the rights of the "
    "repository: use pull_request, and report from workflow_run",
}


def _variable(variables: Mapping[str, str], name: str) -> str:
    if not variables.get(name):
        raise EventError(f"{name} is not set: a job on GitHub has it")
    return variables[name]


def _attempt(variables: Mapping[str, str]) -> int:
    text = variables.get("GITHUB_RUN_ATTEMPT") or "1"
    if not text.isdecimal() or not text.isascii() or len(text) > 9:
        raise EventError(f"GITHUB_RUN_ATTEMPT={one_line(text, limit=60)}: must be a number")
    return int(text)


def _read_payload(path: Path) -> Any:
    try:
        with path.open("rb") as file:
            text = file.read(_LARGEST_PAYLOAD_BYTES + 1)
        if len(text) > _LARGEST_PAYLOAD_BYTES:
            raise EventError(f"{one_line(str(path))}: larger than an event can be: not read")
        body = read_json(text)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        what = "no event" if isinstance(error, JsonError) else "cannot be read"
        raise EventError(f"{one_line(str(path))}: {what}: {one_line(str(reason))}") from None
    if not isinstance(body, dict):
        raise EventError(f"{one_line(str(path))}: no event: not a JSON object")
    return body
