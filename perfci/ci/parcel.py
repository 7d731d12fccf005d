"""What a runner hands over: a folder with ``parcel.json``, and run files and logs beside it.

The history of the format:

1   ``{"format": "perfci-parcel", "version": 1, "parcel": {…}}``: the record below with every field
    by its name.

Whoever reads one trusts nothing of it: it may come from the code of a fork. Whatever lies in a
folder, reading it ends in a parcel or a ParcelError.
"""

import json
import os
import re
import uuid
from dataclasses import dataclass
from pathlib import Path

from perfci.ci.act import Act
from perfci.ci.entries import is_plain_file
from perfci.ci.event import require_sha
from perfci.ci.judgement import Judgement
from perfci.ci.settings import is_runner
from perfci.errors import ParcelError
from perfci.history.plain import PlainError, plain, record
from perfci.history.strict import JsonError, read_json
from perfci.history.text import one_line

FORMAT = "perfci-parcel"
VERSION = 1
FILE = "parcel.json"
LARGEST_PARCEL_BYTES = 32 * 2**20
"""A gate of a thousand cells measures some 2 MB."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}", re.ASCII)
_LARGEST_EXIT_CODE = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One command that was run: how it ended, and the file with what it printed.

    ``error`` is the one line that it ended with where it failed, empty otherwise.
    """

    name: str
    exit_code: int
    duration_s: float
    error: str
    log: str

    def __post_init__(self) -> None:
        _require_file_names((self.name, self.log))
        _require_exit_code(self.exit_code)
        if self.duration_s < 0:
            raise ValueError(f"step {self.name} took {self.duration_s} s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """What one runner did about one attempt at one event.

    ``exit_code`` is the worst of its steps, or that of ``error``, the line that says why there are
    none. ``gates`` are of one device each. ``runs`` are the run files in the same folder.
    """

    runner: str
    act: Act
    base: str | None
    head: str
    run_id: str
    attempt: int
    exit_code: int
    error: str
    perfci_version: str
    steps: tuple[Step, ...] = ()
    gates: tuple[Judgement, ...] = ()
    runs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not is_runner(self.runner):
            raise ValueError(f"{one_line(repr(self.runner), limit=60)} is no name of a runner")
        require_sha(self.head)
        if self.base is not None:
            require_sha(self.base)
        if self.attempt < 1:
            raise ValueError(f"attempt {self.attempt}: the first one is 1")
        _require_exit_code(self.exit_code)
        _require_file_names(self.runs)
        names = [*self.runs, *(step.log for step in self.steps)]
        if len(set(names)) < len(names) or FILE in names:
            raise ValueError("a file is named twice")

    @property
    def files(self) -> tuple[str, ...]:
        """The names of all files beside ``parcel.json``."""
        return (*self.runs, *(step.log for step in self.steps))


def write_parcel(folder: Path, parcel: Parcel) -> Path:
    """Write ``parcel.json`` into a folder, where it is whole or not at all. Raises ParcelError."""
    document = {"format": FORMAT, "version": VERSION, "parcel": plain(parcel)}
    path, temporary = folder / FILE, folder / f".{FILE}.{uuid.uuid4().hex}"
    try:
        text = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1) + "\n"
        decode(text.encode(), origin=str(path))
        try:
            with temporary.open("x", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise ParcelError(f"{path}: cannot be written: {error.strerror}") from None
    except ValueError as error:
        raise ParcelError(f"{path}: cannot be written: {one_line(str(error))}") from None
    return path


def read_parcel(folder: Path) -> Parcel:
    """The parcel in a folder, all of whose files are there.

    Raises ParcelError where there is none, it is not whole, or what it names is no plain file.
    """
    path = folder / FILE
    _require_plain_file(path)
    try:
        with path.open("rb") as file:
            text = file.read(LARGEST_PARCEL_BYTES + 1)
    except OSError as error:
        raise ParcelError(f"{one_line(str(path))}: cannot be read: {error.strerror}") from None
    parcel = decode(text, origin=str(path))
    for name in parcel.files:
        _require_plain_file(folder / name)
    return parcel


def decode(text: bytes, *, origin: str) -> Parcel:
    """The parcel that a text holds; ``origin`` names it in errors. Raises ParcelError."""
    where = one_line(origin)
    if len(text) > LARGEST_PARCEL_BYTES:
        raise ParcelError(f"{where}: larger than a parcel can be: not read")
    try:
        document = read_json(text)
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise ParcelError(f'{where}: no parcel (no "format": "{FORMAT}" in it)')
        version = document.get("version")
        if not isinstance(version, int) or isinstance(version, bool) or version != VERSION:
            raise ParcelError(
                f"{where}: a parcel of version {one_line(repr(version), limit=20)}, this perfci "
                f"reads {VERSION}: let the same perfci write and read"
            )
        if set(document) != {"format", "version", "parcel"}:
            raise ParcelError(f"{where}: no parcel (other keys than format, version, parcel)")
        return record(Parcel, document["parcel"])
    except (JsonError, PlainError) as error:
        raise ParcelError(f"{where}: no parcel: {one_line(str(error))}") from None


def _require_plain_file(path: Path) -> None:
    if not is_plain_file(path):
        raise ParcelError(f"{one_line(str(path))}: not there, or no plain file")


def is_file_name(name: str) -> bool:
    """Whether a file in a parcel may be called so."""
    return _NAME.fullmatch(name) is not None


def _require_file_names(names: tuple[str, ...]) -> None:
    for each in names:
        if not is_file_name(each):
            raise ValueError(f"{one_line(repr(each), limit=60)} is no name of a file in a parcel")


def _require_exit_code(code: int) -> None:
    if not 0 <= code <= _LARGEST_EXIT_CODE:
        raise ValueError(f"{code} is no exit code")
