"""perfci doctor: what is here, what is missing and what to do."""

from collections.abc import Iterator
from dataclasses import asdict

import click

from perfci.anchors import anchor_cells
from perfci.cli.options import (
    config_of,
    echo_json,
    echo_lines,
    json_option,
    kernels_option,
    store_option,
)
from perfci.config import Config, child_environment
from perfci.device import find_targets, has_gpu_driver, why_no_gpu
from perfci.doctor import examine
from perfci.errors import DeviceError, ExitCode
from perfci.findings import Finding
from perfci.lock import lock_device
from perfci.plan import Target
from perfci.progress import progress
from perfci.reports.findings import findings_table
from perfci.run import measure
from perfci.workers.passes import PassServer

_PASSES = 5


@click.command("doctor")
@click.option(
    "--gpu",
    "gpus_alone",
    is_flag=True,
    help="Whether the GPUs that CUDA sees can measure; takes half a minute of each.",
)
@kernels_option
@store_option
@json_option
def command(
    gpus_alone: bool,  # noqa: FBT001
    kernels: str | None,
    store: str | None,
    as_json: bool,  # noqa: FBT001
) -> int:
    r"""Say what is here, what is missing and what to do.

    With --gpu: the state of each GPU, what should be changed on it, and how far apart its own
    anchors read in a few fresh processes. Nothing is ever changed.

    Exits with the code that a run would end with because of what is missing.

    \b
    Example:
      perfci doctor
      perfci doctor --gpu
      perfci doctor --json
    """
    config = config_of(store, kernels)
    findings = list(_examine_gpus(config) if gpus_alone else examine(config))
    if as_json:
        echo_json([asdict(each) for each in findings])
    else:
        echo_lines(findings_table(findings))
    broken = [each.code for each in findings if each.code is not ExitCode.FINE]
    return int(broken[0] if broken else ExitCode.FINE)


def _examine_gpus(config: Config) -> Iterator[Finding]:
    """Look at each GPU that CUDA sees. Raises DeviceError where there is none."""
    from perfci.fitness import examine_driver, examine_tools  # noqa: PLC0415 — imports scipy

    server = PassServer(child_environment(config.cache))
    gpus = server.probe_gpus() if has_gpu_driver() else ()
    if not gpus:
        raise DeviceError(f"no GPU to look at: {why_no_gpu()}")
    yield from examine_driver(gpus)
    yield from examine_tools(config.nvcc)
    for target in find_targets("all", lambda: gpus):
        yield from _examine(target, config, server)


def _examine(target: Target, config: Config, server: PassServer) -> Iterator[Finding]:
    from perfci.fitness import examine_gpu, examine_readings  # noqa: PLC0415 — likewise

    with progress() as observer, lock_device(target.device):
        yield from examine_gpu(target.device)
        measured = measure(
            anchor_cells(target.device.kind),
            config,
            target=target,
            server=server,
            passes=_PASSES,
            observer=observer,
        )
        if measured.interrupted:
            raise KeyboardInterrupt
        yield from examine_readings(measured.measurements)
