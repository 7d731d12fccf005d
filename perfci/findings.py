"""What a look at a machine found: one thing each, how it is, and what to do."""

from dataclasses import dataclass
from enum import StrEnum

from perfci.errors import ExitCode


class State(StrEnum):
    """How something is."""

    PRESENT = "present"
    ABSENT = "absent"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that perfci needs or can use. ``code`` is what its absence would end a run with.

    Something ``ABSENT`` is not needed here; something ``BROKEN`` is.
    """

    name: str
    state: State
    detail: str
    code: ExitCode = ExitCode.FINE


def present(name: str, detail: str) -> Finding:
    """Something that is as it should be."""
    return Finding(name=name, state=State.PRESENT, detail=detail)


def absent(name: str, detail: str) -> Finding:
    """Something that would be better otherwise, and stops nothing."""
    return Finding(name=name, state=State.ABSENT, detail=detail)


def broken(name: str, detail: str, code: ExitCode) -> Finding:
    """Something without which nothing can be measured."""
    return Finding(name=name, state=State.BROKEN, detail=detail, code=code)
