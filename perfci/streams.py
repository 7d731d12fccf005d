"""Standard streams that may be closed, full or unread: no run is lost, and no verdict feigned."""

import io
import os
import sys
from typing import TYPE_CHECKING, TextIO

from perfci.errors import UsageError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


def secure_streams() -> None:
    """Open what is closed, and let errors of writing be what they are worth.

    A file opened later would otherwise get the number of a closed stream and be written over by
    whatever prints. What is said on standard error and cannot be is lost; what cannot be written
    to standard output is a UsageError, but where nobody reads on.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(number, True)  # noqa: FBT003 — the standard library's own signature
    os.close(number)
    sys.stdout = _text(_Output(1, "w", closefd=False), sys.stdout)
    sys.stderr = _text(_Comments(2, "w", closefd=False), sys.stderr)


def give_up_output() -> None:
    """Let what could not be written be forgotten, so that Python's own exit does not stumble."""
    try:
        sys.stdout.flush()
    except (OSError, UsageError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)


class _Output(io.FileIO):
    def write(self, blob: "ReadableBuffer", /) -> int:
        try:
            return super().write(blob)
        except BrokenPipeError:
            raise
        except OSError as error:
            reason = (error.strerror or "").lower()
            raise UsageError(f"the output cannot be written: {reason}") from None


class _Comments(io.FileIO):
    def write(self, blob: "ReadableBuffer", /) -> int:
        try:
            return super().write(blob)
        except OSError:
            return memoryview(blob).nbytes


def _text(raw: io.FileIO, like: TextIO | None) -> io.TextIOWrapper:
    """A stream of text over a descriptor, in the encoding that Python had chosen for it."""
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=like.encoding if like else "utf-8",
        errors="replace" if like is None else like.errors,
        line_buffering=raw.fileno() == 2 or raw.isatty(),
    )
