"""perfci history: list, export, import and sync recorded runs."""

from collections import Counter
from pathlib import Path

import click

from perfci import units
from perfci.cli import sync
from perfci.cli.keeping import clear_drafts
from perfci.cli.options import (
    config_of,
    echo_json,
    echo_lines,
    json_option,
    make_folder,
    open_to_read,
    open_to_record,
    store_option,
)
from perfci.config import terminal_width
from perfci.drafts import find_cut_off
from perfci.errors import ExitCode, UsageError
from perfci.history.codec import read_run_file, write_run_file
from perfci.history.errors import ForeignFileError, RunFileError
from perfci.history.plain import plain
from perfci.history.stores import Store
from perfci.history.text import one_line
from perfci.reports.text import run_list
from perfci.runs import runs_at


@click.group("history")
def command() -> None:
    r"""List, export, import and sync recorded runs.

    \b
    Example:
      perfci history ls
      perfci history export --out runs
      perfci history import run.json.gz
      perfci history sync
    """


command.add_command(sync.command)


@command.command("ls")
@click.option("--testbed", metavar="NAME", help="Only the runs of this testbed.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Only the newest N.")
@store_option
@json_option
def ls(testbed: str | None, limit: int | None, store: str | None, as_json: bool) -> None:  # noqa: FBT001
    r"""List recorded runs, newest first.

    What is shown of an id is enough for perfci show. The wider the terminal, the more is shown.

    \b
    Example:
      perfci history ls --limit 20
    """
    with open_to_read(config_of(store)) as history:
        known = history.runs()
    runs = [run for run in known if testbed in (None, run.environment.testbed)][:limit]
    if as_json:
        echo_json([plain(run) for run in runs])
    else:
        echo_lines(run_list(runs, known=known, width=terminal_width()))


@command.command("export")
@click.argument("revisions", nargs=-1)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="The folder for the run files, one a run.",
)
@store_option
def export(revisions: tuple[str, ...], out: Path, store: str | None) -> None:
    r"""Write run files of all runs, or of the commits that are named.

    \b
    Example:
      perfci history export --out runs
      perfci history export HEAD HEAD~1 --out runs
    """
    config = config_of(store)
    with open_to_read(config) as history:
        make_folder(out)
        if revisions:
            runs = [run for each in revisions for run in runs_at(history, config.root, each)]
        else:
            runs = list(history.runs())
        for run in runs:
            write_run_file(out / f"{run.run_id}.json.gz", history.run(run.run_id))
    click.echo(f"{units.count_things(len(runs), 'run')} written to {out}")


@command.command("import")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@store_option
def import_(files: tuple[Path, ...], store: str | None) -> int:
    r"""Bring in run files; a folder stands for the run files in it.

    The folder unfinished/ beside the store stands for all runs in it that were cut off, and not
    for those that are still being measured.

    JSON in a folder that does not say it is a run file, as a parcel's own, is passed over. A run
    that is there already is left alone. A file that cannot be read, or whose run is there under the
    same id with other contents, is named and left; the others are brought in.

    \b
    Example:
      perfci history import run.json.gz
      perfci history import examples/h200
      perfci history import .perfci/unfinished
    """
    counts = Counter[str]()
    config = config_of(store)
    with open_to_record(config) as history:
        for each in files:
            found = Counter[str]()
            for path in _with_cut_off(each):
                found += _import_files(history, path)
            if not found["new"] + found["known"] + found["refused"]:
                click.echo(f"perfci: {one_line(str(each))}: no run files in it", err=True)
                found["refused"] += 1
            counts += found
        clear_drafts(config, history)
    left = f"; {units.count_things(counts['other'], 'other file')} left" if counts["other"] else ""
    click.echo(
        f"{units.count_things(counts['new'], 'run')} brought in, {counts['known']} there already, "
        f"{counts['refused']} refused{left}"
    )
    return int(ExitCode.STORE if counts["refused"] else ExitCode.FINE)


def _with_cut_off(named: Path) -> list[Path]:
    """What is named, and the folders in it that commands which are gone have left their runs in."""
    return [named, *(each.folder for each in find_cut_off(named, recorded=()))]


def _import_files(store: Store, named: Path) -> Counter[str]:
    """What became of a file, or of those in a folder: how many are new, known, refused, other."""
    counts = Counter[str]()
    for path in _run_files(named):
        try:
            counts["new" if _import_one(store, path) else "known"] += 1
        except RunFileError as error:
            if path != named and isinstance(error, ForeignFileError):
                counts["other"] += 1
                continue
            click.echo(f"perfci: {error}", err=True)
            counts["refused"] += 1
    return counts


def _import_one(store: Store, path: Path) -> bool:
    """Whether the run of a file is new. RunFileError where another run has its id."""
    run = read_run_file(path)
    if store.add(run):
        return True
    if store.run(run.run_id) != run:
        raise RunFileError(
            f"{one_line(str(path))}: {store.url} has another run {run.run_id}; left as it is there"
        )
    return False


def _run_files(path: Path) -> list[Path]:
    """A file itself; of a folder the run files in it. Raises UsageError where it is unreadable."""
    try:
        if not path.is_dir():
            return [path]
        return sorted(each for each in path.iterdir() if each.name.endswith((".json.gz", ".json")))
    except OSError as error:
        reason = (error.strerror or "").lower()
        raise UsageError(f"{one_line(str(path))}: cannot be read ({reason})") from None
