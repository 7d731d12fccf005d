"""perfci history sync: exchange recorded runs through a git branch."""

from dataclasses import asdict
from datetime import UTC, datetime

import click

from perfci import units
from perfci.cli.options import (
    config_of,
    echo_json,
    json_option,
    open_to_record,
    store_option,
)
from perfci.errors import ExitCode, UsageError
from perfci.history.commits import repository_root
from perfci.history.notes import Notes
from perfci.history.remote import open_remote
from perfci.history.sync import Exchange, Sync, first_year, require_branches
from perfci.progress import progress

_MOST_LINES = 20


@click.command("sync")
@click.option("--remote", default="origin", show_default=True, metavar="NAME", help="A git remote.")
@click.option(
    "--branch",
    default="perf-history",
    show_default=True,
    metavar="NAME",
    help="How the branches' names begin; -YEAR follows.",
)
@click.option(
    "--since",
    type=click.IntRange(1970, 9999),
    metavar="YEAR",
    help="Receive runs of this year and later (default: this one, in January the last one too).",
)
@click.option("--only", type=click.Choice(["send", "receive"]), help="One way only.")
@store_option
@json_option
def command(
    remote: str,
    branch: str,
    since: int | None,
    only: str | None,
    store: str | None,
    as_json: bool,  # noqa: FBT001
) -> int:
    r"""Exchange recorded runs through a git branch: a store without a server.

    What the branch lacks of the store's runs is sent, what the store lacks of the branch's is
    received. Each run is one file that is never changed. The branch of a run is that of its year,
    perf-history-2026. Runs of dirty trees are not sent. A sync that was interrupted, or met
    another one, loses nothing.

    What lies in a branch and is no run is named and left. So is a file that cannot be read, or
    whose run is in the store with other contents: exit code 6.

    \b
    Example:
      perfci history sync
      perfci history sync --only send
      perfci history sync --remote origin --branch perf-history --since 2024
    """
    config = config_of(store)
    root = repository_root(config.root)
    if root is None:
        raise UsageError(f"{config.root} is in no git repository: it has no remote to sync with")
    require_branches(root, branch)
    with (
        open_to_record(config) as history,
        open_remote(root, remote) as there,
        progress() as observer,
    ):
        exchange = Sync(
            store=history,
            remote=there,
            base=branch,
            since=first_year(datetime.now(UTC)) if since is None else since,
            notes=Notes(config.cache / "sync", history.url, there.url, branch),
            sends=only != "receive",
            receives=only != "send",
            observe=observer.step,
        ).run()
    _complain(exchange)
    if as_json:
        echo_json(asdict(exchange))
    else:
        click.echo(_describe(exchange))
    return int(ExitCode.STORE if exchange.refused else ExitCode.FINE)


def _complain(exchange: Exchange) -> None:
    """Say what was left in the branches, and why."""
    lines = [*exchange.refused, *(f"{each}: no run file; left" for each in exchange.foreign)]
    for line in lines[:_MOST_LINES]:
        click.echo(f"perfci: {line}", err=True)
    if len(lines) > _MOST_LINES:
        click.echo(f"perfci: … and {len(lines) - _MOST_LINES} more; --json has all", err=True)


def _describe(exchange: Exchange) -> str:
    counts = (
        f"{units.count_things(len(exchange.sent), 'run')} sent, {len(exchange.received)} received"
    )
    if exchange.refused:
        counts += f", {len(exchange.refused)} refused"
    if exchange.kept_back:
        of_trees = ("of a dirty tree stays", "of dirty trees stay")
        counts += f"; {units.count_things(len(exchange.kept_back), *of_trees)} here"
    return counts
