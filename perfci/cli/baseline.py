"""perfci baseline: which commit later ones are held against, and why."""

import click

from perfci import units
from perfci.cli.options import config_of
from perfci.errors import MissingError, UsageError
from perfci.gate.baselines import pin, read_baselines
from perfci.history import commits
from perfci.history.text import one_line


@click.group("baseline")
def command() -> None:
    r"""Pin the commit that later ones are held against, or show which one it is.

    A gate says of every cell how far it lies from the pinned commit, as far as that is recorded.
    Nothing else moves a baseline.

    \b
    Example:
      perfci baseline pin v1.2 --reason "First release for the H200"
      perfci baseline show
    """


@command.command("pin")
@click.argument("revision", metavar="REV")
@click.option("--reason", required=True, metavar="TEXT", help="Why this commit, for whoever asks.")
def pin_command(revision: str, reason: str) -> int:
    r"""Pin a commit in baselines.toml, which is to be committed.

    \b
    Example:
      perfci baseline pin v1.2 --reason "First release for the H200"
    """
    config = config_of()
    root = commits.repository_root(config.root)
    if root is None:
        raise UsageError(f"{config.root} is in no git repository: it has no commit to pin")
    sha = commits.resolve(root, revision)
    path = pin(config.root, sha, reason)
    click.echo(f"pinned {units.shorten_sha(sha)} in {path.name}: commit that file")
    return 0


@command.command("show")
def show_command() -> int:
    r"""Show the baselines, the one that counts first.

    \b
    Example:
      perfci baseline show
    """
    baselines = read_baselines(config_of().root)
    if not baselines:
        raise MissingError(
            "no baseline is pinned yet; pin one with perfci baseline pin REV --reason TEXT"
        )
    for each in reversed(baselines):
        sha = units.shorten_sha(one_line(each.commit))
        click.echo(f"{sha}  {units.format_date(each.pinned_at)}  {each.reason}")
    return 0
