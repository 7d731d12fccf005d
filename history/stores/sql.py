"""A store in an SQL database, whichever it is: the module of each kind hands over an engine."""

import zlib
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Self

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    RowMapping,
    Table,
    delete,
    func,
    insert,
    not_,
    select,
)
from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError

from perfci.history.errors import StoreError
from perfci.history.model import ANCHOR_PREFIX, NOISE_TRIGGER, Cell, Run, RunSummary
from perfci.history.plain import PlainError, checked
from perfci.history.stores.rows import (
    cell_of,
    insertions,
    measurement_of,
    run_of,
    summary_of,
)
from perfci.history.stores.tables import measurements, metrics, passes, runs
from perfci.history.text import one_line

_IDS_A_STATEMENT = 10_000
"""Databases limit the parameters of a statement, to 32,766 at the least."""

_SHOWN_MATCHES = 3

Parts = dict[tuple[str, int], list[RowMapping]]
"""Rows of passes or metrics by their measurement: (run_id, ordinal)."""


class SqlStore:
    """The contract of ``base.Store`` over an engine whose tables are up to date.

    Transactions that write are begun with the execution option ``writes``.
    """

    def __init__(self, engine: Engine, *, url: str) -> None:
        self._engine = engine
        self._writer = engine.execution_options(writes=True)
        self._url = url

    @property
    def url(self) -> str:
        """Where the store is, as it is shown to people."""
        return self._url

    def add(self, run: Run) -> bool:
        """Record a run in one transaction; False where its ``run_id`` is there already.

        Raises StoreError where it cannot be written or holds what could not be read back.
        """
        try:
            checked(run)
        except PlainError as error:
            raise StoreError(f"run {one_line(run.run_id)} cannot be recorded: {error}") from None
        with errors_of(self._url):
            try:
                with self._writer.begin() as connection:
                    for table, rows in insertions(run):
                        if rows:
                            connection.execute(insert(table), rows)
            except IntegrityError:
                if not self._holds(run.run_id):
                    raise
                return False
        return True

    def run(self, run_id: str) -> Run:
        """The whole run with its raw samples; a unique prefix of the id is enough.

        Raises StoreError where no run or several have it.
        """
        with errors_of(self._url), self._engine.connect() as connection:
            row = self._find(connection, run_id)
            of_run = [measurements.c.run_id == row["run_id"]]
            pass_rows = _parts(connection, passes, of_run)
            metric_rows = _parts(connection, metrics, of_run)
            return run_of(
                row,
                [
                    measurement_of(each, pass_rows[_key(each)], metric_rows[_key(each)])
                    for each in _measurement_rows(connection, of_run)
                ],
            )

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
        wanted = select(runs).order_by(runs.c.started_at.desc(), runs.c.run_id).limit(limit)
        if sha_prefix:
            wanted = wanted.where(_begins(runs.c.sha, sha_prefix.lower()))
        if testbed is not None:
            wanted = wanted.where(runs.c.testbed == testbed)
        if studies is not None:
            is_study = runs.c.trigger == NOISE_TRIGGER
            wanted = wanted.where(is_study if studies else not_(is_study))
        chosen = wanted.with_only_columns(runs.c.run_id).subquery()
        counted = (
            select(measurements.c.run_id, measurements.c.status, func.count().label("count"))
            .where(measurements.c.run_id.in_(select(chosen.c.run_id)))
            .where(not_(_begins(measurements.c.kernel, ANCHOR_PREFIX)))
            .group_by(measurements.c.run_id, measurements.c.status)
        )
        with errors_of(self._url), self._engine.connect() as connection:
            rows = connection.execute(wanted).mappings().all()
            counts: dict[str, dict[str, int]] = defaultdict(dict)
            for each in connection.execute(counted).mappings():
                counts[each["run_id"]][each["status"]] = each["count"]
            return [summary_of(row, counts[row["run_id"]]) for row in rows]

    def cells(
        self, *, run_ids: Collection[str] | None = None, kernel: str | None = None
    ) -> Sequence[Cell]:
        """The cells that match, in recorded order within a run, without raw samples."""
        conditions = [] if kernel is None else [measurements.c.kernel == kernel]
        with errors_of(self._url), self._engine.connect() as connection:
            if run_ids is None:
                return _cells(connection, conditions)
            ids = sorted(set(run_ids))
            found: list[Cell] = []
            for start in range(0, len(ids), _IDS_A_STATEMENT):
                chosen = measurements.c.run_id.in_(ids[start : start + _IDS_A_STATEMENT])
                found += _cells(connection, [*conditions, chosen])
            return found

    def remove(self, run_id: str) -> None:
        """Forget a run and everything that belongs to it, in one transaction.

        Raises StoreError where no run has exactly this id.
        """
        with errors_of(self._url), self._writer.begin() as connection:
            removed = connection.execute(delete(runs).where(runs.c.run_id == run_id))
            if removed.rowcount == 0:
                raise _no_run(run_id)

    def close(self) -> None:
        """Give back the connections."""
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _holds(self, run_id: str) -> bool:
        with self._engine.connect() as connection:
            found = connection.execute(select(runs.c.run_id).where(runs.c.run_id == run_id))
            return found.first() is not None

    def _find(self, connection: Connection, prefix: str) -> RowMapping:
        """The row of the run with this id, else of the only one whose id begins so."""
        wanted = (
            select(runs)
            .where(_begins(runs.c.run_id, prefix))
            .order_by(func.length(runs.c.run_id), runs.c.run_id)
            .limit(_SHOWN_MATCHES + 1)
        )
        rows = connection.execute(wanted).mappings().all()
        if not rows or not prefix:
            raise _no_run(prefix)
        if len(rows) > 1 and rows[0]["run_id"] != prefix:
            ids = [each["run_id"] for each in rows[:_SHOWN_MATCHES]]
            more = ", …" if len(rows) > _SHOWN_MATCHES else ""
            raise StoreError(
                f"several runs begin with {prefix!r} ({', '.join(ids)}{more}): give more of the id"
            )
        return rows[0]


