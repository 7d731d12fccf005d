"""Red cells as notes on the changed lines of their kernels, which GitHub shows in a diff. Pure."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from perfci import units
from perfci.ci.judgement import JudgedCell
from perfci.ci.merging import Ruling
from perfci.history.model import Verdict
from perfci.history.text import one_line
from perfci.reports.comparison import count_verdicts, give_reason, write_verdict

MOST = 200
"""More than anybody reads; GitHub takes 50 a call."""

_MOST_CELLS = 20
_LONGEST_TITLE = 200
_RED = (Verdict.INCORRECT, Verdict.REGRESSION, Verdict.MISSING, Verdict.INCOMPARABLE)
_HUNK = re.compile(r"@@ -\d{1,9}(?:,\d{1,9})? \+(\d{1,9})(?:,\d{1,9})? @@")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """Lines of a file that a change adds, the first and the last of them."""

    path: str
    first: int
    last: int


def find_lines(path: str, patch: str) -> Lines | None:
    """The first lines in a row that a patch adds to a file; None where it only takes away."""
    number, first = 0, None  # lines count from 1: there is none before the first hunk
    for line in patch.split("\n"):  # and no other sign that breaks one: sources hold form feeds
        hunk = _HUNK.match(line)
        if first is not None and (hunk or not line.startswith("+")):
            break
        if hunk:
            number = int(hunk[1])
        elif number and not line.startswith(("-", "\\")):
            first = number if line.startswith("+") and first is None else first
            number += 1
    return None if first is None else Lines(path=path, first=first, last=number - 1)


def annotate(
    ruling: Ruling, changed: Iterable[tuple[str, str]], *, kernels: str
) -> list[dict[str, Any]]:
    """An annotation for each variant with red cells whose kernel is changed, the worst first.

    ``changed`` are paths with their patches; ``kernels`` is the folder of kernels. Both from the
    top of the repository.
    """
    lines = [found for path, patch in changed if (found := find_lines(path, patch)) is not None]
    groups: dict[tuple[str, str], list[tuple[str, JudgedCell]]] = {}
    for runner, cell in ruling.cells:
        if cell.verdict in _RED and not cell.accepted:
            groups.setdefault((cell.key.kernel, cell.key.variant), []).append((runner, cell))
    placed = (
        (_find_place(lines, PurePosixPath(kernels) / kernel, variant), kernel, variant, cells)
        for (kernel, variant), cells in groups.items()
    )
    notes = [_annotation(at, f"{k}/{v}", cells) for at, k, v, cells in placed if at is not None]
    return notes[:MOST]


def _find_place(lines: Sequence[Lines], folder: PurePosixPath, variant: str) -> Lines | None:
    """Where a variant is changed: in its own file, else in another of its kernel."""
    inside = [each for each in lines if PurePosixPath(each.path).is_relative_to(folder)]
    own = (each for each in inside if PurePosixPath(each.path).stem == variant)
    return next(own, next(iter(inside), None))


def _annotation(place: Lines, name: str, cells: Sequence[tuple[str, JudgedCell]]) -> dict[str, Any]:
    told = [_write_cell(runner, cell) for runner, cell in cells[:_MOST_CELLS]]
    more = len(cells) - _MOST_CELLS
    told += [f"and {units.format_count(more)} more"] if more > 0 else []
    title = f"{name}: {count_verdicts(cell for _, cell in cells)}"
    return {
        "path": place.path,
        "start_line": place.first,
        "end_line": place.last,
        "annotation_level": "failure",
        "title": one_line(title, limit=_LONGEST_TITLE),
        "message": "\n".join(told),
    }


def _write_cell(runner: str, cell: JudgedCell) -> str:
    figures = ""
    if cell.ratio is not None:
        interval = units.format_interval(cell.interval)
        figures = f" {units.format_change(cell.ratio)} {interval}"
    reason = give_reason(cell, {cell.key: cell.differences})
    name = f"{cell.key.case} {cell.key.contract} on {runner}"
    text = f"{name}: {write_verdict(cell.verdict)}{figures}"
    return one_line(f"{text}; {reason}" if reason else text, limit=400)
