"""perfci build: compile the variants that have changed."""

import time
from dataclasses import asdict

import click

from perfci import units
from perfci.build import Build
from perfci.cli.options import (
    config_of,
    device_option,
    echo_json,
    echo_lines,
    json_option,
    kernels_option,
    selection_of,
    selection_options,
)
from perfci.config import Config, child_environment
from perfci.device import find_target
from perfci.errors import ExitCode
from perfci.kernel import discover
from perfci.lock import lock_device
from perfci.prepare import architectures_for, build_all, prepare_all
from perfci.progress import progress
from perfci.reports.columns import Column, lay_out
from perfci.selection import Selection, select, variants_of
from perfci.workers.passes import PassServer

_COLUMNS = (
    Column("kernel"),
    Column("variant", names=True),
    Column("build", align="right"),
    Column("digest"),
)


@click.command("build")
@selection_options
@device_option
@kernels_option
@json_option
def command(
    names: tuple[str, ...],
    variants: tuple[str, ...],
    cases: tuple[str, ...],
    tier: str,
    device: str | None,
    kernels: str | None,
    as_json: bool,  # noqa: FBT001
) -> int:
    r"""Compile the variants that have changed, all at once.

    A variant that does not compile is listed with the compiler's message; the others are built.
    --device cuda compiles the CUDA variants also where there is no GPU to run them.

    \b
    Example:
      perfci build
      perfci build --kernel mla_attention
      perfci build --device cuda
    """
    config = config_of(kernels=kernels)
    selection = selection_of(names, variants, cases, tier)
    started_s = time.monotonic()
    builds, prepared = _build(config, selection, device)
    compiled = sum(not each.cached and each.library is not None for each in builds)
    if as_json:
        echo_json([_plain(each) for each in builds])
    else:
        echo_lines(lay_out(_COLUMNS, [_row(each) for each in builds]))
        took = units.format_duration(time.monotonic() - started_s)
        click.echo(f"\n{compiled} compiled, {prepared} prepared at their first call, in {took}")
    failed = [each for each in builds if each.failed]
    for each in failed:
        click.echo(f"\n{each.variant.kernel}/{each.variant.name}:\n{each.message}", err=True)
    return int(ExitCode.REGRESSION_OR_INCORRECT if failed else ExitCode.FINE)


def _build(config: Config, selection: Selection, device: str | None) -> tuple[list[Build], int]:
    """Build for the device; for one of which only the kind is said, compile and prepare nothing."""
    kernels = discover(config.kernels)
    # Without torch's compiler: where nothing has changed only the GPUs are asked for.
    server = PassServer(child_environment(config.cache))
    target = None if device == "cuda" else find_target(device, server.probe_gpus)
    kind = target.device.kind if target else "cuda"
    cells = select(kernels, selection, kind)
    architectures = architectures_for(config, target)
    with progress() as observer:
        builds = build_all(variants_of(cells), config, architectures, observer)
        prepared = 0
        if target is not None:
            with lock_device(target.device):
                prepared = prepare_all(cells, builds, config, target, server, observer)
    return builds, prepared


def _row(build: Build) -> tuple[str, ...]:
    if build.failed:
        outcome = "failed"
    elif build.library is None:
        outcome = "nothing to do"
    else:
        outcome = "unchanged" if build.cached else units.format_duration(build.compile_s)
    return build.variant.kernel, build.variant.name, outcome, build.digest[:12]


def _plain(build: Build) -> dict[str, object]:
    return {
        "kernel": build.variant.kernel,
        "variant": build.variant.name,
        "digest": build.digest,
        "library": str(build.library) if build.library else None,
        "code": asdict(build.code),
        "cached": build.cached,
        "compile_s": build.compile_s,
        "message": build.message,
    }
