"""Which runs were measured together, and why a cell had no more passes."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the columns; what was recorded before was measured by itself, its passes counted."""
    op.add_column("runs", sa.Column("pair", sa.String(64), nullable=False, server_default=""))
    op.add_column("measurements", sa.Column("stop", sa.Text))
