"""What the commands that measure share: the cells that are meant, and what is said of a run."""

from collections.abc import Sequence

import click

from perfci import units
from perfci.anchors import anchor_cells
from perfci.config import Config
from perfci.errors import ConfigurationError
from perfci.kernel import Kernel
from perfci.selection import Cell, Selection, left_out, select


def choose_cells(
    config: Config, kernels: Sequence[Kernel], selection: Selection, kind: str
) -> list[Cell]:
    """The cells that are chosen for a kind of device, and the anchors where they are wanted.

    Says which variants are left out. Raises ConfigurationError where nothing is chosen.
    """
    cells = select(kernels, selection, kind)
    others = left_out(kernels, selection, kind)
    if others:
        variants = units.count_things(len(others), "variant is", "variants are")
        click.echo(f"{variants} not for {kind}: left out", err=True)
    if not cells:
        raise ConfigurationError(
            f"{config.kernels}: nothing to measure on {kind} with this selection"
        )
    return cells + anchor_cells(kind) if config.anchors else cells


def say_unwatched(reason: str) -> None:
    """Say why a GPU's state, its clocks above all, is not known; nothing without a reason."""
    if reason:
        click.echo(f"the GPU's state was not read: {reason}", err=True)


def say_interrupted(passes: int, asked: int | None) -> None:
    """Say how many passes were complete when a command was interrupted, of those asked for."""
    of = "" if asked is None else f"{units.format_count(passes)} of "
    total = units.count_things(passes if asked is None else asked, "pass", "passes")
    were = units.choose_number(passes, "was complete and is", "were complete and are")
    click.echo(f"interrupted: {of}{total} {were} kept", err=True)
