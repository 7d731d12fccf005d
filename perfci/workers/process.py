"""A worker seen from outside: listened to, and ended if need be.

What it says is parsed, not trusted. This module must not import torch.
"""

import contextlib
import math
import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import Self

from perfci.history.model import Status
from perfci.history.text import one_line
from perfci.outcome import MalformedOutcomeError, Outcome, decode_message
from perfci.plan import Gauge, Task
from perfci.timers import TIMERS
from perfci.workers.inside import TASK_MARK, Errand
from perfci.workers.starting import Launch, Program
from perfci.workers.turns import Heard, Said, decode_said, encode_heard

MESSAGE_LIMIT = 300
EXIT_GRACE_S = 5.0
START_TIMEOUT_S = 120.0
_OUTPUT_TAIL_BYTES = 4096
_LONGEST_LINE_BYTES = 1 << 24
_CHUNK_BYTES = 1 << 16


@dataclass(slots=True)
class _Standing:
    """What a worker was last heard to be at."""

    task: int
    deadline_s: float
    started: bool = False
    told: list[Outcome] = field(default_factory=list)


class Worker:
    """One worker process with its two pipes: messages, and what it prints."""

    def __init__(self, launch: Launch, errand: Errand) -> None:
        self._tasks, self._limits, self._first = errand.tasks, errand.limits, errand.first
        self._messages, messages = multiprocessing.Pipe(duplex=False)
        self._printed, printed = multiprocessing.Pipe(duplex=False)
        self._unread = bytearray()
        self._tail = b""
        self._left_s = 0.0
        self._standing = _Standing(task=errand.first, deadline_s=time.monotonic() + START_TIMEOUT_S)
        try:
            self._process = launch(messages, printed, errand)
        finally:
            messages.close()
            printed.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.end()

    def outcomes(self) -> Iterator[tuple[int, tuple[Outcome, ...]]]:
        """Outcomes as they come, one for each side of a task.

        The last one is the parent's own, of all sides together, where the worker did not live.
        """
        standing = self._standing
        while standing.task < len(self._tasks):
            try:
                line = self._next_line()
                message = None if line is None else decode_message(line)
            except MalformedOutcomeError as error:
                yield standing.task, (self._intruded(str(error)),)
                return
            if message is None:
                if self._gave_up():
                    return
                yield standing.task, (self.post_mortem(),)
                return
            _, task, outcome = message
            if task != standing.task or (outcome is None) == standing.started:
                yield standing.task, (self._intruded("out of turn"),)
                return
            if outcome is None:
                standing.started = True
                standing.deadline_s = time.monotonic() + self._limit_s(task)
                continue
            if not _answers(outcome, self._tasks[task]):
                yield task, (self._intruded("other figures"),)
                return
            standing.told.append(outcome)
            if len(standing.told) < len(self._tasks[task].sides):
                continue
            yield task, tuple(standing.told)
            self._standing = standing = _Standing(
                task=task + 1, deadline_s=time.monotonic() + self._limits.timeout_s
            )

    def is_ready(self, task: int) -> bool:
        """Wait until a worker that takes turns is ready for a task; False where it will not be."""
        now_s, standing = time.monotonic(), self._standing
        standing.deadline_s = max(standing.deadline_s, now_s + self._limits.timeout_s)
        try:
            line = self._next_line()
            message = None if line is None else decode_message(line)
        except MalformedOutcomeError:
            return False
        if message != ("ready", task, None):
            return False
        self._left_s = self._limits.timeout_s
        self._standing = _Standing(task=task, deadline_s=math.inf)
        return True

    def take_turn(self, heard: Heard) -> Said | Outcome:
        """Give a worker its turn, and wait for what it says, or for what becomes of its task.

        All its turns at a task together may take as long as the limits allow.
        """
        assert isinstance(self._process, Program)
        began_s = time.monotonic()
        self._standing.deadline_s = began_s + self._left_s
        self._process.tell(encode_heard(heard))
        try:
            return self._answer()
        except MalformedOutcomeError as error:
            return self._intruded(str(error))
        finally:
            self._left_s -= time.monotonic() - began_s

    def _answer(self) -> Said | Outcome:
        standing = self._standing
        while True:
            line = self._next_line()
            if line is None:
                return self.post_mortem()
            if (said := decode_said(line)) is not None:
                return said[1] if said[0] == standing.task else self._intruded("out of turn")
            event, task, outcome = decode_message(line)
            if (event, task, standing.started) == ("start", standing.task, False):
                standing.started = True
                continue
            if outcome is None or task != standing.task:
                return self._intruded("out of turn")
            answers = _answers(outcome, self._tasks[task])
            return outcome if answers else self._intruded("other figures")

    def _limit_s(self, task: int) -> float:
        return len(self._tasks[task].sides) * self._limits.timeout_s

    def _next_line(self) -> bytes | None:
        """The next message; None where the worker has died or its time is up."""
        sources: list[Connection | int] = [self._messages, self._process.sentinel, self._printed]
        while True:
            line, newline, rest = self._unread.partition(b"\n")
            if newline:
                self._unread = rest
                return bytes(line)
            left_s = self._standing.deadline_s - time.monotonic()
            ready = wait(sources, timeout=max(0.0, left_s))
            if self._printed in ready and not self._drain():
                sources.remove(self._printed)
            if self._messages in ready:
                if not self._receive():
                    return None
            elif self._process.sentinel in ready or left_s <= 0:
                return None

    def _receive(self) -> bool:
        """Read what has been sent; False once the pipe is closed."""
        # Never as a whole message: half of one, from code under test, would be waited for.
        chunk = os.read(self._messages.fileno(), _CHUNK_BYTES)
        self._unread += chunk
        if len(self._unread) > _LONGEST_LINE_BYTES:
            raise MalformedOutcomeError("malformed message: too long")
        return bool(chunk)

    def _drain(self) -> bool:
        """Read what was printed, keep its end; False once the pipe is closed."""
        chunk = os.read(self._printed.fileno(), _CHUNK_BYTES)
        self._tail = (self._tail + chunk)[-_OUTPUT_TAIL_BYTES:]
        return bool(chunk)

    def _gave_up(self) -> bool:
        """Whether the worker ended by itself between two tasks, as after a fault on a GPU."""
        between = not self._standing.started and self._standing.task > self._first
        return between and time.monotonic() < self._standing.deadline_s

    def post_mortem(self) -> Outcome:
        """What becomes of a task at which the worker has died, or its time was up."""
        if time.monotonic() >= self._standing.deadline_s:
            message = f"no answer within {self._limit_s(self._standing.task):g} s"
            return Outcome(status=Status.TIMEOUT, message=message)
        self._process.join(EXIT_GRACE_S)
        cause = cause_of_death(self._process.exitcode)
        # What it has forked may print for ever; a pipe holds no more than a chunk.
        self._kill()
        if wait([self._printed], timeout=0):
            self._drain()
        return self._failed(cause)

    def _intruded(self, how: str) -> Outcome:
        return self._failed(f"the worker's pipe was written to: {how}")

    def _failed(self, cause: str) -> Outcome:
        """A runtime error with the last line that was printed, which often says why."""
        printed = self._tail.rpartition(TASK_MARK)[2]
        lines = printed.decode(errors="replace").strip().splitlines()
        message = f"{cause}: {lines[-1].strip()}" if lines else cause
        message = one_line(message, limit=MESSAGE_LIMIT)
        return Outcome(status=Status.RUNTIME_ERROR, message=message)

    def end(self) -> None:
        """End the worker and everything that it has forked."""
        if self._standing.task >= len(self._tasks):
            self._process.join(EXIT_GRACE_S)
        self._kill()
        self._process.join()
        self._process.close()
        self._messages.close()
        self._printed.close()

    def _kill(self) -> None:
        pid = self._process.pid
        if pid is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
        # It may not have become the head of its group yet.
        self._process.kill()


def _answers(outcome: Outcome, task: Task | Gauge) -> bool:
    """Whether an outcome says what its task asks for, and nothing else.

    One that passed says of each timer what it read, or why not.
    """
    if outcome.launches and not task.footprint:
        return False
    if outcome.status is not Status.PASSED:
        return True
    asked = {
        contract.label: contract for contract in (TIMERS[name].contract for name in task.timers)
    }
    told = [timing.contract.label for timing in outcome.timings]
    told += [label for label, _ in outcome.invalid]
    return sorted(told) == sorted(asked) and all(
        timing.contract == asked[timing.contract.label] for timing in outcome.timings
    )


def cause_of_death(exit_code: int | None) -> str:
    """How a process ended, in words."""
    if exit_code is None:
        return "closed its pipe and went on"
    if exit_code >= 0:
        return f"exited with code {exit_code}"
    try:
        name = signal.Signals(-exit_code).name
    except ValueError:
        name = f"signal {-exit_code}"
    hint = " (out of memory?)" if name == "SIGKILL" else ""
    return f"killed by {name}{hint}"
