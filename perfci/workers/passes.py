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
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import Self

from perfci.config import apply_environment
from perfci.errors import ConfigurationError, DeviceError
from perfci.history.model import Device, Status
from perfci.history.text import one_line
from perfci.outcome import (
    MalformedOutcomeError,
    Outcome,
    decode_message,
    encode_message,
    require_pair,
)
from perfci.plan import Gauge, Limits, Target, Task
from perfci.timers import TIMERS

_OUTPUT_TAIL_BYTES = 4096
_LONGEST_LINE_BYTES = 1 << 24
_CHUNK_BYTES = 1 << 16
_TASK_MARK = b"\0perfci: next task\0"
"""Parts what a worker prints by task; two pipes are not read in the order of their writing."""
_MESSAGE_LIMIT = 300
_EXIT_GRACE_S = 5.0
_LONGEST_TEMPORARY_FOLDER = 70
_START_TIMEOUT_S = 120.0
_PR_SET_PDEATHSIG = 1


class PassServer:
    """The fork server that starts passes; it ends with this process.

    With ``compiling`` it has imported torch's compiler too, which every pass with a
    ``torch.compile`` in it would otherwise do for seconds.
    """

    def __init__(self, environment: Mapping[str, str], *, compiling: bool = False) -> None:
        apply_environment(environment)
        _check_temporary_folder()
        self._context: ForkServerContext = multiprocessing.get_context("forkserver")
        compilers = ["torch._dynamo", "torch._inductor.compile_fx"] if compiling else []
        preloaded = ["perfci.workers.worker", *compilers, "perfci.workers.preloaded"]
        self._context.set_forkserver_preload(preloaded)

    def probe_gpus(self) -> tuple[Device, ...]:
        """The GPUs as torch sees them. Raises DeviceError where asking fails."""
        received, sent = self._context.Pipe(duplex=False)
        process = self._context.Process(target=_enter_probe, args=(sent,))
        _start(process)
        sent.close()
        try:
            if not received.poll(_START_TIMEOUT_S):
                raise DeviceError("the GPU does not answer; see nvidia-smi")
            devices: tuple[Device, ...] = received.recv()
        except EOFError:
            process.join(_EXIT_GRACE_S)
            cause = _cause_of_death(process.exitcode)
            raise DeviceError(f"asking torch for the GPUs failed: {cause}") from None
        finally:
            process.kill()
            process.join()
        return devices

    def run(
        self, tasks: Sequence[Task | Gauge], *, target: Target, limits: Limits
    ) -> Iterator[tuple[int, tuple[Outcome, ...]]]:
        """Run tasks in order in one fresh process, or several where one does not survive.

        Yields (index of the task, an outcome for each of its sides) as they end.
        """
        next_task = 0
        while next_task < len(tasks):
            ended: Outcome | None = None
            with _Worker(self._context, tasks, next_task, target, limits) as worker:
                for index, outcomes in worker.outcomes():
                    next_task = index + 1
                    if len(outcomes) < len(tasks[index].sides):
                        (ended,) = outcomes
                        break
                    yield index, outcomes
            if ended is not None:
                task = tasks[next_task - 1]
                yield next_task - 1, self._apart(task, ended, target=target, limits=limits)

    def _apart(
        self, task: Task | Gauge, ended: Outcome, *, target: Target, limits: Limits
    ) -> tuple[Outcome, ...]:
        """What becomes of two sides of which one has ended their process: each by itself."""
        alone = self.run(task.apart(), target=target, limits=limits)
        outcomes = [outcome for _, (outcome,) in alone]
        if any(each.status is not Status.PASSED for each in outcomes):
            return require_pair(outcomes)
        message = one_line(f"only beside the other side: {ended.message}", limit=_MESSAGE_LIMIT)
        return (replace(ended, message=message),) * len(outcomes)


@dataclass(slots=True)
class _Standing:
    """What a worker was last heard to be at."""

    task: int
    deadline_s: float
    started: bool = False
    told: list[Outcome] = field(default_factory=list)


