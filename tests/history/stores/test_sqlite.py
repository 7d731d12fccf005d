import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest
from stores import make_store

from perfci.history.codec import write_run_file
from perfci.history.errors import StoreError
from perfci.history.stores import open_store

# Where it is


def test_folders_are_made(tmp_path, make_run):
    path = tmp_path / "not" / "yet there" / "100% é#1.db"
    with open_store(f"sqlite:///{path}") as store:
        store.add(make_run())
    assert path.is_file()
    assert sorted(each.name for each in path.parent.iterdir()) == [".gitignore", path.name]


def test_a_relative_path_is_below_the_current_folder(tmp_path, monkeypatch, make_run):
    monkeypatch.chdir(tmp_path)
    with open_store("sqlite:///history.db") as store:
        monkeypatch.chdir("/")
        store.add(make_run())
    assert (tmp_path / "history.db").is_file()


def test_git_ignores_a_folder_that_was_not_there_before_the_store(tmp_path, make_run):
    """Whoever makes it between the opening and the first run."""
    with open_store(f"sqlite:///{tmp_path}/new/history.db") as store:
        (tmp_path / "new" / "others").mkdir(parents=True)
        store.add(make_run())
    assert (tmp_path / "new" / ".gitignore").read_text() == "*\n"
    with open_store(f"sqlite:///{tmp_path}/history.db") as store:
        store.add(make_run())
    assert not (tmp_path / ".gitignore").exists()


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("sqlite://", "names no file; write sqlite:///path/history.db"),
        ("sqlite:///", "names no file"),
        ("sqlite:///:memory:", "names no file"),
        ("sqlite://host/path", "takes a path and nothing else"),
        ("sqlite:///x.db?mode=memory", "takes a path and nothing else"),
        ("sqlite+aiosqlite:///x.db", "takes a path and nothing else"),
        ("sqlite", "no URL of a store"),
        ("sqlite:x.db", "no URL of a store"),
        ("sqlite:///\x1b[2J/\0", "names no file"),
    ],
)
def test_urls_that_name_no_file_are_refused(url, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StoreError, match=said) as caught:
        open_store(url)
    assert str(caught.value).isprintable()
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_database_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "history.db"
    path.write_bytes(b"these are my notes\n" * 100)
    with pytest.raises(StoreError, match=r"history\.db: file is not a database"):
        open_store(f"sqlite:///{path}")
    assert path.read_bytes() == b"these are my notes\n" * 100


def test_another_programs_database_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "other.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE runs (distance_km REAL)")
    connection.close()
    with pytest.raises(StoreError, match=r"holds the tables of another program: name another"):
        open_store(f"sqlite:///{path}")
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("runs",)]
    connection.close()


def test_folders_and_files_in_the_way(tmp_path):
    (tmp_path / "folder.db").mkdir()
    with pytest.raises(StoreError, match=r"cannot write .*folder\.db: is a directory; name a sto"):
        open_store(f"sqlite:///{tmp_path}/folder.db")
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"cannot write .*file/x/history\.db: not a directory; "):
        open_store(f"sqlite:///{tmp_path}/file/x/history.db")


# What one may do with it

AS_ANOTHER_USER = """
import os, sys
from pathlib import Path
from perfci.history.codec import read_run_file
from perfci.history.errors import StoreError
from perfci.history.stores import open_store

# Whoever runs the tests may be root, whom no permission keeps out. Everything is imported before
# the user changes, since the other user may not read it.
with open_store(f"sqlite:///{sys.argv[1]}/mine.db") as store:
    store.add(run := read_run_file(Path(sys.argv[2])))
if os.geteuid() == 0:
    os.setuid(65534)
try:
    with open_store(f"sqlite:///{sys.argv[3]}") as store:
        print(store.run("r1") == run)
        store.remove("r1")
except StoreError as error:
    print(error)
"""


