"""Bounded waiting for a service that is busy, or breaks off: the waits are injected."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

LONGEST_WAIT_S = 300.0
"""What all waits of one report may take together; GitHub's longest pauses are about a minute."""

Answer = TypeVar("Answer")

_FIRST_WAIT_S = 1.0
_MOST_STEPS = 20


class RefusedError(Exception):
    """The service says no, and would say it again: a token without rights, a text that is wrong."""


class GoneError(RefusedError):
    """What the service was asked about is not there, or not any more."""


class UnavailableError(Exception):
    """The service cannot answer now; ``wait_s`` is how long it asks to be left alone, if it does.

    Whether it has done what it was asked is not known.
    """

    def __init__(self, reason: str, *, wait_s: float | None = None) -> None:
        super().__init__(reason)
        self.wait_s = wait_s


@dataclass(slots=True, kw_only=True)
class Patience:
    """How long a service that fails is waited for, in all."""

    sleep: Callable[[float], None] = time.sleep
    longest_s: float = LONGEST_WAIT_S
    spent_s: float = field(default=0.0, init=False)

    def settle(self, step: Callable[[], bool]) -> None:
        """Take a step again and again until it finds that there is nothing left to do.

        A step looks at what is there and does one thing about it, so that one that broke off, or
        that another process got in the way of, is repaired by the next look. Raises RefusedError,
        and UnavailableError when the patience is at its end.
        """
        wait_s = _FIRST_WAIT_S
        for _ in range(_MOST_STEPS):
            try:
                if step():
                    return
            except UnavailableError as error:
                self._wait(max(wait_s, error.wait_s or 0.0), error)
                wait_s *= 2
        raise UnavailableError(f"still not as it should be after {_MOST_STEPS} looks")

    def ask(self, question: Callable[[], Answer]) -> Answer:
        """What a question is answered, asked again while the service cannot. Raises as above."""
        answers: list[Answer] = []

        def step() -> bool:
            answers.append(question())
            return True

        self.settle(step)
        return answers[0]

    def _wait(self, wait_s: float, error: UnavailableError) -> None:
        if self.spent_s + wait_s > self.longest_s:
            raise error
        self.spent_s += wait_s
        self.sleep(wait_s)
