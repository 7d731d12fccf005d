"""Text from outside: what may be shown on a terminal or a page, and what may not."""

import re

_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_WHITE = re.compile(r"\s+")


def is_safe(text: str) -> bool:
    """Whether text may be shown as it is.

    It may not hold control characters (newline and tab are fine), characters that reverse the
    reading direction, or halves of surrogate pairs.
    """
    return _UNSAFE.search(text) is None


def printable(text: str) -> str:
    """The text with every character that :func:`is_safe` refuses replaced by U+FFFD."""
    return _UNSAFE.sub("\ufffd", text)


def one_line(text: str, *, limit: int = 200) -> str:
    """The text on one line, printable, cut to at most ``limit`` characters."""
    line = printable(_WHITE.sub(" ", text).strip())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def without_commands(line: str) -> str:
    """The line, in which GitHub's runner sees no command of its own, such as ``::error::``.

    It takes a line for one that begins with two colons, blanks aside, and what follows ``##[``.
    """
    tamed = line.replace("##[", "## [")
    return tamed.replace("::", ": :", 1) if tamed.lstrip().startswith("::") else tamed
