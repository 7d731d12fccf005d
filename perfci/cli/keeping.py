"""Where the commands that measure keep their runs: what is complete at once, all of it at last."""

import tempfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Self

import click

from perfci.config import Config
from perfci.drafts import (
    CutOff,
    Drafts,
    clear,
    command_to_import,
    describe,
    drafts_folder,
    find_cut_off,
)
from perfci.history.codec import write_growing, write_run_file
from perfci.history.errors import RunFileError
from perfci.history.model import Commit, Run
from perfci.history.stores import Store

FileOf = Callable[[Run], Path | None]
"""The file that a run goes into; None where it goes into the store."""


def file_in(folder: Path | None, run: Run) -> Path | None:
    """The file of a run in a folder, where there is one."""
    return folder / f"{run.run_id}.json.gz" if folder else None


class Keeper:
    """Keeps the runs of one command: in files that are asked for, or in the store. A context.

    What is known so far of a run that goes into the store is kept in drafts beside it.
    """

    def __init__(self, config: Config, store: Store | None, file_of: FileOf) -> None:
        self._store = store
        self._file_of = file_of
        self._drafts = Drafts(drafts_folder(config))
        self._has_kept = self._has_warned = False

    def keep_so_far(self, runs: Iterable[Run]) -> None:
        """Write what is known of runs that are still being measured; say once where that fails."""
        try:
            write_growing((self._file_of(run) or self._drafts.place(run), run) for run in runs)
            self._has_kept = True
        except RunFileError as error:
            if not self._has_warned:
                click.echo(f"passes are not kept before the end: {error}", err=True)
            self._has_warned = True

    def keep(self, runs: Iterable[Run]) -> None:
        """Record runs; what fails is left in files rather than lost."""
        runs = list(runs)
        if self._has_kept and len(runs) > 1:
            # Whatever comes between one side and the other, they have the same passes.
            self.keep_so_far(runs)
        for run in runs:
            file = self._file_of(run)
            keep(run, None if file else self._store, file, rescue=self._drafts.find(run))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._drafts.remove()
        self._drafts.close()


def keep(run: Run, store: Store | None, out: Path | None, *, rescue: Path | None = None) -> None:
    """Record a run; where that fails, leave it in a file rather than lose it."""
    try:
        if store is not None:
            store.add(run)
        elif out is not None:
            write_run_file(out, run)
    except Exception:
        rescue = rescue or Path(tempfile.gettempdir()) / f"perfci-{run.run_id}.json.gz"
        write_run_file(rescue, run)
        click.echo(f"perfci: the run is kept in {rescue}; bring it in with", err=True)
        click.echo(f"  perfci history import {rescue}", err=True)
        raise


def count_attempts(store: Store | None, commit: Commit, testbed: str) -> int:
    """The number of a run of that commit or tree, by those that the store has of it."""
    if store is None:
        return 1
    earlier = store.runs(sha_prefix=commit.sha, testbed=testbed, studies=False)
    return 1 + sum(each.commit.dirty == commit.dirty for each in earlier)


def counted(run: Run, store: Store | None) -> Run:
    """The run, with how many the store has of its commit or tree."""
    return replace(run, attempt=count_attempts(store, run.commit, run.environment.testbed))


def say_cut_off(config: Config, store: Store) -> None:
    """Say how runs that were cut off come into the store; clear away those that are in it."""
    for each in clear_drafts(config, store):
        it = "it" if len(each.run_ids) == 1 else "them"
        click.echo(f"{describe(each)}; bring {it} in with", err=True)
        click.echo(f"  {command_to_import(each, config)}", err=True)


def clear_drafts(config: Config, store: Store) -> list[CutOff]:
    """Remove the drafts of runs that are in the store; what else commands have left there."""
    folder = drafts_folder(config)
    if not folder.is_dir():
        return []
    recorded = {each.run_id for each in store.runs()}
    clear(folder, recorded=recorded)
    return list(find_cut_off(folder, recorded=recorded))
