"""A run as a file: gzipped JSON with a version, the same bytes for the same run.

The history of the format:

1   ``{"format": "perfci-run", "version": 1, "run": {…}}``. The run is the records of
    ``perfci.history.model``, each an object with every field by its name; times are ISO 8601 in
    UTC, latencies nanoseconds with all their digits.
2   A measurement has ``launches``; one of version 1 has none.
3   A run has a ``pair``, a measurement a ``stop``; of earlier versions they are "" and null.
4   A pass has ``sm_mhz``, ``other_processes`` and ``quarantine``; of earlier versions they are
    null, null and "".

A file that a newer perfci wrote is refused. Uncompressed JSON is read as well. Files come from
other machines and are not trusted: whatever is in one, reading it ends in a run or a RunFileError.
"""

import gzip
import json
import os
import uuid
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import lru_cache
from pathlib import Path

from perfci.history.errors import ForeignFileError, RunFileError
from perfci.history.model import Measurement, Pass, Run
from perfci.history.plain import PlainError, checked, plain, record
from perfci.history.strict import JsonError, read_json
from perfci.history.text import one_line

FORMAT = "perfci-run"
VERSION = 4
LARGEST_RUN_BYTES = 128 * 2**20
"""What a run may measure uncompressed; a run of 300 cells × 10 passes measures some 10 MB."""

_QUICKEST, _SMALLEST = 1, 9
_KNOWN_PASSES = 2**14
"""Of so many the text is kept for the next time; a study of 60 passes on a GPU has some 10,000."""

_GZIP_MAGIC = b"\x1f\x8b"
_COPY_AGAIN = "copy it again from where it was written"


class _UnreadableError(Exception):
    """What keeps a file from being read, without the file's name."""


class _ForeignError(_UnreadableError):
    """It is somebody else's file."""


def encode(run: Run, *, quickly: bool = False) -> bytes:
    """The run as gzipped JSON; equal runs give equal bytes.

    ``quickly`` is for a run that is written again and again while it grows: a larger file of the
    same text, rows of which are taken for readable, as those are that are measured.

    Raises RunFileError where the run holds what could not be read back, such as NaN.
    """
    try:
        text = _text_of_grown(run) if quickly else _text_of(checked(run))
    except ValueError as error:
        raise RunFileError(f"run {one_line(run.run_id)} cannot be written: {error}") from None
    document = f'{{"format":"{FORMAT}","version":{VERSION},"run":{text}}}'
    return gzip.compress(document.encode(), _QUICKEST if quickly else _SMALLEST, mtime=0)


def _text_of(body: object) -> str:
    return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _text_of_grown(run: Run) -> str:
    """The text of a run, most of which are passes that have been written before."""
    rows = [
        _filled(_without_passes(row), "passes", map(_text_of_pass, row.passes))
        for row in run.measurements
    ]
    return _filled(checked(replace(run, measurements=())), "measurements", rows)


def _without_passes(row: Measurement) -> dict[str, object]:
    names = [each.name for each in fields(row)]
    return {name: [] if name == "passes" else plain(getattr(row, name)) for name in names}


def _filled(body: dict[str, object], name: str, texts: Iterable[str]) -> str:
    """The text of an object with an empty list, filled with what is text already."""
    before, empty, after = _text_of(body).partition(f'"{name}":[]')
    return f"{before}{empty[:-1]}{','.join(texts)}]{after}"


@lru_cache(maxsize=_KNOWN_PASSES)
def _text_of_pass(each: Pass) -> str:
    """What takes most of the time, so that a run that grows by a pass costs that pass."""
    return _text_of(plain(each))


def decode(blob: bytes, *, origin: str) -> Run:
    """The run that the bytes of a run file hold; ``origin`` names the file in errors.

    Raises RunFileError where they hold none, ForeignFileError where they do not say that they do.
    """
    kind = RunFileError
    try:
        return record(Run, _body(_parsed(_uncompressed(blob))))
    except PlainError as error:
        problem = f"{error}; the file was changed after perfci wrote it: {_COPY_AGAIN}"
    except _UnreadableError as error:
        problem = str(error)
        kind = ForeignFileError if isinstance(error, _ForeignError) else RunFileError
    raise kind(f"{one_line(origin)}: {problem}")


def read_run_file(path: Path) -> Run:
    """The run in a file. Raises RunFileError where it cannot be read or holds no run."""
    try:
        with path.open("rb") as file:
            blob = file.read(LARGEST_RUN_BYTES + 1)
    except (OSError, ValueError) as error:
        raise _file_error(path, "read", error) from None
    return decode(blob, origin=str(path))


def write_run_file(path: Path, run: Run) -> None:
    """Write a run to a file, which is there whole or not at all. Raises RunFileError."""
    _write([(path, encode(run))])


