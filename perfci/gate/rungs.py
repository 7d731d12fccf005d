"""Until when a decision is measured: rung by rung, until all is decided or time is up. Pure."""

import statistics
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from perfci.decision.ladder import LOOKS
from perfci.gate.matching import Name
from perfci.history.model import Measurement

Rows = Sequence[Sequence[Measurement]]
"""The rows of each side."""


class Ending(StrEnum):
    """Why there were no more passes."""

    DECIDED = "decided"
    OUT_OF_PASSES = "out_of_passes"
    OUT_OF_TIME = "out_of_time"
    NOTHING_LEFT = "nothing_left"


@dataclass(slots=True, kw_only=True)
class Rungs:
    """The ladder of passes as one measurement climbs it.

    ``find_waiting`` is asked at each rung, with its index, for the cells that more passes may still
    decide, which alone get them; ``cells`` counts those that have been timed so far. A rung that
    would outlast ``budget_s``, by the pace of the passes before and the share of cells that go on,
    is not begun. Where it ended there is an ``ending``, the ``look`` that the last passes were for,
    and ``needed_s``: how long the next rung would have taken from the start.
    """

    budget_s: float
    find_waiting: Callable[[Rows, int], Collection[Name]]
    cells: int = 1
    waiting: Collection[Name] | None = None
    ending: Ending | None = None
    look: int = 0
    needed_s: float = 0.0
    _spent_s: float = 0.0
    _lasted_s: list[float] = field(default_factory=list)

    def is_over(
        self, sides: Callable[[], Rows], *, passes: int, spent_s: float, can_go_on: bool
    ) -> bool:
        """Whether so many passes are enough; ``spent_s`` is since the start.

        Where no cell can go on, the machine's anchors would be all that is measured.
        """
        lasted_s, self._spent_s = spent_s - self._spent_s, spent_s
        if passes == 0:  # the first checks as well what is not timed
            return False
        if not can_go_on:
            self.needed_s, self.ending = spent_s, Ending.NOTHING_LEFT
            return True
        self._lasted_s.append(lasted_s)
        pace_s = find_pace(self._lasted_s)
        if passes == LOOKS[self.look]:
            timed, self.ending = self.cells, self._look_at(sides)
            if self.ending is None:
                pace_s *= self.cells / timed
                self.look += 1
                # Of fewer cells: what is expected, until a pass of them has shown it.
                self._lasted_s = [pace_s]
        self.needed_s = spent_s + (LOOKS[self.look] - passes) * pace_s
        # The first pass checks as well: it tells too much of what the others will take.
        late = self.needed_s > self.budget_s if passes > 1 else spent_s > self.budget_s
        if self.ending is None and late:
            self.ending = Ending.OUT_OF_TIME
        return self.ending is not None

    def _look_at(self, sides: Callable[[], Rows]) -> Ending | None:
        self.waiting = self.find_waiting(sides(), self.look)
        if not self.waiting:
            return Ending.DECIDED
        self.cells = len(self.waiting)
        return Ending.OUT_OF_PASSES if self.look == len(LOOKS) - 1 else None


def find_pace(durations_s: Sequence[float]) -> float:
    """How long the next pass will take, by those before, in order: the median without the first.

    The first loads and checks as well, so that it counts only where it is the only one.
    """
    return statistics.median(durations_s[1:] or durations_s)
