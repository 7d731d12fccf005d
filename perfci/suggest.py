"""'did you mean …': the nearest known name, for error messages."""

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, known: Iterable[str], *, prefix: str = "") -> str:
    """A parenthesis with the nearest known name, or all of them where none is near and few are.

    ``prefix`` is what all these names begin with where they are written, and is not compared.
    """
    names = sorted(known)
    near = get_close_matches(name, names, n=1)
    if near:
        return f"(did you mean '{prefix}{near[0]}'?)"
    if 0 < len(names) <= 8:
        return f"(known: {', '.join(prefix + each for each in names)})"
    return "(none of that name is known)"
