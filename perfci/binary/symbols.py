"""Names of kernels as a reader would write them, from the names that linkers use."""

import ctypes
import functools
from collections.abc import Callable

from perfci.history.text import one_line

_LONGEST = 200


def readable(symbol: str) -> str:
    """The kernel's name on one line: with its template's arguments, without its parameters.

    The namespace without a name, in whose symbol there is a hash of a path, is
    ``(anonymous namespace)``.
    """
    name = _demangled(symbol) if symbol.startswith("_Z") else symbol
    return one_line(_without_parameters(name).removeprefix("void "), limit=_LONGEST)


def _demangled(symbol: str) -> str:
    demangle, free = _demangler()
    mangled = symbol.encode(errors="replace")
    text = demangle(mangled, None, None, None)
    if not text:
        return symbol
    try:
        return ctypes.string_at(text).decode(errors="replace")
    finally:
        free(text)


@functools.cache
def _demangler() -> tuple[Callable[..., int | None], Callable[[int], None]]:
    """What the C++ library that PyTorch itself is linked with brings for the purpose."""
    demangle = ctypes.CDLL("libstdc++.so.6")["__cxa_demangle"]
    demangle.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    demangle.restype = ctypes.c_void_p
    free = ctypes.CDLL(None).free
    free.argtypes, free.restype = [ctypes.c_void_p], None
    return demangle, free


def _without_parameters(name: str) -> str:
    """The name less the parentheses at its end and what they hold."""
    if not name.endswith(")"):
        return name
    depth = 0
    for place in range(len(name) - 1, -1, -1):
        depth += (name[place] == ")") - (name[place] == "(")
        if depth == 0:
            return name[:place] or name
    return name
