"""Several GPUs of a host at once: for each a perfci of its own, on the same command line."""

import subprocess
import sys
from collections.abc import Sequence

import click

from perfci.errors import ExitCode
from perfci.plan import Target


def run_side_by_side(targets: Sequence[Target], arguments: Sequence[str]) -> int:
    """Run the command line once for each GPU, all at the same time; the worst exit code.

    What each prints is shown when it has ended, one after the other. Ctrl-C reaches them all, and
    each keeps the passes that are complete.
    """
    rest = _without_device(arguments)
    children = [
        subprocess.Popen(
            [sys.executable, "-m", "perfci", *rest, "--device", str(target.device.uuid)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for target in targets
    ]
    interrupted = False
    codes: list[int] = []
    for target, child in zip(targets, children, strict=True):
        printed = ""
        while True:
            try:
                printed = child.communicate()[0]
                break
            except KeyboardInterrupt:
                interrupted = True
        click.echo(f"{target.device.uuid}\n{printed}")
        codes.append(child.returncode)
    if interrupted:
        raise KeyboardInterrupt
    failed = int(ExitCode.REGRESSION_OR_INCORRECT)
    return failed if failed in codes else max(codes)


def _without_device(arguments: Sequence[str]) -> list[str]:
    kept: list[str] = []
    skip = False
    for each in arguments:
        if skip or each == "--device":
            skip = not skip
        elif not each.startswith("--device="):
            kept.append(each)
    return kept
