import pytest
import records
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import inspect, text
from stores import make_store

from perfci.history.errors import StoreError
from perfci.history.stores import open_store
from perfci.history.stores.schema import VERSION_TABLE, is_current, upgrade
from perfci.history.stores.tables import metadata
from perfci.history.summary import cell


@pytest.fixture
def store(tmp_path):
    with make_store(f"sqlite:///{tmp_path}/history.db") as opened:
        yield opened


def test_the_steps_lead_to_the_tables(store):
    with store._engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        assert compare_metadata(context, metadata) == []


def test_a_step_that_fails_leaves_nothing(tmp_path, store):
    # As if the connection broke in the middle: everything is in the caller's transaction.
    with store._writer.connect() as connection:
        for table in reversed(metadata.sorted_tables):
            table.drop(connection)
        connection.execute(text(f"DROP TABLE {VERSION_TABLE}"))
        connection.commit()
        upgrade(connection)
        assert is_current(connection)
        connection.rollback()
        assert inspect(connection).get_table_names() == []


def test_upgrading_twice_changes_nothing(store):
    with store._writer.begin() as connection:
        upgrade(connection)
        assert is_current(connection)


def test_upgrading_says_nothing(tmp_path, capfd, caplog):
    with caplog.at_level("INFO"), make_store(f"sqlite:///{tmp_path}/quiet.db"):
        pass
    assert capfd.readouterr() == ("", "")


def test_a_run_of_the_first_step_is_still_there_after_the_others(store):
    run = records.run(records.measurement([5.0]))
    store.add(run)
    with store._writer.begin() as connection:
        connection.execute(text("ALTER TABLE measurements DROP COLUMN launches"))
        connection.execute(text("ALTER TABLE measurements DROP COLUMN stop"))
        connection.execute(text("ALTER TABLE runs DROP COLUMN pair"))
        for name in ("sm_mhz", "other_processes", "quarantine"):
            connection.execute(text(f"ALTER TABLE passes DROP COLUMN {name}"))
        for name in ("median_ns", "lower_quartile_ns", "upper_quartile_ns", "minimum_ns"):
            connection.execute(text(f"ALTER TABLE measurements ADD COLUMN {name} DOUBLE"))
        connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '0001'"))
    with open_store(store.url) as reopened:
        assert reopened.run(run.run_id) == run
        assert list(reopened.cells()) == [cell(run.run_id, each) for each in run.measurements]


def test_a_newer_perfcis_store_asks_for_an_upgrade(store):
    with store._writer.begin() as connection:
        connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '0999'"))
    with pytest.raises(StoreError) as caught:
        open_store(store.url)
    assert str(caught.value) == (
        f"{store.url}: written by a newer perfci (step '0999'): upgrade perfci"
    )
