"""The default store: one SQLite file, ``sqlite:///relative/path`` or ``sqlite:////absolute``."""

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryFile
from typing import Literal
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import QueuePool

from perfci.history.errors import NoStoreError, StoreError
from perfci.history.stores.base import Store
from perfci.history.stores.schema import is_current, upgrade
from perfci.history.stores.sql import SqlStore, errors_of
from perfci.history.stores.unmade import UnmadeStore
from perfci.history.text import is_safe, one_line, printable

_WAIT_FOR_OTHERS_S = 60


def open_store(url: str, *, create: bool, on_made: Callable[[str], None]) -> Store:
    """Open the file at a URL; with ``create`` the first run makes it where it is not there.

    ``on_made`` hears the URL then. A file that may not be written is opened for reading. Raises
    NoStoreError where there is none and none is to be made, StoreError where it cannot be opened or
    made, is no store, or is a newer perfci's.
    """
    path = _path(url).absolute()
    if _is_there(path):
        return _open(url, path)
    if not create:
        raise NoStoreError(
            f"{one_line(str(path))}: no such file, so nothing is recorded in it; name the right "
            "store with --store, or record something with perfci run"
        )
    _require_place(path)
    is_own = not path.parent.is_dir()
    return UnmadeStore(
        url=printable(url),
        find=lambda: _open(url, path) if _is_there(path) else None,
        make=lambda: _make(url, path, is_own=is_own),
        on_made=on_made,
    )


def _make(url: str, path: Path, *, is_own: bool) -> SqlStore:
    """Make file and folder, or open the file that another has made; git ignores an own folder."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if is_own:
            # A working tree is not dirty because its runs are kept in it.
            (path.parent / ".gitignore").write_text("*\n", encoding="ascii")
    except OSError as error:
        raise _cannot_write(path, error.strerror or "") from None
    return _open(url, path, create=True)


def _open(url: str, path: Path, *, create: bool = False) -> SqlStore:
    read_only = _is_read_only(path)
    if path.is_dir():
        raise _cannot_write(path, "is a directory")
    mode: Literal["ro", "rw", "rwc"] = "ro" if read_only else "rwc" if create else "rw"
    engine = _engine(path, mode=mode)
    shown = printable(url)
    try:
        with errors_of(shown):
            _bring_up_to_date(engine, read_only=read_only)
    except BaseException:
        engine.dispose()
        raise
    return SqlStore(engine, url=shown)


def _path(url: str) -> Path:
    shown = printable(url)
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise StoreError(f"{shown}: no URL of a store; write sqlite:///path/history.db") from None
    if parsed.drivername != "sqlite" or parsed.host or parsed.query:
        raise StoreError(f"{shown}: takes a path and nothing else: sqlite:///path/history.db")
    database = parsed.database
    if not database or database == ":memory:" or not is_safe(database):
        raise StoreError(f"{shown}: names no file; write sqlite:///path/history.db")
    return Path(database)


def _is_read_only(path: Path) -> bool:
    return path.is_file() and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))


def _is_there(path: Path) -> bool:
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        reason = (error.strerror or "").lower()
        raise StoreError(f"cannot open {one_line(str(path))}: {reason}") from None
    return True


def _require_place(path: Path) -> None:
    """Raise StoreError where no file can be made there, tried in the folder that is there."""
    folder = path.parent
    while not os.access(folder, os.F_OK):
        folder = folder.parent
    try:
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise _cannot_write(path, error.strerror or "") from None


def _cannot_write(path: Path, reason: str) -> StoreError:
    return StoreError(
        f"cannot write {one_line(str(path))}: {reason.lower()}; name a store in a folder that "
        "you may write to"
    )


def _engine(path: Path, *, mode: Literal["ro", "rw", "rwc"]) -> Engine:
    """An engine with transactions that are SQLite's own, not those of Python's driver.

    The driver begins a transaction late and not for every statement, so that a schema change
    would not be in one.
    """
    # Without a log beside it, nobody has the file open, and it is read where no log can be made.
    log = path.with_name(f"{path.name}-wal")
    alone = "&immutable=1" if mode == "ro" and not log.exists() else ""
    address = f"file:{quote(str(path))}?mode={mode}{alone}"

    def connect() -> sqlite3.Connection:
        return sqlite3.connect(
            address, uri=True, timeout=_WAIT_FOR_OTHERS_S, check_same_thread=False
        )

    engine = create_engine("sqlite://", creator=connect, poolclass=QueuePool)

    @event.listens_for(engine, "connect")
    def configure(connection: sqlite3.Connection, _record: object) -> None:
        connection.isolation_level = None
        connection.execute("PRAGMA foreign_keys = ON")
        if mode != "ro":
            connection.execute("PRAGMA journal_mode = WAL")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _bring_up_to_date(engine: Engine, *, read_only: bool) -> None:
    with engine.connect() as connection:
        if is_current(connection):
            return
    if read_only:
        raise StoreError(
            "written by an older perfci, and may not be written: open it once where it may be"
        )
    with engine.execution_options(writes=True).begin() as connection:
        upgrade(connection)
