"""perfci profile: variants under Nsight Compute, their reports kept with the run."""

from collections.abc import Sequence
from pathlib import Path

import click

from perfci.cli.options import (
    config_of,
    device_option,
    echo_json,
    echo_lines,
    json_option,
    kernels_option,
    make_folder,
    open_to_read,
    server_of,
    store_option,
)
from perfci.config import Config
from perfci.device import default_testbed, find_target
from perfci.errors import ConfigurationError, ExitCode, UsageError
from perfci.history import commits
from perfci.history.plain import plain
from perfci.kernel import discover
from perfci.lock import lock_device
from perfci.plan import Target
from perfci.prepare import architectures_for, build_all, prepare_all
from perfci.progress import progress
from perfci.reports.profiles import profile_table
from perfci.runs import newest_run_of
from perfci.selection import Cell, Selection, select, variants_of, why_skipped
from perfci.tools.profiler import Profile, profile, profiles_folder, require_profiler
from perfci.workers.passes import PassServer


@click.command("profile")
@click.argument("kernel")
@click.option("--case", "cases", multiple=True, metavar="NAME", help="This case (default: smoke).")
@click.option("--variant", "variants", multiple=True, metavar="NAME", help="Only this one.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Keep the reports in this folder; no run need be recorded.",
)
@device_option
@kernels_option
@store_option
@json_option
def command(
    kernel: str,
    cases: tuple[str, ...],
    variants: tuple[str, ...],
    out: Path | None,
    device: str | None,
    kernels: str | None,
    store: str | None,
    as_json: bool,  # noqa: FBT001
) -> int:
    r"""Profile a kernel's variants with Nsight Compute, and keep the reports with the run.

    Without --case the timed cases of the smoke tier are profiled, without --variant all variants
    but the peers. The reports go beside the store, to the newest run of this very tree.

    \b
    Example:
      perfci profile mla_attention
      perfci profile mla_attention --variant absorbed --out /tmp/profiles
    """
    program = require_profiler()
    config = config_of(store, kernels)
    server = server_of(config)
    target = find_target(device, server.probe_gpus)
    if target.device.kind != "cuda":
        raise UsageError("ncu profiles CUDA kernels, and this is a CPU: name a GPU with --device")
    chosen = Selection(kernels=(kernel,), variants=variants, cases=cases)
    cells = cells_to_profile(
        select(discover(config.kernels), chosen, target.device.kind), chosen, target
    )
    if not cells:
        raise ConfigurationError(f"{config.kernels}: nothing to profile with this selection")
    folder = _folder(config, target, out)
    found = _profile(cells, config, program=program, target=target, server=server, folder=folder)
    if as_json:
        echo_json({"profiles": plain(tuple(found)), "folder": str(folder)})
    else:
        echo_lines(profile_table(found, folder))
    return int(profile_exit_code(found))


def profile_exit_code(profiles: Sequence[Profile]) -> ExitCode:
    """Return what a script is told: whether any profile is not there."""
    failed = any(each.report is None for each in profiles)
    return ExitCode.REGRESSION_OR_INCORRECT if failed else ExitCode.FINE


def cells_to_profile(cells: Sequence[Cell], chosen: Selection, target: Target) -> list[Cell]:
    """The cells to profile; what was not named is left out where it is not what one looks for."""
    return [
        cell
        for cell in cells
        if chosen.cases or cell.case.timed
        if chosen.variants or not cell.variant.declaration.peer
        if not why_skipped(cell, target.device)
    ]


def _profile(
    cells: Sequence[Cell],
    config: Config,
    *,
    program: str,
    target: Target,
    server: PassServer,
    folder: Path,
) -> list[Profile]:
    with progress() as observer, lock_device(target.device):
        architectures = architectures_for(config, target)
        builds = build_all(variants_of(cells), config, architectures, observer)
        prepare_all(cells, builds, config, target, server, observer)
        return profile(
            cells,
            builds,
            program=program,
            target=target,
            timeout_s=config.timeout_s,
            folder=folder,
            observer=observer,
        )


def _folder(config: Config, target: Target, out: Path | None) -> Path:
    """The folder that was named, or that of the newest run of this tree on this testbed."""
    if out is not None:
        make_folder(out)
        return out
    where = config.kernels if config.kernels.is_dir() else config.root
    root = commits.repository_root(where)
    if root is None:
        raise UsageError(f"{where} is in no git repository, so that it has no run: give --out DIR")
    testbed = config.testbed or default_testbed(target.device)
    with open_to_read(config) as store:
        run = newest_run_of(store, commits.head(root), testbed)
    return profiles_folder(config, run.run_id)
