"""One pass in a fresh process: load, check, time, one task after another.

This is the process that runs code under test. It imports torch, so that a fork server which has
imported this module starts passes quickly. A task that raises is an outcome; one that kills or
hangs the process is seen by the parent (perfci.passes).
"""

from dataclasses import replace

import torch
from torch import Tensor

from perfci.check import (
    BadCaseError,
    Subject,
    WrongError,
    check,
    is_sound,
    output_templates,
    synchronise,
)
from perfci.clocks import read_clock
from perfci.entry import Entry, load_entry
from perfci.footprint import add_footprint
from perfci.history.model import Status
from perfci.inputs import Arguments, Reference, count_bytes, describe, draw_inputs, load_reference
from perfci.outcome import Outcome, Timing
from perfci.outputs import GuardedOutputs, kept
from perfci.plan import Limits, Target, Task
from perfci.recheck import TimedSets, find_memory, recheck
from perfci.repeats import find_variation
from perfci.surroundings import read_surroundings, replaced_function
from perfci.timers import TIMERS, InvalidTimingError, Workload, timer
from perfci.timers.sampling import measure
from perfci.weakness import find_weakness


class Bench:
    """What a pass keeps between tasks: references and variants that are loaded already."""

    def __init__(self, target: Target, limits: Limits) -> None:
        self._device = target.name
        self._uuid = target.device.uuid
        self._limits = limits
        self._references: dict[str, Reference] = {}
        self._entries: dict[str, Entry] = {}
        self._weaknesses: dict[tuple[str, str], str] = {}
        self._surroundings = read_surroundings()
        self._last = Status.PASSED

    def is_sound(self) -> bool:
        """Whether this process can go on with another kernel's cells.

        It cannot after a fault, nor where a kernel has changed what the next one would meet.
        """
        return (
            self._last not in (Status.RUNTIME_ERROR, Status.BUILD_FAILED)
            and read_surroundings() == self._surroundings
            and is_sound(self._device)
        )

    def perform(self, task: Task) -> Outcome:
        """Check one cell and, where it is right, time it."""
        outcome = self._performed(task)
        if replaced := replaced_function():
            message = f"replaces {replaced}, by which it would be judged"
            outcome = Outcome(status=Status.RUNTIME_ERROR, message=message)
        self._last = outcome.status
        return outcome

    def _performed(self, task: Task) -> Outcome:
        try:
            subject = self._subject(task)
        except Exception as error:  # noqa: BLE001 — a variant's import may raise anything
            return Outcome(
                status=Status.BUILD_FAILED, message=f"cannot be loaded: {describe(error)}"
            )
        try:
            if task.proves:
                self._prove(subject, task)
            checked = check(subject, task.seeds)
            if checked.status is Status.PASSED and task.repeats:
                checked = _repeated(subject, task, checked)
            if checked.status is not Status.PASSED or not task.timers:
                return checked
            return self._timed(subject, task, checked)
        except MemoryError:
            return Outcome(status=Status.RUNTIME_ERROR, message="out of memory")
        except Exception as error:  # noqa: BLE001 — and so may its call
            return Outcome(status=Status.RUNTIME_ERROR, message=describe(error))

    def _subject(self, task: Task) -> Subject:
        name = task.kernel.name
        if name not in self._references:
            self._references[name] = load_reference(task.kernel)
        key = f"{name}/{task.build.variant.name}/{task.build.digest}"
        if key not in self._entries:
            self._entries[key] = load_entry(task.build)
        return Subject(
            entry=self._entries[key],
            reference=self._references[name],
            kernel=task.kernel,
            case=task.case,
            device=self._device,
            tf32=task.build.variant.declaration.tf32,
        )

    def _prove(self, subject: Subject, task: Task) -> None:
        """Raise BadCaseError where the case would accept what is wrong; looked at once a case."""
        key = (task.kernel.name, task.case.name)
        if key not in self._weaknesses:
            self._weaknesses[key] = find_weakness(subject, *task.seeds[:2])
        if accepted := self._weaknesses[key]:
            raise BadCaseError(f"the case accepts {accepted}, so that it proves nothing; change it")

    def _timed(self, subject: Subject, task: Task, checked: Outcome) -> Outcome:
        templates = output_templates(subject)
        arguments = [
            draw_inputs(subject.reference, task.case, device=self._device, seed=seed)
            for seed in task.timing_seeds
        ]
        outputs = [GuardedOutputs(templates) for _ in arguments]
        calls = [
            subject.entry.bind(each, into.tensors)
            for each, into in zip(arguments, outputs, strict=True)
        ]
        set_bytes = count_bytes([*arguments[0].values(), *templates])
        workload = Workload(
            calls=calls,
            set_bytes=set_bytes,
            device=subject.device,
            poison=lambda returned: _wipe(outputs[0], returned, arguments[0]),
        )
        sets = TimedSets(arguments=arguments, outputs=outputs, calls=calls)
        with torch.no_grad():
            own = outputs[0].tensors if subject.entry.writes_outputs else None
            timings, invalid, left = self._read_timers(task, workload, own)
            memory = find_memory(subject, sets, task.timing_seeds[0]) if task.proves else ""
            if memory:
                timings, invalid = (
                    [],
                    [(TIMERS[each].contract.label, memory) for each in task.timers],
                )
            try:
                recheck(subject, sets, [] if memory else left)
            except WrongError as wrong:
                message = f"right before the timing, wrong after it: {wrong.message}"
                return Outcome(status=wrong.status, message=message, metrics=checked.metrics)
            if task.launches:
                # Last, so that this pass checks and times in the same state as the others.
                checked = add_footprint(
                    checked,
                    calls[0],
                    entry=subject.entry,
                    build=task.build,
                    outputs=templates,
                )
        return replace(checked, timings=tuple(timings), invalid=tuple(invalid))

    def _read_timers(
        self, task: Task, workload: Workload, own: object
    ) -> tuple[list[Timing], list[tuple[str, str]], list[object]]:
        """What each timer reads, why one could not, and what each has left of the first set.

        ``own`` are the outputs of the first set where the variant writes them.
        """
        timings: list[Timing] = []
        left: list[object] = []
        invalid: list[tuple[str, str]] = []
        budget_s = min(task.budget_s, self._limits.cell_budget_s)
        for name in task.timers:
            contract = TIMERS[name].contract
            before = read_clock(self._uuid)
            try:
                reader = timer(name).open_reader(workload)
                timing = measure(reader, contract=contract, budget_s=budget_s)
            except InvalidTimingError as error:
                invalid.append((contract.label, str(error)))
                continue
            clocks = tuple(each for each in (before, read_clock(self._uuid)) if each is not None)
            timings.append(replace(timing, clocks=clocks))
            written = own if own is not None else reader.returned
            if written is not None:
                synchronise(self._device)
                left.append(kept(written))
        return timings, invalid, left


def _wipe(outputs: GuardedOutputs, returned: object, arguments: Arguments) -> None:
    """Poison what a call has written and what it returned, but for views of its arguments."""
    outputs.poison()
    given = {
        each.untyped_storage().data_ptr() for each in arguments.values() if isinstance(each, Tensor)
    }
    for each in returned if isinstance(returned, tuple | list) else (returned,):
        if (
            isinstance(each, Tensor)
            and each.is_floating_point()
            and each.untyped_storage().data_ptr() not in given
        ):
            each.fill_(float("nan"))


def _repeated(subject: Subject, task: Task, checked: Outcome) -> Outcome:
    """The outcome with whether the variant is deterministic; a failed one where it should be."""
    declared = task.build.variant.declaration
    variation = find_variation(subject, task.seeds[0])
    if variation and not (declared.nondeterministic or declared.peer):
        message = f"{variation}; declare nondeterministic = true if that is meant"
        return replace(checked, status=Status.NONDETERMINISTIC, message=message)
    return replace(checked, identity=(("deterministic", "no" if variation else "yes"),))
