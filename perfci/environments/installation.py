"""A virtual environment that was made for a side of a comparison, as those who use it see it."""

import importlib.metadata
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from perfci.history.model import Environment
from perfci.history.text import one_line

_FIRST = ("torch", "triton")
_MOST_NAMES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """An environment of a side's own.

    ``digest`` is of what it was made from, ``packages`` are names and versions of what is in it,
    ``torch`` is the folder of its torch, which is built with ``cuda`` where that is not None.
    """

    digest: str
    python: Path
    packages: tuple[tuple[str, str], ...]
    torch: Path
    cuda: str | None = None


def recorded_in(installation: Installation | None, where: Environment) -> Environment:
    """What is recorded of a run in it, on the machine where ``where`` is recorded of perfci's."""
    if installation is None:
        return where
    cuda = installation.cuda if where.device.kind == "cuda" else None
    return replace(where, torch=dict(installation.packages).get("torch", ""), cuda=cuda)


def packages_of(installation: Installation | None) -> dict[str, str]:
    """Names and versions of what is in an environment; None is that which runs perfci."""
    if installation is not None:
        return dict(installation.packages)
    versions: dict[str, str] = {}
    for each in importlib.metadata.distributions():
        versions.setdefault(each.name.lower(), each.version)  # the first is what is imported
    return versions


def describe_change(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """The versions that differ between two environments, torch and Triton first."""
    names = [name for name in before.keys() | after if before.get(name) != after.get(name)]
    if not names:
        return "other requirements, of which the same versions came"
    names.sort(key=lambda name: (name not in _FIRST, name))
    words = [
        f"{name} {before.get(name, 'none')} → {after.get(name, 'none')}"
        for name in names[:_MOST_NAMES]
    ]
    more = len(names) - _MOST_NAMES
    return one_line(", ".join([*words, *([f"and {more} more"] if more > 0 else [])]), limit=300)
