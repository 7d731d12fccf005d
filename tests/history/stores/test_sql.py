import pytest
from sqlalchemy import event, text
from stores import make_store

from perfci.history.errors import StoreError


@pytest.fixture
def store(tmp_path, make_run):
    with make_store(f"sqlite:///{tmp_path}/history.db") as opened:
        for number in range(20):
            opened.add(make_run(f"r{number:02}"))
        yield opened


def statements_of(store, ask):
    seen = []

    def note(_connection, _cursor, statement, *_others):
        seen.append(statement)

    event.listen(store._engine, "before_cursor_execute", note)
    ask()
    event.remove(store._engine, "before_cursor_execute", note)
    return [each for each in seen if not each.startswith("BEGIN")]


@pytest.mark.parametrize(
    ("ask", "count"),
    [
        (lambda store: store.cells(), 2),
        (lambda store: store.cells(kernel="rope"), 2),
        (lambda store: store.cells(run_ids=[f"r{n:02}" for n in range(20)]), 2),
        (lambda store: store.runs(), 2),
        (lambda store: store.run("r07"), 4),
        (lambda store: store.remove("r07"), 1),
    ],
)
def test_the_number_of_statements_does_not_grow_with_the_runs(store, ask, count):
    assert len(statements_of(store, lambda: ask(store))) == count


def test_adding_takes_a_statement_a_table(store, make_run):
    assert len(statements_of(store, lambda: store.add(make_run("new")))) == 4


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE passes SET samples_ns = x'00ff'",
        "UPDATE measurements SET status = 'fine'",
        "UPDATE measurements SET contract = '{\"timer\": 1}'",
        "UPDATE measurements SET contract = '{'",
        "UPDATE runs SET environment = '[]'",
        "DELETE FROM passes",
    ],
)
def test_a_damaged_record_is_an_error_not_a_figure(store, damage):
    with store._writer.begin() as connection:
        connection.execute(text(damage))
    with pytest.raises(StoreError, match=r"history\.db: holds a damaged record: ") as caught:
        store.run("r01")
    assert str(caught.value).isprintable()


def test_samples_are_kept_compressed(store):
    with store._engine.connect() as connection:
        blob = connection.execute(text("SELECT samples_ns FROM passes")).scalar()
    assert blob.startswith(b"\x78")
