"""A store that is not there: it holds no runs, and the first that is recorded makes it."""

from collections.abc import Callable, Collection, Sequence
from threading import Lock
from typing import Self

from perfci.history.errors import StoreError
from perfci.history.model import Cell, Run, RunSummary
from perfci.history.stores.base import Store
from perfci.history.text import one_line


class UnmadeStore:
    """The contract of ``base.Store`` where nothing was recorded yet.

    ``make`` makes the store and opens it, and ``on_made`` hears the URL then; ``find`` opens the
    one that others may have made since, or is None.
    """

    def __init__(
        self,
        *,
        url: str,
        find: Callable[[], Store | None],
        make: Callable[[], Store],
        on_made: Callable[[str], None],
    ) -> None:
        self._url = url
        self._find = find
        self._make = make
        self._on_made = on_made
        self._made: Store | None = None
        self._turn = Lock()

    @property
    def url(self) -> str:
        """Where the store will be, as it is shown to people."""
        return self._url

    def add(self, run: Run) -> bool:
        """Record a run, in a store that is made for it; False where others have done so."""
        with self._turn:
            store = self._made = self._made or self._find()
            if store is None:
                store = self._made = self._make()
                self._on_made(self._url)
        return store.add(run)

    def run(self, run_id: str) -> Run:
        """The whole run. Raises StoreError where it is not there."""
        store = self._found()
        if store is None:
            raise self._no_run(run_id)
        return store.run(run_id)

    def runs(
        self,
        *,
        sha_prefix: str = "",
        testbed: str | None = None,
        studies: bool | None = None,
        limit: int | None = None,
    ) -> Sequence[RunSummary]:
        """The runs that match, newest start first."""
        store = self._found()
        if store is None:
            return []
        return store.runs(sha_prefix=sha_prefix, testbed=testbed, studies=studies, limit=limit)

    def cells(
        self, *, run_ids: Collection[str] | None = None, kernel: str | None = None
    ) -> Sequence[Cell]:
        """The cells that match, without raw samples."""
        store = self._found()
        return [] if store is None else store.cells(run_ids=run_ids, kernel=kernel)

    def remove(self, run_id: str) -> None:
        """Forget a run. Raises StoreError where it is not there."""
        store = self._found()
        if store is None:
            raise self._no_run(run_id)
        store.remove(run_id)

    def close(self) -> None:
        """Give back what the store holds open, where it was made."""
        if self._made is not None:
            self._made.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _found(self) -> Store | None:
        with self._turn:
            self._made = self._made or self._find()
            return self._made

    def _no_run(self, run_id: str) -> StoreError:
        shown = one_line(repr(run_id), limit=80)
        return StoreError(f"{self._url}: no run {shown} in the store")