@pytest.fixture
def guarded(tmp_path, make_run):
    """A folder that others may read but not write, and what another user is told there."""
    folder = Path(tempfile.mkdtemp())
    write_run_file(tmp_path / "run.json.gz", make_run())

    def told(name):
        folder.chmod(0o555)
        command = [sys.executable, "-c", AS_ANOTHER_USER, tmp_path, tmp_path / "run.json.gz"]
        ended = subprocess.run([*command, folder / name], check=True, capture_output=True)
        return ended.stdout.decode().splitlines()

    yield folder, told
    folder.chmod(0o755)
    shutil.rmtree(folder)


def test_a_folder_that_may_not_be_written_is_said(guarded):
    folder, told = guarded
    message = "cannot write {}: permission denied; name a store in a folder that you may write to"
    assert told("history.db") == [message.format(folder / "history.db")]
    assert told("new/history.db") == [message.format(folder / "new" / "history.db")]


def test_a_store_that_may_not_be_written_is_read(guarded, make_run):
    folder, told = guarded
    with open_store(f"sqlite:///{folder}/history.db") as store:
        store.add(make_run())
    (folder / "history.db").chmod(0o444)
    assert told("history.db") == [
        "True",
        f"sqlite:///{folder}/history.db: attempt to write a readonly database",
    ]


def test_a_store_that_may_not_be_read_is_said(guarded, make_run):
    folder, told = guarded
    make_store(f"sqlite:///{folder}/history.db").close()
    (folder / "history.db").chmod(0)
    (message,) = told("history.db")
    assert message == f"sqlite:///{folder}/history.db: unable to open database file"


def test_an_empty_file_that_may_not_be_written_is_said(guarded):
    folder, told = guarded
    (folder / "history.db").touch(mode=0o444)
    (message,) = told("history.db")
    assert message.endswith("may not be written: open it once where it may be")


# Several at once

BREAK_OFF = """
import sys
from pathlib import Path
from sqlalchemy import event
from perfci.history.codec import read_run_file
from perfci.history.stores import open_store

store = open_store(sys.argv[1])

@event.listens_for(store._engine, "before_cursor_execute")
def stop(connection, cursor, statement, *others):
    if statement.startswith("INSERT INTO metrics"):
        print("in the middle", flush=True)
        sys.stdin.readline()

store.add(read_run_file(Path(sys.argv[2])))
"""


def test_a_kill_in_the_middle_leaves_nothing(tmp_path, make_run):
    write_run_file(tmp_path / "run.json.gz", make_run())
    url = f"sqlite:///{tmp_path}/history.db"
    make_store(url).close()
    command = [sys.executable, "-c", BREAK_OFF, url, tmp_path / "run.json.gz"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as victim:
        assert victim.stdout.readline() == b"in the middle\n"
        victim.kill()
    assert victim.returncode == -signal.SIGKILL
    with open_store(url) as store:
        assert list(store.runs()) == []
        assert list(store.cells()) == []
        assert store.add(make_run()) is True
        assert store.run("r1") == make_run()


def test_reading_goes_on_while_another_writes(tmp_path, make_run):
    with make_store(f"sqlite:///{tmp_path}/history.db") as store:
        store.add(make_run("r1"))
        with store._writer.begin() as writing:
            writing.exec_driver_sql("DELETE FROM runs")
            with open_store(store.url) as other:
                assert other.run("r1") == make_run("r1")
            writing.rollback()


def test_threads_share_a_store(tmp_path, make_run):
    with open_store(f"sqlite:///{tmp_path}/history.db") as store:
        threads = [
            threading.Thread(target=lambda n=n: store.add(make_run(f"r{n}"))) for n in range(8)
        ]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert len(store.runs()) == 8


def test_asking_for_help_imports_no_driver():
    program = (
        "import sys, perfci.history.stores, perfci.history.codec;"
        "sys.exit(any(name in sys.modules for name in ('sqlalchemy', 'alembic')))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
