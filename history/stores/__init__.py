"""Where runs are kept: one contract (``base.Store``), one module a kind of store."""

from collections.abc import Callable
from importlib import import_module

from perfci.history.errors import StoreError
from perfci.history.stores.base import Store
from perfci.history.text import one_line

__all__ = ["STORES", "Store", "open_store"]

STORES = {"sqlite": "perfci.history.stores.sqlite"}
"""URL scheme → the module that opens it; imported only when used, for its driver's sake."""


def open_store(
    url: str, *, create: bool = True, on_made: Callable[[str], None] = lambda _url: None
) -> Store:
    """Open the store at a URL such as ``sqlite:///path/history.db``.

    One that is not there is made with the first run that is added, or is without ``create`` a
    NoStoreError: who only reads would take an empty store for a history of nothing. ``on_made``
    hears the URL, as it is shown to people, once the store is made. Raises StoreError where the
    scheme is unknown or the store cannot be opened.
    """
    scheme = url.partition(":")[0].partition("+")[0]
    if scheme not in STORES:
        shown = one_line(repr(scheme), limit=60)  # not the URL, which may hold a password
        known = ", ".join(sorted(STORES))
        raise StoreError(f"{shown}: unknown kind of store; known: {known}")
    try:
        module = import_module(STORES[scheme])
    except ModuleNotFoundError as error:
        raise StoreError(
            f"the {scheme} store needs the package {error.name}: pip install {error.name}, or "
            "write a run file with perfci run --out"
        ) from None
    store: Store = module.open_store(url, create=create, on_made=on_made)
    return store
