"""One pass in a fresh process: load, check, time, one task after another.

This is the process that runs code under test. It imports torch, so that a fork server which has
imported this module starts passes quickly. A task that raises is an outcome; one that kills or
hangs the process is seen by the parent (perfci.workers.passes).
"""

import random
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from time import monotonic

import torch

from perfci.build import Build
from perfci.checking.check import (
    BadCaseError,
    Problem,
    Subject,
    WrongError,
    check,
    draw,
    is_sound,
)
from perfci.checking.inputs import (
    Reference,
    describe,
    load_reference,
)
from perfci.checking.recheck import (
    find_memory,
    find_trespass,
    judge_alone,
    judge_left,
)
from perfci.checking.repeats import find_variation
from perfci.checking.surroundings import read_surroundings, replaced_function
from perfci.checking.weakness import find_weakness
from perfci.checking.yardstick import measure_yardstick
from perfci.entry import Entry, load_again, load_entry
from perfci.history.model import Contract, Status
from perfci.kernel import Kernel
from perfci.load import CoreTimes, read_core_times, used_by_others_s
from perfci.outcome import Outcome, Timing, require_pair
from perfci.plan import Gauge, Limits, Target, Task
from perfci.timers import TIMERS, InvalidTimingError, Reader
from perfci.timers.sampling import measure_in_turns
from perfci.workers.isolation import own_modules
from perfci.workers.partner import Partner, PartnerEndedError, PartnerInvalidError
from perfci.workers.places import Places
from perfci.workers.side import Side, SideError, blaming, refuse, said_by_other, said_of


