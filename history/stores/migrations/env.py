"""What Alembic runs: the steps, on the connection that ``schema.upgrade`` hands over."""

from alembic import context

from perfci.history.stores.schema import VERSION_TABLE
from perfci.history.stores.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
)
context.run_migrations()
