"""The tables of a store in SQL, in types that every database has.

A change here needs a step in ``migrations/versions``; a test compares the two.
"""

import zlib
from datetime import UTC, datetime
from typing import Any

import numpy as np
from sqlalchemy import (
    JSON,
    Column,
    DateTime,
    Dialect,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
)
from sqlalchemy.types import TypeDecorator

from perfci.history.model import Clock, Contract, Environment, Launch
from perfci.history.plain import plain, record


class Time(TypeDecorator[datetime]):
    """A point in time; kept in UTC, since not every database keeps a zone."""

    impl = DateTime
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Aware to naive UTC."""
        del dialect
        return None if value is None else value.astimezone(UTC).replace(tzinfo=None)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Naive UTC to aware."""
        del dialect
        return None if value is None else value.replace(tzinfo=UTC)


class Plain(TypeDecorator[Any]):
    """A record or a tuple of the given type, kept as JSON."""

    impl = JSON(none_as_null=True)
    cache_ok = True

    def __init__(self, kind: Any) -> None:
        super().__init__()
        self.kind = kind

    def process_bind_param(self, value: object, dialect: Dialect) -> Any:
        """Record to JSON value."""
        del dialect
        return plain(value)

    def process_result_value(self, value: object, dialect: Dialect) -> Any:
        """JSON value to record; PlainError where it is none."""
        del dialect
        return None if value is None else record(self.kind, value)


class Samples(TypeDecorator[tuple[float, ...]]):
    """Raw samples in nanoseconds, kept as compressed little-endian float64."""

    impl = LargeBinary
    cache_ok = True

    def process_bind_param(self, value: tuple[float, ...] | None, dialect: Dialect) -> bytes | None:
        """Samples to bytes."""
        del dialect
        return None if value is None else zlib.compress(np.asarray(value, "<f8").tobytes())

    def process_result_value(
        self, value: bytes | None, dialect: Dialect
    ) -> tuple[float, ...] | None:
        """Bytes to samples; ValueError or zlib.error where they are damaged."""
        del dialect
        if value is None:
            return None
        return tuple(np.frombuffer(zlib.decompress(value), "<f8").tolist())


metadata = MetaData()

runs = Table(
    "runs",
    metadata,
    Column("run_id", String(64), primary_key=True),
    Column("sha", String(64), nullable=False, index=True),
    Column("committed_at", Time, nullable=False),
    Column("parents", Plain(tuple[str, ...]), nullable=False),
    Column("position", Integer),
    Column("branch", Text),
    Column("subject", Text, nullable=False),
    Column("dirty", String(64)),
    Column("testbed", Text, nullable=False, index=True),
    Column("environment", Plain(Environment), nullable=False),
    Column("started_at", Time, nullable=False, index=True),
    Column("duration_s", Double, nullable=False),
    Column("trigger", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("perfci_version", Text, nullable=False),
    Column("pair", String(64), nullable=False, server_default=""),
)
"""One row a run; the columns of its commit are named as the fields of ``Commit``."""

measurements = Table(
    "measurements",
    metadata,
    Column("run_id", ForeignKey("runs.run_id", ondelete="CASCADE"), primary_key=True),
    Column("ordinal", Integer, primary_key=True, autoincrement=False),
    Column("kernel", Text, nullable=False, index=True),
    Column("case", Text, nullable=False),
    Column("variant", Text, nullable=False),
    Column("contract", Plain(Contract)),
    Column("status", Text, nullable=False),
    Column("message", Text, nullable=False),
    Column("workload_digest", Text, nullable=False),
    Column("source_digest", Text, nullable=False),
    Column("identity", Plain(tuple[tuple[str, str], ...]), nullable=False),
    Column("launches", Plain(tuple[Launch, ...]), nullable=False, server_default="[]"),
    Column("stop", Text),
    Column("sample_count", Integer),
    Column("pass_means_ns", Plain(tuple[float, ...])),
)
"""One row a cell of a run, in recorded order by ``ordinal``, with what its passes read."""


def _part_of_a_measurement(name: str, *columns: Column[Any]) -> Table:
    return Table(
        name,
        metadata,
        Column("run_id", String(64), primary_key=True),
        Column("measurement_ordinal", Integer, primary_key=True, autoincrement=False),
        Column("ordinal", Integer, primary_key=True, autoincrement=False),
        *columns,
        ForeignKeyConstraint(
            ["run_id", "measurement_ordinal"],
            ["measurements.run_id", "measurements.ordinal"],
            ondelete="CASCADE",
        ),
    )


passes = _part_of_a_measurement(
    "passes",
    Column("index", Integer, nullable=False),
    Column("loops", Integer, nullable=False),
    Column("stop", Text, nullable=False),
    Column("clocks", Plain(tuple[Clock, ...]), nullable=False),
    Column("sm_mhz", Double),
    Column("other_processes", Integer),
    Column("quarantine", Text, nullable=False, server_default=""),
    Column("samples_ns", Samples, nullable=False),
)

metrics = _part_of_a_measurement(
    "metrics",
    Column("name", Text, nullable=False),
    Column("value", Double, nullable=False),
    Column("unit", Text, nullable=False),
    Column("direction", Text, nullable=False),
)
