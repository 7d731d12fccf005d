"""perfci selftest: planted kernels that must be caught, honest ones that must not be accused."""

from dataclasses import replace

import click

from perfci.cli.options import (
    config_of,
    device_option,
    echo_json,
    echo_lines,
    json_option,
    kernels_option,
    server_for,
)
from perfci.device import find_target
from perfci.errors import ExitCode
from perfci.history.model import Status
from perfci.history.plain import plain
from perfci.kernel import Kernel, discover, read_kernels
from perfci.lock import lock_device
from perfci.progress import progress
from perfci.reports.selftest import selftest_table
from perfci.selection import Cell, Selection, select
from perfci.selftest import KERNELS
from perfci.selftest.plants import APART, PLANTS
from perfci.selftest.scenarios import Stage, play
from perfci.selftest.trial import Trial, try_honest, try_plants

_TIMEOUT_S = 30.0
_HANG_TIMEOUT_S = 5.0
"""What hangs takes all the time that it is given."""
_MEMORY_GIB = 4.0
_BUDGET_S = 0.1


@click.command("selftest")
@device_option
@kernels_option
@json_option
def command(device: str | None, kernels: str | None, as_json: bool) -> int:  # noqa: FBT001
    r"""See whether perfci catches what it is there to catch.

    Planted kernels do what has gone wrong elsewhere, and each must be caught by the rule meant for
    it. Honest ones, all variants of the kernels here among them, must not be accused. Nothing is
    recorded. What needs a GPU is skipped on a CPU.

    \b
    Example:
      perfci selftest
      perfci selftest --device cpu
    """
    config = replace(config_of(kernels=kernels), cell_budget_s=_BUDGET_S)
    own = discover(config.kernels) if config.kernels.is_dir() else []
    ours = read_kernels(KERNELS)
    server = server_for(own, config)
    target = find_target(device, server.probe_gpus)
    kind = target.device.kind
    honest = select([*ours, *own], Selection(), kind)
    strict = replace(
        config,
        timeout_s=_TIMEOUT_S,
        memory_limit_gib=_MEMORY_GIB if kind == "cpu" else config.memory_limit_gib,
    )
    trials: list[Trial] = []
    try:
        with progress() as observer, lock_device(target.device):
            stage = Stage(config=config, target=target, server=server, observer=observer)
            planted, hanging = _planted(ours, kind)
            rows = stage.rows(planted, config=strict)
            rows += stage.rows(hanging, config=replace(strict, timeout_s=_HANG_TIMEOUT_S))
            trials.extend(try_plants(rows, kind))
            trials.extend(try_honest(stage.rows(honest)))
            trials.extend(play(stage))  # each of them as it ends
    except KeyboardInterrupt:
        _show(trials, as_json=as_json)
        raise
    _show(trials, as_json=as_json)
    failed = any(each.fate.is_failure for each in trials)
    return int(ExitCode.REGRESSION_OR_INCORRECT if failed else ExitCode.FINE)


def _show(trials: list[Trial], *, as_json: bool) -> None:
    if as_json:
        echo_json(plain(tuple(trials)))
    else:
        echo_lines(selftest_table(trials))


def _planted(kernels: list[Kernel], kind: str) -> tuple[list[Cell], list[Cell]]:
    """The cells of the planted variants, those that hang apart, without what scenarios judge."""
    planted = [replace(each, variants=each.controls) for each in kernels]
    cells = select(planted, Selection(), kind)
    hanging = {each.variant for each in PLANTS if each.status is Status.TIMEOUT}
    own = [each for each in cells if each.variant.name not in APART]
    return (
        [each for each in own if each.variant.name not in hanging],
        [each for each in own if each.variant.name in hanging],
    )
