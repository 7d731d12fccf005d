"""Records as rows of the tables and back. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

from sqlalchemy import RowMapping, Table

from perfci.history.latency import latency_of
from perfci.history.model import (
    Cell,
    Commit,
    Direction,
    Measurement,
    Metric,
    Pass,
    Run,
    RunSummary,
    Status,
    Stop,
)
from perfci.history.stores import tables
from perfci.history.summary import summarise


def insertions(run: Run) -> Iterator[tuple[Table, list[dict[str, Any]]]]:
    """The rows of a run by table, in the order in which tables refer to each other."""
    measured = list(enumerate(run.measurements))
    yield tables.runs, [_run_row(run)]
    yield tables.measurements, [_measurement_row(run.run_id, *each) for each in measured]
    yield (
        tables.passes,
        [row for each in measured for row in _part_rows(run.run_id, *each, "passes")],
    )
    yield (
        tables.metrics,
        [row for each in measured for row in _part_rows(run.run_id, *each, "metrics")],
    )


def summary_of(row: RowMapping, status_counts: Mapping[str, int]) -> RunSummary:
    """The run that a row of ``runs`` stands for, with its cells counted by status."""
    return RunSummary(
        **_fields_in(row, RunSummary),
        commit=Commit(**_fields_in(row, Commit)),
        status_counts=tuple(
            (each, status_counts[each]) for each in Status if each in status_counts
        ),
    )


def run_of(row: RowMapping, measurements: Sequence[Measurement]) -> Run:
    """The run that a row of ``runs`` stands for."""
    return Run(
        **_fields_in(row, Run),
        commit=Commit(**_fields_in(row, Commit)),
        measurements=tuple(measurements),
    )


def measurement_of(
    row: RowMapping, passes: Sequence[RowMapping], metrics: Sequence[RowMapping]
) -> Measurement:
    """The measurement that a row of ``measurements`` and its parts stand for."""
    return Measurement(
        **_fields_in(row, Measurement) | _words_of(row),
        passes=tuple(
            Pass(**_fields_in(each, Pass) | {"stop": Stop(each["stop"])}) for each in passes
        ),
        metrics=_metrics_of(metrics),
    )


def cell_of(row: RowMapping, metrics: Sequence[RowMapping]) -> Cell:
    """The cell that a row of ``measurements`` and its metrics stand for."""
    count = row["sample_count"]
    latency = None if count is None else latency_of(row["pass_means_ns"], sample_count=count)
    return Cell(
        **_fields_in(row, Cell) | _words_of(row),
        latency=latency,
        metrics=_metrics_of(metrics),
    )


def _run_row(run: Run) -> dict[str, Any]:
    return {
        **_columns(run, tables.runs),
        **_columns(run.commit, tables.runs),
        "testbed": run.environment.testbed,
    }


def _measurement_row(run_id: str, ordinal: int, measurement: Measurement) -> dict[str, Any]:
    latency = summarise(measurement.passes) if measurement.passes else None
    return {
        "run_id": run_id,
        "ordinal": ordinal,
        **_columns(measurement, tables.measurements),
        "sample_count": None if latency is None else latency.sample_count,
        "pass_means_ns": None if latency is None else latency.pass_means_ns,
    }


def _part_rows(
    run_id: str, ordinal: int, measurement: Measurement, part: str
) -> Iterator[dict[str, Any]]:
    for index, each in enumerate(getattr(measurement, part)):
        yield {
            "run_id": run_id,
            "measurement_ordinal": ordinal,
            "ordinal": index,
            **_columns(each, tables.metadata.tables[part]),
        }


def _words_of(row: RowMapping) -> dict[str, Any]:
    stop = row["stop"]
    return {"status": Status(row["status"]), "stop": None if stop is None else Stop(stop)}


def _metrics_of(rows: Sequence[RowMapping]) -> tuple[Metric, ...]:
    return tuple(
        Metric(**_fields_in(each, Metric) | {"direction": Direction(each["direction"])})
        for each in rows
    )


def _columns(value: Any, table: Table) -> dict[str, Any]:
    """The fields of a record that have a column of their name."""
    names = (each.name for each in fields(value))
    return {name: getattr(value, name) for name in names if name in table.columns}


def _fields_in(row: RowMapping, kind: type[Any]) -> dict[str, Any]:
    """The columns of a row that are fields of a kind of record."""
    return {each.name: row[each.name] for each in fields(kind) if each.name in row}
