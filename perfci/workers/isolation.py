"""Modules of a side's own: what one side imports by name must not be there for the other."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from perfci.modules import is_installed


@contextmanager
def own_modules() -> Iterator[None]:
    """Import inside from folders of the user's; afterwards it is as if nobody had.

    What is installed stays, and so does what has been imported before. The folders that a variant
    adds to ``sys.path`` go too, so that what it imports only when it is called is not found rather
    than the other side's.
    """
    known, folders = set(sys.modules), [*sys.path]
    try:
        yield
    finally:
        for name in set(sys.modules) - known:
            place = _place(sys.modules[name])
            if place is not None and not is_installed(place):
                del sys.modules[name]
        sys.path[:] = folders


def _place(module: ModuleType) -> Path | None:
    """Where a module comes from; None for one that is in no file or folder."""
    file = getattr(module, "__file__", None)
    places = [file] if file else list(getattr(module, "__path__", ()))
    return Path(places[0]).resolve() if places else None
