"""Folders that one process works in: a lock in a folder lives no longer than who holds it."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_LOCK = "lock"


def hold(folder: Path) -> int:
    """Hold a new folder until the descriptor that this returns is closed. Raises OSError."""
    lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise
    return lock


@contextmanager
def unheld(folder: Path) -> Iterator[bool]:
    """Whether who held a folder is gone; if so, nobody else finds it so meanwhile.

    A folder that nobody has ever held is no such folder.
    """
    try:
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        yield False
        return
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
            return
        yield True
    finally:
        os.close(lock)
