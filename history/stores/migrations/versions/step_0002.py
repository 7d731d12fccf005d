"""The kernels that a call launches, a column of its measurement."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the column; what was recorded before knows of no launches."""
    op.add_column(
        "measurements", sa.Column("launches", sa.JSON, nullable=False, server_default="[]")
    )
