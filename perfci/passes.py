"""Passes seen from outside: fresh processes from a fork server, watched, and ended if need be.

The server has imported torch and run nothing. A worker that dies or hangs costs the task it was
at; what was left goes on in another. This module must not import torch.
"""

import contextlib
import multiprocessing
import os
import resource
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerContext, ForkServerProcess
from typing import Self

from perfci.config import apply_environment
from perfci.history.model import Status
from perfci.outcome import MalformedOutcomeError, Outcome, decode_message, encode_message
from perfci.plan import Limits, Task

_OUTPUT_TAIL_BYTES = 4096
_MESSAGE_LIMIT = 300
_EXIT_GRACE_S = 5.0
_START_TIMEOUT_S = 120.0
_PR_SET_PDEATHSIG = 1


class PassServer:
    """The fork server that starts passes; a context manager that ends it."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        apply_environment(environment)
        self._context: ForkServerContext = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["perfci.worker"])

    def run(
        self, tasks: Sequence[Task], *, device: str, limits: Limits
    ) -> Iterator[tuple[int, Outcome]]:
        """Run tasks in order in one fresh process, or several where one does not survive.

        Yields (index of the task, outcome) as they end.
        """
        next_task = 0
        while next_task < len(tasks):
            with _Worker(self._context, tasks, next_task, device, limits) as worker:
                for index, outcome in worker.outcomes():
                    next_task = index + 1
                    yield index, outcome


@dataclass(slots=True)
class _Standing:
    """What a worker was last heard to be at."""

    task: int
    deadline_s: float
    started: bool = False


class _Worker:
    """One worker process with its two pipes: messages, and what it prints."""

    def __init__(
        self,
        context: ForkServerContext,
        tasks: Sequence[Task],
        first: int,
        device: str,
        limits: Limits,
    ) -> None:
        self._count, self._limits = len(tasks), limits
        self._messages, messages = context.Pipe(duplex=False)
        self._printed, printed = context.Pipe(duplex=False)
        self._tail = b""
        self._process: ForkServerProcess = context.Process(
            target=_enter, args=(messages, printed, tuple(tasks), first, device, limits)
        )
        self._standing = _Standing(task=first, deadline_s=time.monotonic() + _START_TIMEOUT_S)
        try:
            self._process.start()
        finally:
            messages.close()
            printed.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._end()
        self._messages.close()
        self._printed.close()

    def outcomes(self) -> Iterator[tuple[int, Outcome]]:
        """Outcomes as they come; the last one is the parent's own where the worker did not live."""
        standing = self._standing
        while standing.task < self._count:
            try:
                message = self._next_message()
            except MalformedOutcomeError as error:
                yield standing.task, self._failed(f"the worker's pipe was written to: {error}")
                return
            if message is None:
                yield standing.task, self._post_mortem()
                return
            _, task, outcome = message
            if task != standing.task or (outcome is not None and not standing.started):
                yield standing.task, self._failed("the worker's pipe was written to: out of turn")
                return
            if outcome is None:
                standing.started = True
                self._tail = b""
                standing.deadline_s = time.monotonic() + self._limits.timeout_s
                continue
            yield task, outcome
            self._standing = standing = _Standing(
                task=task + 1, deadline_s=time.monotonic() + self._limits.timeout_s
            )

    def _next_message(self) -> tuple[str, int, Outcome | None] | None:
        """The next message; None where the worker has died or its time is up."""
        sources: list[Connection | int] = [self._messages, self._process.sentinel, self._printed]
        while True:
            left_s = self._standing.deadline_s - time.monotonic()
            ready = wait(sources, timeout=max(0.0, left_s))
            if self._printed in ready and not self._drain():
                sources.remove(self._printed)
            if self._messages in ready:
                try:
                    return decode_message(self._messages.recv_bytes(maxlength=1 << 28))
                except (EOFError, OSError):
                    return None
            if self._process.sentinel in ready or left_s <= 0:
                return None

    def _drain(self) -> bool:
        """Read what was printed, keep its end; False once the pipe is closed."""
        chunk = os.read(self._printed.fileno(), 1 << 16)
        self._tail = (self._tail + chunk)[-_OUTPUT_TAIL_BYTES:]
        return bool(chunk)

    def _post_mortem(self) -> Outcome:
        if time.monotonic() >= self._standing.deadline_s:
            message = f"no answer within {self._limits.timeout_s:g} s"
            return Outcome(status=Status.TIMEOUT, message=message)
        self._process.join(_EXIT_GRACE_S)
        while wait([self._printed], timeout=0) and self._drain():
            pass
        return self._failed(_cause_of_death(self._process.exitcode))

    def _failed(self, cause: str) -> Outcome:
        """A runtime error with the last line that was printed, which often says why."""
        lines = self._tail.decode(errors="replace").strip().splitlines()
        message = f"{cause}: {lines[-1].strip()}" if lines else cause
        return Outcome(status=Status.RUNTIME_ERROR, message=message[:_MESSAGE_LIMIT])

    def _end(self) -> None:
        """End the worker and everything that it has forked."""
        if self._standing.task >= self._count:
            self._process.join(_EXIT_GRACE_S)
        pid = self._process.pid
        if pid is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
        self._process.join()
        self._process.close()


def _cause_of_death(exit_code: int | None) -> str:
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


def _enter(
    messages: Connection,
    printed: Connection,
    tasks: Sequence[Task],
    first: int,
    device: str,
    limits: Limits,
) -> None:
    """The worker's process: set up its surroundings, then perform its tasks."""
    os.setsid()
    _die_with_parent()
    for stream in (1, 2):
        os.dup2(printed.fileno(), stream)
    printed.close()
    sys.stdout = os.fdopen(1, "w", buffering=1, errors="replace", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="replace", closefd=False)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    _limit_memory(limits.memory_bytes)

    from perfci.worker import Bench  # noqa: PLC0415 — imports torch, which the parent must not

    bench = Bench(device, limits)
    for index in range(first, len(tasks)):
        messages.send_bytes(encode_message("start", index))
        outcome = bench.perform(tasks[index])
        messages.send_bytes(encode_message("done", index, outcome))
    messages.close()
    # Exit handlers of code under test have no say in how a pass ends.
    sys.stdout.flush()
    os._exit(0)


def _die_with_parent() -> None:
    """Ask the kernel to end this process when the fork server ends, however it ends."""
    import ctypes  # noqa: PLC0415 — only workers need it

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _limit_memory(memory_bytes: int | None) -> None:
    """Bound what the worker may allocate, and let it be the first to go when memory is out."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:  # noqa: PTH123
        score.write("1000")
    if memory_bytes is not None:
        resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
