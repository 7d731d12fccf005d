"""Runs that are still being measured, in files: what is complete of them outlives the process.

One command has one folder, in ``unfinished`` beside the store, and holds a lock in it for as long
as it lives. A folder that nobody holds is what one that was killed has left.
"""

import os
import secrets
import shlex
import shutil
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from perfci.config import Config, beside_store, load_config
from perfci.history.codec import read_run_file
from perfci.history.errors import RunFileError
from perfci.history.hold import hold, unheld
from perfci.history.model import Run
from perfci.units import count_things

_SUFFIX = ".json.gz"


def drafts_folder(config: Config) -> Path:
    """Where commands that record into the store keep what they have not recorded yet."""
    return beside_store(config) / "unfinished"


class Drafts:
    """What one command has measured and not recorded yet.

    The folder is made for the first run that has its place in it.
    """

    def __init__(self, folder: Path) -> None:
        self._all = folder
        self._own: Path | None = None
        self._lock: int | None = None

    def place(self, run: Run) -> Path:
        """The file for what is known of a run. Raises RunFileError where it has no folder."""
        if self._own is None:
            try:
                self._own = self._make(run.run_id)
            except OSError as error:
                reason = (error.strerror or "").lower()
                raise RunFileError(f"{self._all}: cannot be made ({reason})") from None
        return self._own / f"{run.run_id}{_SUFFIX}"

    def find(self, run: Run) -> Path | None:
        """The file of a run that has been written here."""
        path = self.place(run) if self._own else None
        return path if path and path.exists() else None

    def remove(self) -> None:
        """Remove what is here: it is recorded."""
        if self._own is not None:
            _remove(self._own)

    def close(self) -> None:
        """Let go of what is here: it is for others to find."""
        if self._lock is not None:
            os.close(self._lock)
        self._own = self._lock = None

    def _make(self, name: str) -> Path:
        """Make the folder, under its name only once it is locked: no time to take it for left."""
        beside = self._all.parent
        if not beside.is_dir():
            beside.mkdir(parents=True, exist_ok=True)
            (beside / ".gitignore").write_text("*\n", encoding="ascii")
        unnamed = self._all / f".{secrets.token_hex(8)}"
        unnamed.mkdir(parents=True)
        try:
            (unnamed / ".gitignore").write_text("*\n", encoding="ascii")
            self._lock = hold(unnamed)
            return unnamed.rename(self._all / name)
        except OSError:
            _remove(unnamed)
            self.close()
            raise


@dataclass(frozen=True, slots=True, kw_only=True)
class CutOff:
    """A folder of runs that their command has not come to record, after so many passes."""

    folder: Path
    run_ids: tuple[str, ...]
    passes: int


def describe(cut_off: CutOff) -> str:
    """What became of the runs, in a few words."""
    runs = count_things(len(cut_off.run_ids), "run was", "runs were")
    return f"{runs} cut off after {count_things(cut_off.passes, 'pass', 'passes')}"


def command_to_import(cut_off: CutOff, config: Config) -> str:
    """The command that brings them into the store, which is named where it is not the usual one."""
    here, folder = Path.cwd(), cut_off.folder
    shown = folder.relative_to(here) if folder.is_relative_to(here) else folder
    words = ["perfci", "history", "import", str(shown)]
    if load_config().store != config.store:
        words += ["--store", config.store]
    return shlex.join(words)


def find_cut_off(folder: Path, *, recorded: Collection[str]) -> Iterator[CutOff]:
    """What commands that are gone have left among drafts, but for runs that are ``recorded``.

    What no run can be read from is nobody's loss, and passed over.
    """
    for own in _folders_in(folder):
        with unheld(own) as is_unheld:
            files = [each for each in _files_in(own) if _id_of(each) not in recorded]
            if not (is_unheld and files):
                continue
            with suppress(RunFileError):
                passes = _count_passes(read_run_file(files[0]))
                yield CutOff(folder=own, run_ids=tuple(map(_id_of, files)), passes=passes)


def clear(folder: Path, *, recorded: Collection[str]) -> None:
    """Remove what commands that are gone have left among drafts, and is ``recorded``."""
    for own in _folders_in(folder):
        with unheld(own) as is_unheld:
            if is_unheld and all(_id_of(each) in recorded for each in _files_in(own)):
                _remove(own)


def _remove(own: Path) -> None:
    """Remove the folder of one command, and the one around it where it was the last."""
    shutil.rmtree(own, ignore_errors=True)
    with suppress(OSError):
        own.parent.rmdir()


def _folders_in(folder: Path) -> list[Path]:
    with suppress(OSError):
        return sorted(each for each in folder.iterdir() if not each.name.startswith("."))
    return []


def _files_in(own: Path) -> list[Path]:
    return sorted(own.glob(f"[!.]*{_SUFFIX}"))


def _id_of(file: Path) -> str:
    return file.name.removesuffix(_SUFFIX)


def _count_passes(run: Run) -> int:
    """How many passes were complete; a run of nothing that is timed has one."""
    return max((each.index + 1 for row in run.measurements for each in row.passes), default=1)
