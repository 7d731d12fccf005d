"""Whose a process on a GPU is: ours, or another's that has no business there."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path


class Household:
    """The processes of one command: itself, those that started it, and all that it has started.

    Those that started it wait for it; they may hold a GPU, but do not use it meanwhile.
    """

    def __init__(self) -> None:
        self._ours = {os.getpid(), *_ancestors(os.getpid())}
        self._head = os.getpid()

    def is_ours(self, pid: int) -> bool:
        """Whether a process is of this household, or was when it was last seen."""
        if pid not in self._ours and self._head in _ancestors(pid):
            self._ours.add(pid)
        return pid in self._ours


def count_others(listed: Iterable[int] | None, is_ours: Callable[[int], bool]) -> int | None:
    """How many of the processes that a driver lists are not ours; None where nobody knows.

    Asked while one of ours is on the GPU. If none of ours is in the list, it is not ours to read:
    a container shows no processes, or numbers them as its host does.
    """
    if listed is None:
        return None
    owners = [is_ours(pid) for pid in listed]
    return owners.count(False) if any(owners) else None


def _ancestors(pid: int) -> set[int]:
    found: set[int] = set()
    while (parent := _parent(pid)) and parent not in found:
        found.add(parent)
        pid = parent
    return found


def _parent(pid: int) -> int | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The name before it may hold blanks and brackets.
    return int(stat.rpartition(")")[2].split()[1])
