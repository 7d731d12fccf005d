"""How far long work is, on standard error: a bar on a terminal, a line a phase elsewhere."""

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class Observer(Protocol):
    """Who hears how far long work is."""

    def step(self, phase: str, done: int, total: int, label: str) -> None:
        """``done`` of ``total`` steps of a phase have ended, the last one that of ``label``."""
        ...


@contextmanager
def progress() -> Iterator[Observer]:
    """An observer for standard error as it is here."""
    # A GPU box may have no rich; a log wants lines, not a bar.
    if not sys.stderr.isatty() or importlib.util.find_spec("rich") is None:
        yield LineObserver()
        return
    from rich.console import Console  # noqa: PLC0415 — half the start-up time of a command
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
    )

    columns = (
        TextColumn("{task.description:<9}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[label]}", style="dim", markup=False),
    )
    with Progress(*columns, console=Console(stderr=True)) as bars:
        yield BarObserver(bars)


class LineObserver:
    """A line for each quarter of a phase."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[int, int]] = {}

    def step(self, phase: str, done: int, total: int, label: str) -> None:
        """Print when a further quarter of the phase is done; a phase may begin again."""
        quarter = done * 4 // total
        last_done, last_quarter = self._last.get(phase, (0, 0))
        begins_again = done <= last_done
        self._last[phase] = done, quarter
        if quarter == (0 if begins_again else last_quarter):
            return
        print(f"{phase}: {done} of {total} ({label})", file=sys.stderr, flush=True)


class BarObserver:
    """A bar a phase."""

    def __init__(self, bars: "Progress") -> None:
        self._bars = bars
        self._tasks: dict[str, TaskID] = {}

    def step(self, phase: str, done: int, total: int, label: str) -> None:
        """Move the phase's bar."""
        if phase not in self._tasks:
            self._tasks[phase] = self._bars.add_task(phase, total=total, label="")
        self._bars.update(self._tasks[phase], completed=done, total=total, label=label)