class Bench:
    """What a pass keeps between tasks: references and variants that are loaded already.

    A ``partner`` is the process of the other side, where each side has one.
    """

    def __init__(self, target: Target, limits: Limits, partner: Partner | None = None) -> None:
        self._device = target.name
        self._limits = limits
        self._partner = partner
        self._references: dict[str, Reference] = {}
        self._entries: dict[str, Entry] = {}
        self._places = Places(target.name)
        self._weaknesses: dict[tuple[str, str], str] = {}
        is_sound(self._device)  # which starts CUDA on a GPU: it is there before any kernel is
        self._surroundings = read_surroundings()
        self._last: set[Status] = set()

    def is_sound(self) -> bool:
        """Whether this process can go on with another kernel's cells.

        It cannot after a fault, nor where a kernel has changed what the next one would meet.
        """
        return (
            not self._last & {Status.RUNTIME_ERROR, Status.BUILD_FAILED}
            and read_surroundings() == self._surroundings
            and is_sound(self._device)
        )

    def perform(self, task: Task | Gauge) -> tuple[Outcome, ...]:
        """Check the sides of one cell and, where all are right, time them; an outcome each.

        None at all where one side of several has left a device that the others cannot be judged on.
        """
        if task.case.memory_gib and self._device != "cpu":
            torch.cuda.empty_cache()  # what smaller cases left in pieces is not to be had as one
        outcomes = self._gauged(task) if isinstance(task, Gauge) else self._performed(task)
        if self._partner is not None and self._device != "cpu":
            torch.cuda.empty_cache()  # the other process needs room too
        if len(outcomes) > 1 and not is_sound(self._device):
            print(next((each.message for each in outcomes if each.status.is_failure), ""))
            return ()
        if replaced := replaced_function():
            message = f"replaces {replaced}, by which it would be judged"
            outcome = Outcome(status=Status.RUNTIME_ERROR, message=message)
            outcomes = (outcome,) * len(outcomes)
        self._last = {each.status for each in outcomes}
        return outcomes

    def _gauged(self, gauge: Gauge) -> tuple[Outcome, ...]:
        problem = Problem(
            reference=self._reference(gauge.kernel),
            kernel=gauge.kernel,
            case=gauge.case,
            device=self._device,
        )
        try:
            return (measure_yardstick(problem, gauge.seeds),)
        except Exception as error:  # noqa: BLE001 — a reference may raise anything
            return (_failure(error),)

    def _performed(self, task: Task) -> tuple[Outcome, ...]:
        # Who is loaded, checked and laid out in memory first must favour neither side.
        order = random.sample(range(len(task.sides)), len(task.sides))
        outcomes: dict[int, Outcome] = {}
        sides: list[Side] = []
        for number in order:
            build = task.sides[number]
            again = any(each.build.digest == build.digest for each in sides)
            try:
                subject = self._subject(task, build, again=again)
            except Exception as error:  # noqa: BLE001 — a variant's import may raise anything
                message = f"cannot be loaded: {describe(error)}"
                outcomes[number] = Outcome(status=Status.BUILD_FAILED, message=message)
                continue
            try:
                outcomes[number] = self._checked(task, build, subject)
            except Exception as error:  # noqa: BLE001 — and so may its call
                outcomes[number] = _failure(error)
            sides.append(Side(number=number, build=build, subject=subject))
        if task.timers and all(each.status is Status.PASSED for each in outcomes.values()):
            try:
                self._time(task, sides, outcomes)
            except PartnerEndedError as ended:
                return require_pair([*outcomes.values(), Outcome(status=ended.status)])[:-1]
        in_order = [outcomes[number] for number in sorted(outcomes)]
        return require_pair(in_order) if task.timers else tuple(in_order)

    def _checked(self, task: Task, build: Build, subject: Subject) -> Outcome:
        if task.proves:
            self._prove(subject, task)
        checked = check(subject, task.seeds)
        if checked.status is Status.PASSED and task.repeats:
            return _repeated(subject, task, build, checked)
        return checked

    def _prove(self, subject: Subject, task: Task) -> None:
        """Raise BadCaseError where the case would accept what is wrong; looked at once a case."""
        key = (task.kernel.name, task.case.name)
        if key not in self._weaknesses:
            self._weaknesses[key] = find_weakness(subject, *task.seeds[:2])
        if accepted := self._weaknesses[key]:
            raise BadCaseError(f"the case accepts {accepted}, so that it proves nothing; change it")

    def _subject(self, task: Task, build: Build, *, again: bool) -> Subject:
        # By its place too, since what lies beside a Python variant is no part of its digest.
        key = f"{task.kernel.name}/{build.variant.name}/{build.digest}/{build.variant.path}/{again}"
        if key not in self._entries:
            with _modules_of(task):
                self._entries[key] = load_again(build) if again else load_entry(build)
        return Subject(
            entry=self._entries[key],
            reference=self._reference(task.kernel),
            kernel=task.kernel,
            case=task.case,
            device=self._device,
            tf32=build.variant.declaration.tf32,
            tolerance=build.variant.declaration.tolerance,
        )

    def _reference(self, kernel: Kernel) -> Reference:
        if kernel.name not in self._references:
            self._references[kernel.name] = load_reference(kernel)
        return self._references[kernel.name]

    def _time(self, task: Task, sides: Sequence[Side], outcomes: dict[int, Outcome]) -> None:
        """Add what the timers read to the outcomes; of a side that fails it becomes its own."""
        try:
            with torch.no_grad():
                if self._partner is not None:
                    self._partner.agree()
                self._lay_out(task, sides)
                self._read_timers(task, sides)
                with blaming(sides[0]):
                    trespass = find_trespass(sides[0].subject, sides[0].places, task.timing_seeds)
                if task.proves:
                    self._refuse_memory(task, sides)
                for side in sides:
                    with blaming(side):
                        judge_alone(side.subject, side.places_as_read())
                _refuse_trespass(task, sides, trespass)
                for side in sides:
                    with blaming(side):
                        judge_left(side.subject, side.left, task.timing_seeds[0])
                if task.footprint:
                    # Last, so that this pass checks and times in the same state as the others.
                    for side in sides:
                        with blaming(side):
                            outcomes[side.number] = side.add_footprint(outcomes[side.number])
        except SideError as blamed:
            number = blamed.side.number
            outcomes[number] = _failure(blamed.cause, outcomes[number])
            return
        for side in sides:
            outcomes[side.number] = replace(
                outcomes[side.number],
                timings=tuple(side.timings),
                invalid=tuple(side.invalid),
            )

    def _lay_out(self, task: Task, sides: Sequence[Side]) -> None:
        """Make what the sides are timed on: arguments for all, outputs and places for each."""
        with blaming(sides[0]):
            # The same for both: where inputs lie in memory must favour neither.
            arguments = [draw(sides[0].subject, seed) for seed in task.timing_seeds]
        for side in sides:
            with blaming(side):
                side.lay_out(arguments)
        if self._device != "cpu":
            self._places.add(sides, task.timing_seeds, partial(_modules_of, task))

    def _read_timers(self, task: Task, sides: Sequence[Side]) -> None:
        """What each timer reads of the sides in turns, and why one could not."""
        budget_s = min(task.budget_s, self._limits.cell_budget_s)
        for name in task.timers:
            contract = TIMERS[name].contract
            began_s, before = monotonic(), self._read_core_times()
            try:
                readers = [side.open_reader(name) for side in sides]
                timings = self._measure(readers, contract, budget_s)
            except SideError as blamed:
                if not isinstance(blamed.cause, InvalidTimingError):
                    raise
                for side in sides:
                    side.invalid.append((contract.label, said_of(side, blamed)))
                if self._partner is not None:
                    self._partner.refuse(str(blamed.cause))
                continue
            except PartnerInvalidError as refused:
                for side in sides:
                    side.invalid.append((contract.label, said_by_other(str(refused))))
                continue
            span_s = (began_s, monotonic())
            others_s = used_by_others_s(before, self._read_core_times())
            for side, reader, timing in zip(sides, readers, timings, strict=True):
                side.timings.append(replace(timing, span_s=span_s, others_s=others_s))
                with blaming(side):
                    side.keep_left(reader)

    def _read_core_times(self) -> CoreTimes | None:
        """How busy the cores are; None for a GPU, and where a process beside this takes turns."""
        is_alone_on_cpu = self._device == "cpu" and self._partner is None
        return read_core_times() if is_alone_on_cpu else None

    def _measure(
        self, readers: Sequence[Reader], contract: Contract, budget_s: float
    ) -> list[Timing]:
        if self._partner is None:
            return measure_in_turns(readers, contract=contract, budget_s=budget_s)
        (reader,) = readers
        return [self._partner.measure(reader, contract=contract, budget_s=budget_s)]

    def _refuse_memory(self, task: Task, sides: Sequence[Side]) -> None:
        """Take no latency of a cell for one of which a side remembers what it has computed."""
        reasons = _find_memories(task, sides)
        if self._partner is not None:
            try:
                self._partner.agree(next(iter(reasons), ""))
            except PartnerInvalidError as refused:
                reasons = reasons or [said_by_other(str(refused))]
        for side, reason in zip(sides, reasons, strict=False):
            refuse(side, task.timers, reason)


