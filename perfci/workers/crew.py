"""Two workers that take turns at every cell, each with one side in an environment of its own."""

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

from perfci.outcome import Outcome, require_pair
from perfci.plan import Gauge, Task
from perfci.workers.inside import Errand
from perfci.workers.process import Worker
from perfci.workers.starting import Launch
from perfci.workers.turns import Said, Turns


class Crew(AbstractContextManager["Crew"]):
    """The workers of one pass, one a side. What ends one ends the other's task, and no more."""

    def __init__(self, launches: Sequence[Launch], errand: Errand) -> None:
        self._launches, self._errand = launches, errand
        self._of_sides = list(zip(*(each.apart() for each in errand.tasks), strict=True))
        self._workers: dict[int, Worker] = {}

    def __exit__(self, *exception: object) -> None:
        for worker in self._workers.values():
            worker.end()

    def outcomes(self) -> Iterator[tuple[int, tuple[Outcome, ...]]]:
        """Perform the tasks in order; an outcome for each side of each."""
        for side in range(len(self._launches)):
            self._launch(side, first=0)  # so that they start together
        for index, task in enumerate(self._errand.tasks):
            ended = self._perform(index, task)
            outcomes = [ended[side] for side in sorted(ended)]
            yield index, require_pair(outcomes) if task.timers else tuple(outcomes)

    def _perform(self, index: int, task: Task | Gauge) -> dict[int, Outcome]:
        turns = Turns(min(task.budget_s, self._errand.limits.cell_budget_s))
        ended: dict[int, Outcome] = {}

        def end(side: int, outcome: Outcome) -> None:
            ended[side] = outcome
            turns.end(side, outcome.status)

        for side in range(len(self._launches)):
            if not self._prepare(side, index):
                end(side, self._workers[side].post_mortem())
        while not turns.is_over:
            side = turns.holder
            answer = self._workers[side].take_turn(turns.hear())
            if isinstance(answer, Said):
                turns.say(answer, time.monotonic())
            else:
                end(side, answer)
        return ended

    def _prepare(self, side: int, index: int) -> bool:
        """Wait for a side's worker; a new one where the last is no place for another task."""
        if self._workers[side].is_ready(index):
            return True
        if index > 0:
            self._workers[side].end()
            self._launch(side, first=index)
        return index > 0 and self._workers[side].is_ready(index)

    def _launch(self, side: int, *, first: int) -> None:
        errand = replace(self._errand, tasks=self._of_sides[side], first=first, in_turns=True)
        self._workers[side] = Worker(self._launches[side], errand)
