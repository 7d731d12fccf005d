"""A command of perfci as a process of its own: what becomes of it is seen, whatever it runs.

It is given no token: the code under test is its child, and reads what it reads.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import click

from perfci.config import measuring_environment
from perfci.history.text import one_line

_LOOK_S = 0.5
_GRACE_S = 5.0
"""GitHub gives a job that is cancelled 7.5 s."""
_CHUNK_BYTES = 1 << 16
_LARGEST_LOG_BYTES = 16 * 2**20
_CUT = b"\n[...] cut here: the log was larger\n"
_OURS = "perfci: "


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a command ended, in how long; ``code`` is 128 and more where a signal ended it."""

    code: int
    duration_s: float
    is_interrupted: bool = False


def call(arguments: Sequence[str], *, folder: Path, log: Path, trigger: str) -> Ended:
    """Run a command of perfci in a folder; what it says goes into the log and on our own error.

    An interruption ends it as well.
    """
    command = [sys.executable, "-P", "-m", "perfci", *arguments]
    started_s = time.monotonic()
    interrupted = False
    with log.open("wb") as said:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=_environment(trigger),
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
        with log.open("rb") as read:
            try:
                _follow(process, read)
            except KeyboardInterrupt:
                interrupted = True
                _end(process)
                _pass_on(read)
    _cut(log)
    code = process.returncode
    return Ended(
        code=128 - code if code < 0 else code,
        duration_s=time.monotonic() - started_s,
        is_interrupted=interrupted,
    )


def find_error(log: Path, ended: Ended) -> str:
    """The one line that says why a command failed; empty where it only had something to say."""
    if ended.is_interrupted:
        return "interrupted"
    if ended.code > 128:
        name = signal.Signals(ended.code - 128).name if ended.code - 128 in _SIGNALS else "a signal"
        return f"ended by {name}" + (" (out of memory?)" if name == "SIGKILL" else "")
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    ours = [one_line(each.removeprefix(_OURS)) for each in lines if each.startswith(_OURS)]
    return ours[-1] if ours and ended.code else ""


_SIGNALS = {int(each) for each in signal.Signals}


def _environment(trigger: str) -> Mapping[str, str]:
    return measuring_environment(PERFCI_TRIGGER=trigger)


def _follow(process: subprocess.Popen[bytes], log: IO[bytes]) -> None:
    """Pass on what comes into the log until the process ends.

    The log is a file and no pipe, which a process that outlives this one could keep open.
    """
    while True:
        try:
            process.wait(_LOOK_S)
        except subprocess.TimeoutExpired:
            _pass_on(log)
        else:
            _pass_on(log)
            return


def _pass_on(log: IO[bytes]) -> None:
    while chunk := log.read(_CHUNK_BYTES):
        click.echo(chunk, err=True, nl=False)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Let a command end as after Ctrl-C, and by force where it does not."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_S)
            return


def _cut(log: Path) -> None:
    """Leave of a log that code under test has filled its beginning and its end."""
    size = log.stat().st_size
    if size <= _LARGEST_LOG_BYTES:
        return
    half = _LARGEST_LOG_BYTES // 2
    with log.open("r+b") as file:
        file.seek(size - half)
        end = file.read()
        file.seek(half)
        file.write(_CUT + end)
        file.truncate()
