"""Whose turn it is where two sides of a cell are processes, and what they tell each other. Pure.

Each side works only in its turn; while it waits it does nothing at all. Up to the timing they go
step by step: what one says at a step the other hears as soon as it has said its own. Then they are
read in short blocks A, B, B, A or B, A, A, B, as two sides of one process are, and the same number
of them, until both have enough or the time is spent. What a worker says is parsed, not trusted:
code under test could write to its pipe.
"""

import json
import random
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass

from perfci.history.model import Status
from perfci.history.text import one_line
from perfci.outcome import MalformedOutcomeError

TURN = "turn"


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What a side says as it gives its turn away: after a step, or after a ``block`` of samples.

    ``invalid`` is why it cannot be read by this timer. ``enough`` says that it needs no more
    samples, ``few`` that it has as many as are needed where time is up.
    """

    block: bool = False
    invalid: str = ""
    enough: bool = False
    few: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """What a side hears as it gets the turn.

    ``ended`` is the status of the other side where that has ended without figures, ``invalid`` why
    it cannot be read, as said at the same step, ``stop`` that there will be no more blocks.
    """

    ended: Status | None = None
    invalid: str = ""
    stop: bool = False


class Turns:
    """One cell's course. ``holder`` has the turn; ``budget_s`` is what blocks of each may take."""

    def __init__(self, budget_s: float, *, draw: Callable[[], float] = random.random) -> None:
        self._budget_s, self._draw = budget_s, draw
        self.holder = self._drawn()
        self._ended: dict[int, Status] = {}
        self._steps: tuple[deque[str], deque[str]] = (deque(), deque())
        self._waiting = ["begin", "begin"]
        self._stopped: dict[int, str] = {}
        self._left_of_round: deque[int] | None = None
        self._began_s = 0.0
        self._last: dict[int, Said] = {}

    @property
    def is_over(self) -> bool:
        """Whether both sides have ended."""
        return len(self._ended) == 2

    def say(self, said: Said, now_s: float) -> None:
        """The holder gives its turn away; ``now_s`` is the time by any clock."""
        own, other = self.holder, 1 - self.holder
        self._waiting[own] = "block" if said.block else "step"
        if other in self._ended:
            return
        if said.block:
            self._say_block(said, now_s)
        else:
            self._steps[other].append(said.invalid)
            self.holder = other

    def end(self, side: int, status: Status) -> None:
        """A side's task has ended."""
        self._ended[side] = status
        self.holder = 1 - side

    def hear(self) -> Heard:
        """What the holder hears, once."""
        own, other = self.holder, 1 - self.holder
        ended = self._ended.get(other)
        if ended not in (None, Status.PASSED):
            return Heard(ended=ended)
        if self._waiting[own] == "step":
            if not self._steps[own]:
                return Heard(ended=ended or Status.MISSING)
            return Heard(invalid=self._steps[own].popleft())
        if own in self._stopped:
            return Heard(stop=True, invalid=self._stopped.pop(own))
        return Heard()

    def _say_block(self, said: Said, now_s: float) -> None:
        own, other = self.holder, 1 - self.holder
        if own in self._stopped:
            return  # it could not know yet
        self._last[own] = said
        if self._left_of_round is None:
            self._left_of_round, self._began_s = deque([other, other, own]), now_s
        if said.invalid:
            self._stop({own: "", other: said.invalid})
        elif self._left_of_round:
            self.holder = self._left_of_round.popleft()
        elif self._is_enough(now_s):
            self._stop({own: "", other: ""})
        else:
            first = self._drawn()
            self._left_of_round = deque([1 - first, 1 - first, first])
            self.holder = first

    def _stop(self, words: dict[int, str]) -> None:
        """End the blocks; the holder hears of it first."""
        self._stopped, self._left_of_round = words, None
        self._last.clear()

    def _is_enough(self, now_s: float) -> bool:
        last = self._last.values()
        late = now_s - self._began_s > 2 * self._budget_s
        return all(each.enough for each in last) or (late and all(each.few for each in last))

    def _drawn(self) -> int:
        return int(self._draw() < 0.5)


def encode_said(said: Said, task: int) -> bytes:
    """What a side says, as a line of its pipe."""
    return json.dumps([TURN, task, asdict(said)]).encode() + b"\n"


def decode_said(line: bytes) -> tuple[int, Said] | None:
    """The task, and what a side says; None where the line is of another kind.

    Raises MalformedOutcomeError.
    """
    try:
        event, task, body = json.loads(line)
        if event != TURN:
            return None
        return int(task), Said(
            block=bool(body["block"]),
            invalid=one_line(str(body["invalid"])),
            enough=bool(body["enough"]),
            few=bool(body["few"]),
        )
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise MalformedOutcomeError(f"malformed message: {error}") from None


def encode_heard(heard: Heard) -> bytes:
    """What a side hears, as a line of the pipe that it listens to."""
    return json.dumps([heard.ended, heard.invalid, heard.stop]).encode() + b"\n"


def decode_heard(line: bytes) -> Heard:
    """What a side hears."""
    ended, invalid, stop = json.loads(line)
    return Heard(ended=Status(ended) if ended else None, invalid=invalid, stop=stop)
