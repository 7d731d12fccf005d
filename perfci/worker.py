"""One pass in a fresh process: load, check, time, one task after another.

This is the process that runs code under test. It imports torch, so that a fork server which has
imported this module starts passes quickly. A task that raises is an outcome; one that kills or
hangs the process is seen by the parent (perfci.passes).
"""

import random
from collections.abc import Sequence

import torch
from torch import Tensor

from perfci.check import (
    Subject,
    WrongError,
    check,
    find_truth,
    judge,
    output_templates,
    poison,
    poisoned,
    synchronise,
)
from perfci.entry import Call, Entry, load_entry
from perfci.history.model import Status
from perfci.inputs import Arguments, Reference, describe, draw_inputs, load_reference
from perfci.outcome import Outcome
from perfci.plan import Limits, Task
from perfci.timers import TIMERS, timer


class Bench:
    """What a pass keeps between tasks: references and variants that are loaded already."""

    def __init__(self, device: str, limits: Limits) -> None:
        self._device = device
        self._limits = limits
        self._references: dict[str, Reference] = {}
        self._entries: dict[str, Entry] = {}

    def perform(self, task: Task) -> Outcome:
        """Check one cell and, where it is right, time it."""
        try:
            subject = self._subject(task)
        except Exception as error:  # noqa: BLE001 — a variant's import may raise anything
            return Outcome(
                status=Status.RUNTIME_ERROR, message=f"cannot be loaded: {describe(error)}"
            )
        try:
            checked = check(subject, task.seeds)
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
        )

    def _timed(self, subject: Subject, task: Task, checked: Outcome) -> Outcome:
        templates = output_templates(subject)
        arguments = [
            draw_inputs(subject.reference, task.case, device=self._device, seed=seed)
            for seed in task.timing_seeds
        ]
        outputs = [poisoned(templates) for _ in arguments]
        calls = [
            subject.entry.bind(each, into) for each, into in zip(arguments, outputs, strict=True)
        ]
        with torch.no_grad():
            timings = tuple(
                timer(name).measure(
                    calls,
                    contract=TIMERS[name].contract,
                    budget_s=self._limits.cell_budget_s,
                )
                for name in task.timers
            )
            try:
                _check_after_timing(subject, arguments, outputs, calls)
            except WrongError as wrong:
                message = f"right before the timing, wrong after it: {wrong.message}"
                return Outcome(status=wrong.status, message=message, metrics=checked.metrics)
        return Outcome(status=Status.PASSED, metrics=checked.metrics, timings=timings)


def _check_after_timing(
    subject: Subject,
    arguments: Sequence[Arguments],
    outputs: Sequence[Sequence[Tensor]],
    calls: Sequence[Call],
) -> None:
    """Judge what the timed loop left in one set of outputs, and one more call of another.

    Which sets these are is chosen only now.
    """
    left, again = random.choices(range(len(calls)), k=2)  # noqa: S311 — no secret
    synchronise(subject.device)
    if subject.entry.writes_outputs:
        judge(subject, tuple(outputs[left]), find_truth(subject, arguments[left]))
    poison(outputs[again])
    returned = calls[again]()
    synchronise(subject.device)
    judge(subject, returned, find_truth(subject, arguments[again]))
