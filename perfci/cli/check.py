"""perfci check: variants against their references, negative controls included."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import click
from click.core import ParameterSource

from perfci.checking.controls import find_rejections
from perfci.cli.freeze import freeze
from perfci.cli.options import (
    config_of,
    device_option,
    echo_json,
    echo_lines,
    json_option,
    kernels_option,
    selection_of,
    selection_options,
    server_of,
)
from perfci.cli.sanitize import sanitize
from perfci.config import Config
from perfci.device import find_target
from perfci.errors import ConfigurationError, ExitCode, UsageError
from perfci.history.plain import plain
from perfci.kernel import Kernel, discover
from perfci.lock import lock_device
from perfci.plan import Target
from perfci.progress import progress
from perfci.reports.checks import check_table
from perfci.run import measure
from perfci.selection import Cell, select
from perfci.workers.passes import PassServer


@click.command("check")
@selection_options
@device_option
@click.option("--no-controls", is_flag=True, help="Leave out the negative controls in wrong/.")
@click.option(
    "--sanitize",
    "sanitizing",
    is_flag=True,
    help="Run them under compute-sanitizer's four tools instead.",
)
@click.option(
    "--freeze",
    "freezing",
    is_flag=True,
    help="Freeze the bounds of their errors instead, at all tiers.",
)
@kernels_option
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    names: tuple[str, ...],
    variants: tuple[str, ...],
    cases: tuple[str, ...],
    tier: str,
    device: str | None,
    no_controls: bool,  # noqa: FBT001
    sanitizing: bool,  # noqa: FBT001
    freezing: bool,  # noqa: FBT001
    kernels: str | None,
    as_json: bool,  # noqa: FBT001
) -> int:
    r"""Check variants against their references; nothing is timed or recorded.

    The negative controls in a kernel's wrong/ are checked too: each must be rejected by at least
    one case, or the cases are too weak to be trusted.

    With --sanitize nothing is judged: each variant, peers and controls left out, is called once a
    case under memcheck, initcheck, synccheck and racecheck, on a GPU.

    With --freeze no variant is called. How far the library is from float64 is measured over many
    seeds at every case that fits, and written to bounds.toml beside the cases: from then on results
    are judged by that on this kind of device. The bounds of other kinds and cases stay.

    \b
    Example:
      perfci check
      perfci check --kernel mla_attention --tier full
      perfci check --sanitize
      perfci check --freeze --kernel mla_attention
    """
    config = config_of(kernels=kernels)
    if freezing:
        beside = {"variant": variants, "sanitize": sanitizing, "no-controls": no_controls}
        _refuse_beside_freeze(beside)
        is_default = ctx.get_parameter_source("tier") is ParameterSource.DEFAULT
        tier = "full" if is_default else tier
    selection = selection_of(names, variants, cases, tier)
    server = server_of(config)
    target = find_target(device, server.probe_gpus)
    discovered = discover(config.kernels)
    if freezing:
        return freeze(discovered, selection, config, target=target, server=server, as_json=as_json)
    cells = select(discovered, selection, target.device.kind)
    if sanitizing:
        return sanitize(cells, config, target=target, server=server, as_json=as_json)
    controls: list[Cell] = []
    if not (no_controls or selection.variants):
        controls = select(_as_controls(discovered), selection, target.device.kind)
    return _check(cells, controls, config, target=target, server=server, as_json=as_json)


def _check(
    cells: list[Cell],
    controls: list[Cell],
    config: Config,
    *,
    target: Target,
    server: PassServer,
    as_json: bool,
) -> int:
    """Check cells, and that the controls are rejected; the exit code."""
    if not cells:
        raise ConfigurationError(
            f"{config.kernels}: nothing to check on {target.device.kind} with this selection"
        )
    with progress() as observer, lock_device(target.device):
        measured = measure(
            [*cells, *controls],
            config,
            target=target,
            server=server,
            passes=1,
            timed=False,
            observer=observer,
        )
    rows = measured.measurements[: len(cells)]
    control_rows = measured.measurements[len(cells) :]
    rejections = find_rejections(control_rows, [each.variant for each in controls])
    accepted = [name for name, by in rejections.items() if not by]
    if as_json:
        echo_json({"checks": plain(rows), "controls": plain(control_rows), "accepted": accepted})
    else:
        echo_lines(check_table(rows, control_rows, rejections))
    wrong = accepted or any(row.status.is_failure for row in rows)
    return int(ExitCode.REGRESSION_OR_INCORRECT if wrong else ExitCode.FINE)


def _refuse_beside_freeze(options: Mapping[str, object]) -> None:
    for name, given in options.items():
        if given:
            raise UsageError(f"--freeze is about cases and calls no variant: leave out --{name}")


def _as_controls(kernels: Sequence[Kernel]) -> list[Kernel]:
    """The kernels with their controls in the place of their variants."""
    return [replace(kernel, variants=kernel.controls) for kernel in kernels]
