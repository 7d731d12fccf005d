"""perfci noise: a testbed against itself."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import click

from perfci import recording
from perfci.cli.keeping import Keeper, file_in, say_cut_off
from perfci.cli.options import (
    config_of,
    device_option,
    echo_json,
    echo_lines,
    json_option,
    kernels_option,
    make_folder,
    open_to_record,
    selection_of,
    selection_options,
    server_of,
    store_option,
)
from perfci.cli.record import choose_cells, say_interrupted, say_unwatched
from perfci.config import Config
from perfci.decision.noise import ENOUGH_PASSES, FEWEST_PASSES, LADDER, describe_noise
from perfci.decision.verdict import run_exit_code
from perfci.device import environment, find_targets
from perfci.errors import ConfigurationError
from perfci.history.model import NOISE_TRIGGER, Run, is_anchor
from perfci.history.plain import plain
from perfci.history.stores import Store
from perfci.history.summary import cell, run_summary
from perfci.kernel import Kernel
from perfci.load import say_load
from perfci.lock import lock_device
from perfci.plan import Target
from perfci.progress import progress
from perfci.reports.noise import noise_table, say_shortage
from perfci.run import Measured, measure_pair
from perfci.selection import Cell, Selection
from perfci.workers.passes import PassServer


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    config: Config
    selection: Selection
    server: PassServer
    passes: int
    out: Path | None
    as_json: bool


@click.command("noise")
@selection_options
@device_option
@click.option(
    "--passes",
    type=click.IntRange(FEWEST_PASSES, 1000),
    default=ENOUGH_PASSES,
    show_default=True,
    help="Fresh processes to measure in, each with both sides.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write the two run files into this folder instead of recording, from the first complete "
    "pass on.",
)
@kernels_option
@store_option
@json_option
def command(
    names: tuple[str, ...],
    variants: tuple[str, ...],
    cases: tuple[str, ...],
    tier: str,
    device: str | None,
    passes: int,
    out: Path | None,
    kernels: str | None,
    store: str | None,
    as_json: bool,  # noqa: FBT001
) -> int:
    r"""Measure the same code as two sides, and say how far apart they come to lie.

    For each cell that is timed: the spread from pass to pass, that of the two sides within a pass,
    and the least slow-down that a number of paired passes would call. What is recorded is in no
    history; the newest study of a testbed is what perfci compare takes for its noise.

    \b
    Example:
      perfci noise
      perfci noise --kernel mla_attention --passes 24
    """
    config = config_of(store, kernels)
    server = server_of(config)
    request = _Request(
        config=config,
        selection=selection_of(names, variants, cases, tier),
        server=server,
        passes=passes,
        out=out,
        as_json=as_json,
    )
    targets = find_targets(device, server.probe_gpus)
    with _opened(request) as history:
        return max(_study(target, request, history) for target in targets)


@contextmanager
def _opened(request: _Request) -> Iterator[Store | None]:
    """The store, opened before anything is measured, so that a bad one costs nothing."""
    if request.out is not None:
        make_folder(request.out)
        yield None
        return
    with open_to_record(request.config) as store:
        say_cut_off(request.config, store)
        yield store


def _study(target: Target, request: _Request, store: Store | None) -> int:
    config = request.config
    subject = recording.here(config, None)
    cells = _choose_timed(config, subject.kernels, request.selection, target.device.kind)
    where = environment(target.device, config)
    started_at = datetime.now(UTC)
    earlier = 0 if store is None else len(store.runs(testbed=where.testbed, studies=True))
    pair, *run_ids = (recording.new_id(started_at) for _ in range(3))

    def assemble(sides: Sequence[Measured]) -> Iterator[Run]:
        for number, (measured, run_id) in enumerate(zip(sides, run_ids, strict=True), 1):
            yield recording.assemble(
                subject,
                measured,
                where,
                run_id=run_id,
                started_at=started_at,
                trigger=NOISE_TRIGGER,
                attempt=earlier + number,
                pair=pair,
            )

    with Keeper(config, store, lambda run: file_in(request.out, run)) as keeper:
        with progress() as observer, lock_device(target.device):
            sides = measure_pair(
                cells,
                cells,
                config,
                target=target,
                server=request.server,
                passes=request.passes,
                observer=observer,
                keep_so_far=lambda sides: keeper.keep_so_far(assemble(sides)),
            )
        runs = list(assemble(sides))
        keeper.keep(runs)
    _show(request, runs)
    say_unwatched(sides[0].unwatched)
    if sides[0].interrupted:
        say_interrupted(sides[0].passes, request.passes)
        raise KeyboardInterrupt
    return max(int(run_exit_code(run.measurements)) for run in runs)


def _choose_timed(
    config: Config, kernels: Sequence[Kernel], selection: Selection, kind: str
) -> list[Cell]:
    """The cells that are timed, of those chosen: whether others are right is no question here.

    Raises ConfigurationError where there are none.
    """
    timed = [each for each in choose_cells(config, kernels, selection, kind) if each.case.timed]
    if all(is_anchor(each.kernel.name) for each in timed):
        raise ConfigurationError(
            f"{config.kernels}: nothing that is timed on {kind} with this selection; choose others"
        )
    return timed


def _show(request: _Request, runs: list[Run]) -> None:
    first, second = (run_summary(run) for run in runs)
    cells = [cell(run.run_id, each) for run in runs for each in run.measurements]
    threshold = request.config.threshold
    noise = describe_noise((first, second), cells, threshold=threshold)
    if request.as_json:
        echo_json(
            {
                "runs": [first.run_id, second.run_id],
                "ladder": LADDER,
                "threshold": threshold,
                "cells": [plain(each) for each in noise],
                "load": say_load({"": cells}),
                "shortage": say_shortage(noise),
            }
        )
        return
    echo_lines(noise_table((first, second), noise, cells, threshold=threshold))
