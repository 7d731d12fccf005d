"""GitLab's events: the variables that it predefines for every pipeline."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perfci.ci.event import Event, Kind, Provider, PullRequest
from perfci.errors import EventError
from perfci.history.text import one_line, printable

_SOURCES = {
    "push": Kind.PUSH,
    "schedule": Kind.SCHEDULE,
    "merge_request_event": Kind.PULL_REQUEST,
    "web": Kind.DISPATCH,
    "api": Kind.DISPATCH,
    "trigger": Kind.DISPATCH,
    "pipeline": Kind.DISPATCH,
    "parent_pipeline": Kind.DISPATCH,
}


def read_gitlab(variables: Mapping[str, str], root: Path) -> Event:  # noqa: ARG001
    """The event that a job on GitLab is about.

    GitLab says of no push whether it was forced; git is asked that later. Raises EventError where
    the variables are not understood, or the pipeline is one that perfci does not act on.
    """
    source = _variable(variables, "CI_PIPELINE_SOURCE")
    if source not in _SOURCES:
        known = ", ".join(_SOURCES)
        shown = one_line(source, limit=60)
        raise EventError(f"CI_PIPELINE_SOURCE={shown}: perfci ci acts on {known}")
    kind = _SOURCES[source]
    tag = variables.get("CI_COMMIT_TAG")
    if kind is Kind.PUSH and tag:
        kind = Kind.TAG
    known_fields: dict[str, Any] = {
        "provider": Provider.GITLAB,
        "kind": kind,
        "repository": _variable(variables, "CI_PROJECT_PATH"),
        "default_branch": _variable(variables, "CI_DEFAULT_BRANCH"),
        "ref": f"refs/{'tags' if tag else 'heads'}/{_variable(variables, 'CI_COMMIT_REF_NAME')}",
        "head": _variable(variables, "CI_COMMIT_SHA"),
        "run_id": variables.get("CI_PIPELINE_ID", ""),
    }
    if kind is Kind.PUSH:
        before = variables.get("CI_COMMIT_BEFORE_SHA", "")
        known_fields["base"] = before if before.strip("0") else None
    try:
        if kind is Kind.PULL_REQUEST:
            known_fields |= _merge_request(variables)
        return Event(**known_fields)
    except ValueError as error:
        raise EventError(f"variables of GitLab: {one_line(str(error))}") from None


def _merge_request(variables: Mapping[str, str]) -> dict[str, Any]:
    number = _variable(variables, "CI_MERGE_REQUEST_IID")
    if not number.isdecimal() or not number.isascii() or len(number) > 9:
        raise EventError(f"CI_MERGE_REQUEST_IID={one_line(number, limit=60)}: must be a number")
    own = _variable(variables, "CI_MERGE_REQUEST_PROJECT_ID")
    labels = variables.get("CI_MERGE_REQUEST_LABELS", "")
    branch = _variable(variables, "CI_MERGE_REQUEST_TARGET_BRANCH_NAME")
    request = PullRequest(
        number=int(number),
        action="",
        base_branch=branch,
        head_repository=variables.get("CI_MERGE_REQUEST_SOURCE_PROJECT_PATH") or None,
        is_fork=variables.get("CI_MERGE_REQUEST_SOURCE_PROJECT_ID") != own,
        labels=tuple(printable(each.strip()) for each in labels.split(",") if each.strip()),
    )
    return {
        "pull_request": request,
        "ref": f"refs/merge-requests/{number}/head",
        # A pipeline for merged results runs at a merge, and then names the request's own commit.
        "head": variables.get("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA")
        or _variable(variables, "CI_COMMIT_SHA"),
        "base": variables.get("CI_MERGE_REQUEST_TARGET_BRANCH_SHA")
        or variables.get("CI_MERGE_REQUEST_DIFF_BASE_SHA")
        or None,
    }


def _variable(variables: Mapping[str, str], name: str) -> str:
    if not variables.get(name):
        raise EventError(f"{name} is not set: a job on GitLab has it")
    return variables[name]
