"""Without a provider, as under cron or in a shell: what is checked out is looked at."""

import re
from collections.abc import Mapping
from pathlib import Path

from perfci.ci.event import Event, Kind, Provider
from perfci.errors import EventError
from perfci.history import commits
from perfci.history.errors import CommitError
from perfci.history.git import ask_git
from perfci.history.text import printable

_USUAL_BRANCHES = ("main", "master")


def read_plain(variables: Mapping[str, str], root: Path) -> Event:  # noqa: ARG001
    """A scheduled event at the commit that is checked out. Raises EventError without a repository.

    The repository is called as the last two parts of its remote's address, else as its folder.
    """
    try:
        head = commits.resolve(root, "HEAD")
        default = commits.default_branch(root, _USUAL_BRANCHES).removeprefix("origin/")
    except CommitError as error:
        raise EventError(str(error)) from None
    ref = ask_git(root, "symbolic-ref", "--quiet", "HEAD").output
    address = ask_git(root, "remote", "get-url", "origin").output
    try:
        return Event(
            provider=Provider.PLAIN,
            kind=Kind.SCHEDULE,
            repository=_repository(address) or root.resolve().name,
            ref=ref or f"refs/heads/{default}",
            default_branch=default,
            head=head,
        )
    except ValueError as error:
        raise EventError(f"{root}: {error}") from None


def _repository(address: str) -> str:
    """``owner/name`` of an address such as ``git@host:owner/name.git``; empty of none such."""
    found = re.search(r"([^/:]+/[^/:]+?)(?:\.git)?/?$", address)
    return printable(found[1]) if found else ""