@contextmanager
def errors_of(url: str) -> Iterator[None]:
    """Turn whatever goes wrong with a database into a StoreError that names it."""
    try:
        yield
    except StoreError as error:
        raise StoreError(f"{url}: {error}") from None
    except DBAPIError as error:
        raise StoreError(f"{url}: {one_line(str(error.orig))}") from error
    except SQLAlchemyError as error:
        raise StoreError(f"{url}: {one_line(str(error))}") from error
    except (ValueError, zlib.error) as error:
        raise StoreError(f"{url}: holds a damaged record: {one_line(str(error))}") from error


def _no_run(run_id: str) -> StoreError:
    return StoreError(f"no run {one_line(repr(run_id), limit=80)} in the store")


def _begins(column: ColumnElement[str], prefix: str) -> ColumnElement[bool]:
    # LIKE would need escapes, and in SQLite it takes upper and lower case for the same.
    return func.substr(column, 1, len(prefix)) == prefix


def _key(row: RowMapping) -> tuple[str, int]:
    return row["run_id"], row["ordinal"]


def _cells(connection: Connection, conditions: Sequence[ColumnElement[bool]]) -> list[Cell]:
    metric_rows = _parts(connection, metrics, conditions)
    rows = _measurement_rows(connection, conditions)
    return [cell_of(row, metric_rows[_key(row)]) for row in rows]


def _measurement_rows(
    connection: Connection, conditions: Sequence[ColumnElement[bool]]
) -> Sequence[RowMapping]:
    wanted = (
        select(measurements)
        .where(*conditions)
        .order_by(measurements.c.run_id, measurements.c.ordinal)
    )
    return connection.execute(wanted).mappings().all()


def _parts(
    connection: Connection, table: Table, conditions: Sequence[ColumnElement[bool]]
) -> Parts:
    """The rows of a table of parts whose measurements match, in recorded order."""
    wanted = (
        select(table)
        .join(measurements)
        .where(*conditions)
        .order_by(table.c.run_id, table.c.measurement_ordinal, table.c.ordinal)
    )
    found: Parts = defaultdict(list)
    for row in connection.execute(wanted).mappings():
        found[row["run_id"], row["measurement_ordinal"]].append(row)
    return found
