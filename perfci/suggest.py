"""'did you mean …': the nearest known names, for error messages."""

from collections.abc import Iterable
from difflib import SequenceMatcher, get_close_matches

_MOST_NEAR = 3
_MOST_KNOWN = 8


def did_you_mean(name: str, known: Iterable[str], *, prefix: str = "") -> str:
    """A parenthesis with the nearest known names, or where none is near with those that there are.

    Of many it has the nearest, and how many more there are. ``prefix`` is what all these names
    begin with where they are written, and is not compared.
    """
    names = sorted(set(known))
    near = get_close_matches(name, names, n=_MOST_NEAR)
    if near:
        *others, last = (f"'{prefix}{each}'" for each in near)
        return f"(did you mean {', '.join(others)}{' or ' if others else ''}{last}?)"
    if not names:
        return "(none of that name is known)"
    if len(names) <= _MOST_KNOWN:
        return f"(known: {', '.join(prefix + each for each in names)})"
    shown = sorted(names, key=lambda each: -SequenceMatcher(None, name, each).ratio())
    listed = ", ".join(prefix + each for each in shown[:_MOST_KNOWN])
    return f"(known: {listed} and {len(names) - _MOST_KNOWN} more)"