def write_growing(runs: Iterable[tuple[Path, Run]]) -> None:
    """Write what is known of runs that are measured together, all of them in the same state.

    Each file is there whole or not at all; that some are of this state and some of that before
    takes being killed between two renames. Raises RunFileError.
    """
    _write([(path, encode(run, quickly=True)) for path, run in runs])


def _write(blobs: Iterable[tuple[Path, bytes]]) -> None:
    drafts: list[tuple[Path, Path]] = []
    try:
        for path, blob in blobs:
            temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
            drafts.append((temporary, path))
            with _naming(path), temporary.open("xb") as file:
                file.write(blob)
                file.flush()
                os.fsync(file.fileno())
        for temporary, path in drafts:
            with _naming(path):
                temporary.replace(path)
    finally:
        for temporary, path in drafts:
            with _naming(path):
                temporary.unlink(missing_ok=True)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """An OSError as a RunFileError, which names the file that is to be written."""
    try:
        yield
    except OSError as error:
        raise _file_error(path, "written", error) from None


def _file_error(path: Path, verb: str, error: OSError | ValueError) -> RunFileError:
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return RunFileError(f"{one_line(str(path))}: cannot be {verb}: {reason}")


def _uncompressed(blob: bytes) -> bytes:
    if not blob:
        raise _UnreadableError(f"empty: {_COPY_AGAIN}")
    if not blob.startswith(_GZIP_MAGIC):
        _require_size(len(blob))
        return blob
    stream = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    try:
        text = stream.decompress(blob, LARGEST_RUN_BYTES + 1)
    except zlib.error:
        raise _UnreadableError(f"damaged (its gzip stream is broken): {_COPY_AGAIN}") from None
    _require_size(len(text))
    if not stream.eof:
        raise _UnreadableError(f"truncated: {_COPY_AGAIN}")
    if stream.unused_data:
        raise _UnreadableError(f"damaged (bytes follow its end): {_COPY_AGAIN}")
    return text


def _require_size(size_bytes: int) -> None:
    if size_bytes > LARGEST_RUN_BYTES:
        limit_mib = LARGEST_RUN_BYTES // 2**20
        raise _UnreadableError(f"larger than a run can be ({limit_mib} MiB): not read")


def _parsed(text: bytes) -> object:
    try:
        return read_json(text)
    except JsonError as error:
        problem = f"{error}: {_COPY_AGAIN}" if error.is_damaged else f"not a run file ({error})"
    raise _UnreadableError(problem)


def _body(document: object) -> object:
    """The run in a document of this version or of one that can be brought up to it."""
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise _ForeignError(f'not a run file (no "format": "{FORMAT}" in it)')
    version = document.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise _UnreadableError("not a run file (its version is no whole number above 0)")
    if version > VERSION:
        shown = version if version < 10**6 else "of a very large number"
        raise _UnreadableError(
            f"written by a newer perfci (format {shown}, this one reads up to {VERSION}): "
            "upgrade perfci"
        )
    if unknown := sorted(set(document) - {"format", "version", "run"}):
        raise PlainError("", f"unknown key {one_line(repr(unknown[0]), limit=60)}")
    if "run" not in document:
        raise PlainError("run", "missing")
    body = document["run"]
    for step in _STEPS[version - 1 :]:
        body = step(body)
    return body


def _with_launches(body: object) -> object:
    """A run of version 1 as one of version 2."""
    return _with_in_rows(body, "launches", [])


def _with_pair(body: object) -> object:
    """A run of version 2 as one of version 3."""
    return _with_in_rows(_with(body, "pair", ""), "stop", None)


def _with_quarantine(body: object) -> object:
    """A run of version 3 as one of version 4."""
    if not isinstance(body, dict) or not isinstance(rows := body.get("measurements"), list):
        return body
    return {**body, "measurements": [_with_watched_passes(row) for row in rows]}


def _with_watched_passes(row: object) -> object:
    if not isinstance(row, dict) or not isinstance(passes := row.get("passes"), list):
        return row
    for key, value in (("sm_mhz", None), ("other_processes", None), ("quarantine", "")):
        passes = [_with(each, key, value) for each in passes]
    return {**row, "passes": passes}


_STEPS = (_with_launches, _with_pair, _with_quarantine)
"""What makes of a run of each version one of the next; what is wrong with it the reader says."""


def _with(body: object, key: str, value: object) -> object:
    return {**body, key: value} if isinstance(body, dict) and key not in body else body


def _with_in_rows(body: object, key: str, value: object) -> object:
    if not isinstance(body, dict) or not isinstance(rows := body.get("measurements"), list):
        return body
    return {**body, "measurements": [_with(row, key, value) for row in rows]}
