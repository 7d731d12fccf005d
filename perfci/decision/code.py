"""Whether two cells ran the same code, as far as their runs tell. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import fields

from perfci.history.model import Cell, Environment, Launch

_NOT_OF_CODE = frozenset({"bounds"})
"""What an identity tells beside the code: by what bounds results were judged."""


def told_code(cell: Cell) -> dict[str, str]:
    """What a cell tells of its code, by name."""
    return {name: text for name, text in cell.identity if name not in _NOT_OF_CODE}


def is_code(name: str) -> bool:
    """Whether what an identity tells under a name is code itself, and no figure of it."""
    return name == "source" or name.endswith(" code")


def is_same_code(before: Cell, after: Cell) -> bool:
    """Whether both tell their code, nothing of it was left unread, and nothing differs."""
    told = told_code(before)
    return (
        told == told_code(after)
        and any(map(is_code, told))
        and not any("not read" in name for name in told)
        and not any(_differing(before.launches, after.launches))
    )


def is_same_software(environments: Sequence[Environment]) -> bool:
    """Whether runs had the same libraries, driver and system under them, on whatever machine."""
    return len({_software(each) for each in environments}) == 1


def _differing(before: Sequence[Launch], after: Sequence[Launch]) -> Iterator[bool]:
    """Whether each launch differs in what is known of both; one that is on one side only does."""
    if before and after:
        yield len(before) != len(after)
        for one, other in zip(before, after, strict=False):
            for each in fields(Launch):
                values = getattr(one, each.name), getattr(other, each.name)
                yield None not in values and values[0] != values[1]


def _software(environment: Environment) -> tuple[str | None, ...]:
    return (
        environment.torch,
        environment.cuda,
        environment.python,
        environment.os,
        environment.device.driver,
    )
