"""No median and quartiles of pooled samples: a latency is estimated from what its passes read."""

from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Drop the columns; what each pass read is there, and every sample."""
    for name in ("median_ns", "lower_quartile_ns", "upper_quartile_ns", "minimum_ns"):
        op.drop_column("measurements", name)
