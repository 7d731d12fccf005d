"""Brings a database to the tables of this perfci, one recorded step at a time."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect

from perfci.history.errors import StoreError

VERSION_TABLE = "perfci_version"
"""Where a database says which step it is at; a name that no other program's tables have."""


def is_current(connection: Connection) -> bool:
    """Whether the database has the tables of this perfci.

    Raises StoreError where it is some other program's, or was written by a newer perfci.
    """
    script = ScriptDirectory.from_config(_config())
    context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
    revision = context.get_current_revision()
    if revision is None and inspect(connection).get_table_names():
        raise StoreError("holds the tables of another program: name another store")
    if revision is not None and revision not in {each.revision for each in script.walk_revisions()}:
        raise StoreError(f"written by a newer perfci (step {revision!r}): upgrade perfci")
    return revision == script.get_current_head()


def upgrade(connection: Connection) -> None:
    """Bring the tables up to date within the connection's transaction.

    Raises StoreError as :func:`is_current` does.
    """
    if not is_current(connection):
        config = _config()
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def _config() -> Config:
    config = Config()
    folder = str(Path(__file__).parent / "migrations")
    config.set_main_option("script_location", folder.replace("%", "%%"))
    return config
