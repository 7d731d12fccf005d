"""What the commands of `perfci ci` begin with: the event, and the repository that it is about."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from perfci.ci.event import Event
from perfci.ci.plan import as_filled_in
from perfci.ci.providers import read_event
from perfci.cli.options import config_of
from perfci.config import Config, inherited_environment
from perfci.errors import UsageError
from perfci.history import commits

inputs_option = click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="NAME=VALUE",
    help="As if filled in by hand: act, range, runner, kernel, variant, case, timer.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What this job is about; ``kernels`` and ``store`` are those that were named, if any were."""

    event: Event
    root: Path
    config: Config
    variables: Mapping[str, str]
    kernels: Path | None
    store: str | None


def find_job(inputs: tuple[str, ...], kernels: str | None, store: str | None = None) -> Job:
    """The event, and the repository here. Raises UsageError outside of one."""
    config = config_of(store, kernels)
    root = find_root(config)
    variables = inherited_environment()
    event = as_filled_in(read_event(variables, root), _filled_in(inputs))
    return Job(
        event=event,
        root=root,
        config=config,
        variables=variables,
        kernels=config.kernels if kernels else None,
        store=config.store if store else None,
    )


def find_root(config: Config) -> Path:
    """The top of the repository that a project is in. Raises UsageError where it is in none."""
    root = commits.repository_root(config.root)
    if root is None:
        raise UsageError(f"{config.root} is in no git repository: there is no commit to look at")
    return root


def _filled_in(inputs: tuple[str, ...]) -> dict[str, str]:
    """What --input says. Raises UsageError."""
    pairs = [each.partition("=") for each in inputs]
    for name, sign, _ in pairs:
        if not sign or not name:
            raise UsageError(f"--input {name}: write NAME=VALUE")
    return {name: value for name, _, value in pairs if value}