def _modules_of(task: Task) -> AbstractContextManager[None]:
    """Where two sides are loaded, each has modules of its own."""
    return own_modules() if task.other is not None else nullcontext()


def _find_memories(task: Task, sides: Sequence[Side]) -> list[str]:
    """Why the cell has no latency where a side remembers: for each side, or nothing."""
    for side in sides:
        with blaming(side):
            memory = find_memory(side.subject, side.places_as_read(), task.timing_seeds[0])
        if memory:
            blamed = SideError(side, InvalidTimingError(memory))
            return [said_of(each, blamed) for each in sides]
    return []


def _refuse_trespass(task: Task, sides: Sequence[Side], trespass: str) -> None:
    """Take no latency of a cell where what the sides share was written to.

    Of two sides neither is known to have done it: one that always does was found out before.
    """
    if not trespass:
        return
    if len(sides) == 1:
        raise SideError(sides[0], WrongError(Status.WRONG_VALUES, trespass))
    for side in sides:
        refuse(side, task.timers, f"one of the two sides {trespass}")


def _failure(error: Exception, checked: Outcome | None = None) -> Outcome:
    """What an exception of a variant's code, or one about its outputs, makes of its cell."""
    if isinstance(error, WrongError):
        message = f"right before the timing, wrong after it: {error.message}"
        metrics = () if checked is None else checked.metrics
        return Outcome(status=error.status, message=message, metrics=metrics)
    return Outcome(status=Status.RUNTIME_ERROR, message=describe(error))


def _repeated(subject: Subject, task: Task, build: Build, checked: Outcome) -> Outcome:
    """The outcome with whether the variant is deterministic; a failed one where it should be."""
    declared = build.variant.declaration
    variation = find_variation(subject, task.seeds[0])
    if variation and not (declared.nondeterministic or declared.peer):
        message = f"{variation}; declare nondeterministic = true if that is meant"
        return replace(checked, status=Status.NONDETERMINISTIC, message=message)
    return replace(checked, identity=(("deterministic", "no" if variation else "yes"),))
