"""What every store can do; each store is a module beside this one."""

from collections.abc import Collection, Sequence
from typing import Protocol, Self

from perfci.history.model import Cell, Run, RunSummary


class Store(Protocol):
    """A place where runs are kept. Usable as a context manager that closes it.

    Every method raises :class:`perfci.history.errors.StoreError` when the store cannot be read
    or written.
    """

    @property
    def url(self) -> str:
        """Where the store is, as it is shown to people (no password in it)."""
        ...

    def add(self, run: Run) -> bool:
        """Record a run in one transaction; False where its ``run_id`` is there already."""
        ...

    def run(self, run_id: str) -> Run:
        """The whole run with its raw samples; a unique prefix of the id is enough."""
        ...

    def runs(
        self,
        *,
        sha_prefix: str = "",
        testbed: str | None = None,
        studies: bool | None = None,
        limit: int | None = None,
    ) -> Sequence[RunSummary]:
        """The runs that match, newest start first.

        With ``studies`` only those that study a testbed's noise, with False only the others.
        """
        ...

    def cells(
        self, *, run_ids: Collection[str] | None = None, kernel: str | None = None
    ) -> Sequence[Cell]:
        """The cells that match, in recorded order within a run, without raw samples."""
        ...

    def remove(self, run_id: str) -> None:
        """Forget a run and everything that belongs to it, in one transaction."""
        ...

    def close(self) -> None:
        """Give back what the store holds open."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *exception: object) -> None: ...
