"""Runs, measurements, passes, metrics."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the first tables."""
    op.create_table(
        "runs",
        sa.Column("run_id", sa.String(64), primary_key=True),
        sa.Column("sha", sa.String(64), nullable=False),
        sa.Column("committed_at", sa.DateTime, nullable=False),
        sa.Column("parents", sa.JSON, nullable=False),
        sa.Column("position", sa.Integer),
        sa.Column("branch", sa.Text),
        sa.Column("subject", sa.Text, nullable=False),
        sa.Column("dirty", sa.String(64)),
        sa.Column("testbed", sa.Text, nullable=False),
        sa.Column("environment", sa.JSON, nullable=False),
        sa.Column("started_at", sa.DateTime, nullable=False),
        sa.Column("duration_s", sa.Double, nullable=False),
        sa.Column("trigger", sa.Text, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("perfci_version", sa.Text, nullable=False),
    )
    for column in ("sha", "testbed", "started_at"):
        op.create_index(f"ix_runs_{column}", "runs", [column])
    op.create_table(
        "measurements",
        sa.Column(
            "run_id",
            sa.String(64),
            sa.ForeignKey("runs.run_id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("ordinal", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("kernel", sa.Text, nullable=False),
        sa.Column("case", sa.Text, nullable=False),
        sa.Column("variant", sa.Text, nullable=False),
        sa.Column("contract", sa.JSON),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("workload_digest", sa.Text, nullable=False),
        sa.Column("source_digest", sa.Text, nullable=False),
        sa.Column("identity", sa.JSON, nullable=False),
        sa.Column("median_ns", sa.Double),
        sa.Column("lower_quartile_ns", sa.Double),
        sa.Column("upper_quartile_ns", sa.Double),
        sa.Column("minimum_ns", sa.Double),
        sa.Column("sample_count", sa.Integer),
        sa.Column("pass_means_ns", sa.JSON),
    )
    op.create_index("ix_measurements_kernel", "measurements", ["kernel"])
    _create_part(
        "passes",
        sa.Column("index", sa.Integer, nullable=False),
        sa.Column("loops", sa.Integer, nullable=False),
        sa.Column("stop", sa.Text, nullable=False),
        sa.Column("clocks", sa.JSON, nullable=False),
        sa.Column("samples_ns", sa.LargeBinary, nullable=False),
    )
    _create_part(
        "metrics",
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("value", sa.Double, nullable=False),
        sa.Column("unit", sa.Text, nullable=False),
        sa.Column("direction", sa.Text, nullable=False),
    )


def _create_part(name: str, *columns: sa.Column[object]) -> None:
    op.create_table(
        name,
        sa.Column("run_id", sa.String(64), primary_key=True),
        sa.Column("measurement_ordinal", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("ordinal", sa.Integer, primary_key=True, autoincrement=False),
        *columns,
        sa.ForeignKeyConstraint(
            ["run_id", "measurement_ordinal"],
            ["measurements.run_id", "measurements.ordinal"],
            ondelete="CASCADE",
        ),
    )
