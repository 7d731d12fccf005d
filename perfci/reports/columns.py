"""Text in columns on a terminal, measured in cells of the screen rather than in characters."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from perfci.history.text import one_line

WIDTH = 80
_INDENT = "  "
_GAP = "  "
_NARROW_GAP = " "
_NARROWEST = 6
_KEPT = "\u00a0"
_AMOUNT_BLANK = re.compile(
    r"(?<=[\d\]]) (?=(?:%|[nµm]?s|[mh])(?!\w))"  # 9 s, [+1.0, +5.4] %
    r"|(?<=\d [mh]) (?=\d+ [ms](?!\w))"  # 1 m 12 s
)


@dataclass(frozen=True, slots=True)
class Column:
    """A column's heading, the side its text leans to, and how it makes room.

    Its text may be shortened, that which ``names`` what a row is of after all others', or all of it
    be left out.
    """

    heading: str
    align: Literal["left", "right"] = "left"
    shrinks: bool = False
    names: bool = False
    gives_way: bool = False


def lay_out(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], *, width: int = WIDTH
) -> list[str]:
    """Write a heading and rows below each other, indented by two, at most ``width`` wide.

    What is too wide loses the columns that give way. Before a name is cut, columns stand only one
    blank apart. Columns that shrink give up the rest, the widest first, names at the end, and their
    text is shortened in the middle. Text is made safe to show. No rows are said to be none.
    """
    if not rows:
        return [f"{_INDENT}(none)"]
    table = [[column.heading for column in columns]]
    table += [[one_line(text) for text in row] for row in rows]
    if _find_excess(_measure_columns(table), _GAP, width) > 0:
        kept = [index for index, column in enumerate(columns) if not column.gives_way]
        columns = [columns[index] for index in kept]
        table = [[row[index] for index in kept] for row in table]
    widths = _measure_columns(table)
    is_tight = _find_excess(widths, _GAP, width) > 0 and any(each.names for each in columns)
    gap = _NARROW_GAP if is_tight else _GAP
    _shrink(widths, columns, _find_excess(widths, gap, width))
    return [_write_row(columns, widths, row, gap) for row in table]


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


def _measure_columns(table: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(measure, texts)) for texts in zip(*table, strict=True)]


def _find_excess(widths: Sequence[int], gap: str, width: int) -> int:
    return len(_INDENT) + sum(widths) + len(gap) * (len(widths) - 1) - width


def _shrink(widths: list[int], columns: Sequence[Column], excess: int) -> None:
    for _ in range(excess):
        wide = [
            index
            for index, column in enumerate(columns)
            if (column.shrinks or column.names) and widths[index] > _NARROWEST
        ]
        if not wide:
            return
        widest = max(wide, key=lambda index: (not columns[index].names, widths[index]))
        widths[widest] -= 1


def _write_row(
    columns: Sequence[Column], widths: Sequence[int], row: Sequence[str], gap: str
) -> str:
    texts = []
    for column, width, text in zip(columns, widths, row, strict=True):
        short = shorten(text, width)
        blank = " " * (width - measure(short))
        texts.append(blank + short if column.align == "right" else short + blank)
    return (_INDENT + gap.join(texts)).rstrip()


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
