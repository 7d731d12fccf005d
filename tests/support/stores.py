"""Stores without runs: only a run makes one."""

from typing import Any

import records

from perfci.history.stores import open_store


def make_store(url: str) -> Any:
    """Make a store, and open it as one that is there."""
    with open_store(url) as store:
        store.add(records.run(run_id="first"))
        store.remove("first")
    return open_store(url, create=False)
