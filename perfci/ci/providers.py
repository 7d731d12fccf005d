"""Which provider this is, and the event that it says."""

from collections.abc import Callable, Mapping
from pathlib import Path

from perfci.ci.event import Event, Provider
from perfci.ci.events_github import read_github
from perfci.ci.events_gitlab import read_gitlab
from perfci.ci.events_plain import read_plain

Reader = Callable[[Mapping[str, str], Path], Event]

PROVIDERS: Mapping[Provider, tuple[str, Reader]] = {
    Provider.GITHUB: ("GITHUB_ACTIONS", read_github),
    Provider.GITLAB: ("GITLAB_CI", read_gitlab),
}
"""Provider → the variable by which it is known, and what reads its event."""


def find_provider(variables: Mapping[str, str]) -> Provider:
    """The provider whose variables these are."""
    known = (each for each, (variable, _) in PROVIDERS.items() if variables.get(variable))
    return next(known, Provider.PLAIN)


def read_event(variables: Mapping[str, str], root: Path) -> Event:
    """The event of the provider whose variables these are, else of none: the checkout at ``root``.

    Raises EventError where it is not understood.
    """
    provider = find_provider(variables)
    read = PROVIDERS[provider][1] if provider in PROVIDERS else read_plain
    return read(variables, root)
