"""A worker seen from inside: it sets up its surroundings, then performs its tasks.

This module must not import torch before a worker does: the parent imports it too.
"""

import contextlib
import ctypes
import os
import resource
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from perfci.collector import uncollected
from perfci.config import apply_environment
from perfci.outcome import encode_message
from perfci.plan import Gauge, Limits, Target, Task

TASK_MARK = b"\0perfci: next task\0"
"""Parts what a worker prints by task; two pipes are not read in the order of their writing."""
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """What a worker is to do: the tasks from ``first`` on.

    With ``in_turns`` it is one of two, each with one side of every task.
    """

    tasks: Sequence[Task | Gauge]
    first: int
    target: Target
    limits: Limits
    in_turns: bool = False


def enter(messages: Connection, printed: Connection, errand: Errand) -> None:
    """What a process of the fork server does, and then it ends."""
    for stream in (1, 2):
        os.dup2(printed.fileno(), stream)
    run_errand(errand, messages.fileno())


def run_errand(errand: Errand, messages: int, heard: int | None = None) -> None:
    """Perform an errand and end the process; it prints into the standard streams.

    ``messages`` is where the worker says what comes of it, ``heard`` where it hears of its turns
    if it takes any.
    """
    if os.getsid(0) != os.getpid():
        os.setsid()
    _die_with_parent()
    sys.dont_write_bytecode = True  # beside the kernels, where git would see it
    _give_up_descriptors(keep={messages} if heard is None else {messages, heard})
    sys.stdout = os.fdopen(1, "w", buffering=1, errors="replace", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="replace", closefd=False)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    _limit_memory(errand.limits.memory_bytes)
    if errand.target.device.uuid is not None:
        apply_environment({"CUDA_VISIBLE_DEVICES": errand.target.device.uuid})
    _perform(errand, messages, heard)
    # Exit handlers of code under test have no say in how a pass ends.
    sys.stdout.flush()
    os._exit(0)


def _perform(errand: Errand, messages: int, heard: int | None) -> None:
    """Perform tasks until the last one, or until this process is no place for another."""
    with uncollected():  # imports leave no rubbish, and there is much to look through
        from perfci.checking.check import synchronise  # noqa: PLC0415 — torch, which the parent
        from perfci.workers.partner import Partner  # noqa: PLC0415 — must not import
        from perfci.workers.worker import Bench  # noqa: PLC0415

    partner = None
    if errand.in_turns and heard is not None:
        partner = Partner(messages, heard, lambda: synchronise(errand.target.name))
    bench = Bench(errand.target, errand.limits, partner)
    own_pid = os.getpid()
    for index in range(errand.first, len(errand.tasks)):
        if partner is not None:
            _send(messages, encode_message("ready", index))
            partner.begin(index)
        sys.stdout.flush()
        with contextlib.suppress(OSError):
            os.write(1, TASK_MARK)
        _send(messages, encode_message("start", index))
        outcomes = bench.perform(errand.tasks[index])
        if os.getpid() != own_pid:
            os._exit(0)  # a copy that a kernel has forked and let return has nothing to say
        for outcome in outcomes:
            _send(messages, encode_message("done", index, outcome))
        if not outcomes or not bench.is_sound():
            break
    os.close(messages)


def _send(messages: int, line: bytes) -> None:
    with open(messages, "wb", closefd=False) as pipe:
        pipe.write(line)


def _die_with_parent() -> None:
    """Ask the kernel to end this process when the one that started it ends, however it ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _give_up_descriptors(*, keep: set[int]) -> None:
    """Leave code under test nothing to write to but what it prints and the pipe of messages.

    A process of a fork server holds the server's own pipes: writing to them ends the server, and
    holding them keeps it alive after perfci. Their numbers are still in use by Python, so that
    they lead nowhere rather than being closed.
    """
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in [int(each.name) for each in Path("/proc/self/fd").iterdir()]:
        if number > 2 and number not in keep:
            os.dup2(nowhere, number)


def _limit_memory(memory_bytes: int | None) -> None:
    """Bound what the worker may allocate, and let it be the first to go when memory is out."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:  # noqa: PTH123
        score.write("1000")
    if memory_bytes is not None:
        resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