class _Worker:
    """One worker process with its two pipes: messages, and what it prints."""

    def __init__(
        self,
        context: ForkServerContext,
        tasks: Sequence[Task | Gauge],
        first: int,
        target: Target,
        limits: Limits,
    ) -> None:
        self._tasks, self._limits = tasks, limits
        self._first = first
        self._messages, messages = context.Pipe(duplex=False)
        self._printed, printed = context.Pipe(duplex=False)
        self._unread = bytearray()
        self._tail = b""
        self._process: ForkServerProcess = context.Process(
            target=_enter, args=(messages, printed, tuple(tasks), first, target, limits)
        )
        self._standing = _Standing(task=first, deadline_s=time.monotonic() + _START_TIMEOUT_S)
        try:
            _start(self._process)
        finally:
            messages.close()
            printed.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._end()
        self._messages.close()
        self._printed.close()

    def outcomes(self) -> Iterator[tuple[int, tuple[Outcome, ...]]]:
        """Outcomes as they come, one for each side of a task.

        The last one is the parent's own, of all sides together, where the worker did not live.
        """
        standing = self._standing
        while standing.task < len(self._tasks):
            try:
                message = self._next_message()
            except MalformedOutcomeError as error:
                yield standing.task, (self._failed(f"the worker's pipe was written to: {error}"),)
                return
            if message is None:
                if self._gave_up():
                    return
                yield standing.task, (self._post_mortem(),)
                return
            _, task, outcome = message
            if task != standing.task or (outcome is None) == standing.started:
                out_of_turn = self._failed("the worker's pipe was written to: out of turn")
                yield standing.task, (out_of_turn,)
                return
            if outcome is None:
                standing.started = True
                standing.deadline_s = time.monotonic() + self._limit_s(task)
                continue
            if not _answers(outcome, self._tasks[task]):
                yield task, (self._failed("the worker's pipe was written to: other figures"),)
                return
            standing.told.append(outcome)
            if len(standing.told) < len(self._tasks[task].sides):
                continue
            yield task, tuple(standing.told)
            self._standing = standing = _Standing(
                task=task + 1, deadline_s=time.monotonic() + self._limits.timeout_s
            )

    def _limit_s(self, task: int) -> float:
        return len(self._tasks[task].sides) * self._limits.timeout_s

    def _next_message(self) -> tuple[str, int, Outcome | None] | None:
        """The next message; None where the worker has died or its time is up."""
        sources: list[Connection | int] = [self._messages, self._process.sentinel, self._printed]
        while True:
            line, newline, rest = self._unread.partition(b"\n")
            if newline:
                self._unread = rest
                return decode_message(bytes(line))
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

    def _post_mortem(self) -> Outcome:
        if time.monotonic() >= self._standing.deadline_s:
            message = f"no answer within {self._limit_s(self._standing.task):g} s"
            return Outcome(status=Status.TIMEOUT, message=message)
        self._process.join(_EXIT_GRACE_S)
        cause = _cause_of_death(self._process.exitcode)
        # What it has forked may print for ever; a pipe holds no more than a chunk.
        self._kill()
        if wait([self._printed], timeout=0):
            self._drain()
        return self._failed(cause)

    def _failed(self, cause: str) -> Outcome:
        """A runtime error with the last line that was printed, which often says why."""
        printed = self._tail.rpartition(_TASK_MARK)[2]
        lines = printed.decode(errors="replace").strip().splitlines()
        message = f"{cause}: {lines[-1].strip()}" if lines else cause
        message = one_line(message, limit=_MESSAGE_LIMIT)
        return Outcome(status=Status.RUNTIME_ERROR, message=message)

    def _end(self) -> None:
        """End the worker and everything that it has forked."""
        if self._standing.task >= len(self._tasks):
            self._process.join(_EXIT_GRACE_S)
        self._kill()
        self._process.join()
        self._process.close()

    def _kill(self) -> None:
        pid = self._process.pid
        if pid is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
        # It may not have become the head of its group yet.
        self._process.kill()


def _start(process: ForkServerProcess) -> None:
    """Start a process; the fork server, started with the first, is left alone by Ctrl-C.

    It ends with this process, and what it has to say of an interrupt is nobody's concern.
    """
    resource_tracker.ensure_running()  # which lets signals through again, so that it goes first
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    process.start()


def _check_temporary_folder() -> None:
    """ConfigurationError where the fork server's socket, in TMPDIR, would have too long a name."""
    folder = tempfile.gettempdir()
    if len(os.fsencode(folder)) > _LONGEST_TEMPORARY_FOLDER:
        raise ConfigurationError(
            f"TMPDIR={folder}: too long for a socket in it; set it to a folder whose path has "
            f"{_LONGEST_TEMPORARY_FOLDER} characters at most"
        )


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


def _enter_probe(answer: Connection) -> None:
    from perfci.workers.probe import probe_gpus  # noqa: PLC0415 — imports torch, which the parent must not

    answer.send(probe_gpus())


def _enter(
    messages: Connection,
    printed: Connection,
    tasks: Sequence[Task | Gauge],
    first: int,
    target: Target,
    limits: Limits,
) -> None:
    """The worker's process: set up its surroundings, then perform its tasks."""
    os.setsid()
    _die_with_parent()
    sys.dont_write_bytecode = True  # beside the kernels, where git would see it
    for stream in (1, 2):
        os.dup2(printed.fileno(), stream)
    _give_up_descriptors(keep=messages.fileno())
    sys.stdout = os.fdopen(1, "w", buffering=1, errors="replace", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="replace", closefd=False)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    _limit_memory(limits.memory_bytes)
    if target.device.uuid is not None:
        apply_environment({"CUDA_VISIBLE_DEVICES": target.device.uuid})

    from perfci.workers.worker import Bench  # noqa: PLC0415 — imports torch, which the parent must not

    bench = Bench(target, limits)
    own_pid = os.getpid()
    for index in range(first, len(tasks)):
        sys.stdout.flush()
        with contextlib.suppress(OSError):
            os.write(1, _TASK_MARK)
        _send(messages, encode_message("start", index))
        outcomes = bench.perform(tasks[index])
        if os.getpid() != own_pid:
            os._exit(0)  # a copy that a kernel has forked and let return has nothing to say
        for outcome in outcomes:
            _send(messages, encode_message("done", index, outcome))
        if not outcomes or not bench.is_sound():
            break
    messages.close()
    # Exit handlers of code under test have no say in how a pass ends.
    sys.stdout.flush()
    os._exit(0)


def _send(messages: Connection, line: bytes) -> None:
    with open(messages.fileno(), "wb", closefd=False) as pipe:
        pipe.write(line)


def _die_with_parent() -> None:
    """Ask the kernel to end this process when the fork server ends, however it ends."""
    import ctypes  # noqa: PLC0415 — only workers need it

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _give_up_descriptors(*, keep: int) -> None:
    """Leave code under test nothing to write to but what it prints and the pipe of messages.

    A process of a fork server holds the server's own pipes: writing to them ends the server, and
    holding them keeps it alive after perfci. Their numbers are still in use by Python, so that
    they lead nowhere rather than being closed.
    """
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in [int(each.name) for each in Path("/proc/self/fd").iterdir()]:
        if number > 2 and number != keep:
            os.dup2(nowhere, number)


def _limit_memory(memory_bytes: int | None) -> None:
    """Bound what the worker may allocate, and let it be the first to go when memory is out."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:  # noqa: PTH123
        score.write("1000")
    if memory_bytes is not None:
        resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
