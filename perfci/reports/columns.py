"""Text in columns on a terminal, measured in cells of the screen rather than in characters."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from perfci.history.text import one_line

WIDTH = 80
_GAP = "  "
_NARROWEST = 6
_KEPT = "\u00a0"
_AMOUNT_BLANK = re.compile(
    r"(?<=[\d\]]) (?=(?:%|[nµm]?s|[mh])(?!\w))"  # 9 s, [+1.0, +5.4] %
    r"|(?<=\d [mh]) (?=\d+ [ms](?!\w))"  # 1 m 12 s
)


@dataclass(frozen=True, slots=True)
class Column:
    """A column's heading, the side its text leans to, and whether its text may be shortened."""

    heading: str
    align: Literal["left", "right"] = "left"
    shrinks: bool = False


def lay_out(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[str]:
    """Write a heading and rows below each other, indented by two, at most 80 wide.

    Columns that shrink give up the excess, the widest first, and their text is shortened in the
    middle. Text is made safe to show. No rows are said to be none.
    """
    if not rows:
        return [f"{_GAP}(none)"]
    table = [[one_line(text) for text in row] for row in rows]
    widths = [
        max(measure(text) for text in (column.heading, *texts))
        for column, texts in zip(columns, zip(*table, strict=True), strict=True)
    ]
    _shrink(widths, columns)
    headings = [column.heading for column in columns]
    return [_write_row(columns, widths, row) for row in (headings, *table)]


def measure(text: str) -> int:
    """Count the cells of the screen that a text takes."""
    return sum(_measure_character(character) for character in text)


def shorten(text: str, width: int) -> str:
    """Take out the middle of a text that is wider than ``width``; an ellipsis says so."""
    if measure(text) <= width:
        return text
    head = _take(text, width // 2)
    tail = _take(text[::-1], width - 1 - measure(head))[::-1]
    return f"{head}…{tail}"


def wrap(text: str, *, indent: int, width: int = WIDTH) -> list[str]:
    """Break a text into indented lines at blanks, and within a word that is wider than a line.

    The blanks between a number and its unit, and within a duration, are no places to break.
    """
    room = width - indent
    lines: list[str] = []
    line = ""
    for word in _AMOUNT_BLANK.sub(_KEPT, one_line(text, limit=2000)).split(" "):
        joined = f"{line} {word}" if line else word
        if measure(joined) <= room:
            line = joined
            continue
        lines += [line] if line else []
        line = word
        while measure(line) > room:
            head = _take(line, room)
            lines.append(head)
            line = line[len(head) :]
    return [" " * indent + each.replace(_KEPT, " ") for each in (*lines, line) if each]


def _shrink(widths: list[int], columns: Sequence[Column]) -> None:
    shrinking = [index for index, column in enumerate(columns) if column.shrinks]
    excess = len(_GAP) * len(columns) + sum(widths) - WIDTH
    for _ in range(excess):
        widest = max(shrinking, key=lambda index: widths[index], default=None)
        if widest is None or widths[widest] <= _NARROWEST:
            return
        widths[widest] -= 1


def _write_row(columns: Sequence[Column], widths: Sequence[int], row: Sequence[str]) -> str:
    texts = []
    for column, width, text in zip(columns, widths, row, strict=True):
        short = shorten(text, width)
        blank = " " * (width - measure(short))
        texts.append(blank + short if column.align == "right" else short + blank)
    return (_GAP + _GAP.join(texts)).rstrip()


def _take(text: str, width: int) -> str:
    """Take as much of the beginning of a text as fits."""
    taken = 0
    for index, character in enumerate(text):
        taken += _measure_character(character)
        if taken > width:
            return text[:index]
    return text


def _measure_character(character: str) -> int:
    if unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1
