"""How a worker is started: by the fork server, or as a program of its own in any environment."""

import contextlib
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import Protocol

from perfci.config import inherited_environment
from perfci.environments.installation import Installation
from perfci.workers import outpost
from perfci.workers.inside import Errand, enter


class Process(Protocol):
    """A process that was started, as multiprocessing has them."""

    @property
    def pid(self) -> int | None:
        """Its number."""
        ...

    @property
    def sentinel(self) -> int:
        """What becomes ready when it ends."""
        ...

    @property
    def exitcode(self) -> int | None:
        """How it ended: below 0 by a signal; None where that is not known."""
        ...

    def join(self, timeout: float | None = None) -> None:
        """Wait for its end."""
        ...

    def kill(self) -> None:
        """End it."""
        ...

    def close(self) -> None:
        """Let go of what is held of it."""
        ...


Launch = Callable[[Connection, Connection, Errand], Process]
"""Start a worker that says things into the first pipe and prints into the second."""


def launch_from(context: ForkServerContext) -> Launch:
    """Workers of the fork server, in the environment that runs perfci."""

    def launch(messages: Connection, printed: Connection, errand: Errand) -> Process:
        process: ForkServerProcess = context.Process(target=enter, args=(messages, printed, errand))
        start(process)
        return process

    return launch


def launch_in(installation: Installation | None) -> Launch:
    """Workers that are programs by themselves, in an environment; None is that of perfci."""
    python = installation.python if installation else Path(sys.executable)
    # Its own environment and nothing else; that of perfci as it was found.
    isolated = "-I" if installation else "-P"

    def launch(messages: Connection, printed: Connection, errand: Errand) -> Process:
        told = str(messages.fileno())
        process = subprocess.Popen(
            [str(python), isolated, str(outpost.__file__), told],
            stdin=subprocess.PIPE,
            stdout=printed.fileno(),
            stderr=printed.fileno(),
            pass_fds=[messages.fileno()],
            env=inherited_environment(),
            start_new_session=True,
        )
        return Program(process, pickle.dumps(errand))

    return launch


class Program:
    """A program as a process; what it is to do, and hear of later, is written to it."""

    def __init__(self, process: "subprocess.Popen[bytes]", errand: bytes) -> None:
        self._process = process
        self.sentinel = os.pidfd_open(process.pid)
        self.tell(len(errand).to_bytes(outpost.SIZE_BYTES) + errand)

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    @property
    def exitcode(self) -> int | None:
        """How it ended, None while it runs."""
        return self._process.poll()

    def tell(self, line: bytes) -> None:
        """Write to it; nothing where it is not there to read."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(line)
            self._process.stdin.flush()

    def join(self, timeout: float | None = None) -> None:
        """Wait for its end."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout)

    def kill(self) -> None:
        """End it."""
        self._process.kill()

    def close(self) -> None:
        """Let go of its pipe."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        os.close(self.sentinel)


def start(process: ForkServerProcess) -> None:
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
