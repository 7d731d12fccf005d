"""What a pass is to do: tasks, each one cell's check and timing, and the limits they run in.

A gauge is a task about no variant, but about the library that variants are judged by.
"""

import math
from dataclasses import dataclass, replace

from perfci.build import Build
from perfci.environments.installation import Installation
from perfci.history.model import Device
from perfci.kernel import Case, Kernel


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a pass runs on: the device, and its name in torch once it alone is visible."""

    name: str
    device: Device


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Check a variant at a case and, with ``timers``, time it. ``seeds`` draw the inputs.

    With an ``other`` build both are checked, and they are timed in turns: two sides of one cell,
    on inputs of the same seeds.

    With ``proves``, see first that the case can tell right from wrong; with ``repeats``, whether
    the variant computes the same each time. With ``footprint``, tell as well what one more call of
    it shows (perfci.workers.footprint). ``budget_s`` is what each timer may take of each side where
    that is less than the limits say.
    """

    kernel: Kernel
    build: Build
    other: Build | None = None
    case: Case
    timers: tuple[str, ...] = ()
    proves: bool = False
    repeats: bool = False
    footprint: bool = False
    seeds: tuple[int, ...]
    timing_seeds: tuple[int, ...] = ()
    budget_s: float = math.inf

    @property
    def sides(self) -> tuple[Build, ...]:
        """What is measured, an outcome each."""
        return (self.build,) if self.other is None else (self.build, self.other)

    @property
    def installations(self) -> tuple[Installation | None, ...]:
        """The environment of each side; None is that which runs perfci."""
        return tuple(each.variant.installation for each in self.sides)

    def apart(self) -> "list[Task]":
        """The same of each side by itself."""
        return [replace(self, build=each, other=None) for each in self.sides]

    @property
    def cell(self) -> tuple[str, str, str]:
        """Kernel, variant and case."""
        return self.kernel.name, self.build.variant.name, self.case.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """See how far the library itself is from the judge at a case, at inputs of ``seeds``.

    It is a task like any other to the processes around it, of one side and without timers.
    """

    kernel: Kernel
    case: Case
    seeds: tuple[int, ...]
    sides: tuple[None] = (None,)
    installations: tuple[None] = (None,)
    budget_s: float = math.inf
    timers: tuple[str, ...] = ()
    footprint: bool = False

    def apart(self) -> "list[Gauge]":
        """The same by itself, as it is."""
        return [self]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What code under test may use before its task has failed."""

    timeout_s: float
    cell_budget_s: float
    memory_bytes: int | None = None
