"""What went on on a GPU while a pass was read, and why nothing is derived from it."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add the columns; of what was recorded before nothing is known."""
    op.add_column("passes", sa.Column("sm_mhz", sa.Double))
    op.add_column("passes", sa.Column("other_processes", sa.Integer))
    op.add_column("passes", sa.Column("quarantine", sa.Text, nullable=False, server_default=""))
