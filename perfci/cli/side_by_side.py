"""Several GPUs of a host at once: for each a perfci of its own, on the same command line."""

import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from tempfile import TemporaryFile

import click

from perfci.errors import ExitCode
from perfci.plan import Target


def run_side_by_side(targets: Sequence[Target], arguments: Sequence[str]) -> int:
    """Run the command line once for each GPU, all at the same time; the worst exit code.

    What each prints is shown when all have ended, one after the other. Being interrupted is passed
    on once, and each keeps the passes that are complete.
    """
    rest = _without_device(arguments)
    codes: list[int] = []
    with ExitStack() as stack:
        # Files, since a pipe that nobody reads yet would hold up the one that fills it.
        printed = [stack.enter_context(TemporaryFile("w+", encoding="utf-8")) for _ in targets]
        children = [
            subprocess.Popen(
                [sys.executable, "-m", "perfci", *rest, "--device", str(target.device.uuid)],
                stdout=output,
                process_group=0,
            )
            for target, output in zip(targets, printed, strict=True)
        ]
        interrupted = _wait(children)
        for target, child, output in zip(targets, children, printed, strict=True):
            output.seek(0)
            click.echo(str(target.device.uuid), err=True)
            click.echo(output.read(), nl=False)
            # A negative code is a signal's: the run did not end, whatever it has shown.
            codes.append(child.returncode if child.returncode >= 0 else int(ExitCode.UNCAUGHT))
    if interrupted:
        raise KeyboardInterrupt
    failed = int(ExitCode.REGRESSION_OR_INCORRECT)
    return failed if failed in codes else max(codes)


def _wait(children: Sequence[subprocess.Popen[bytes]]) -> bool:
    """Wait for all; whether that was interrupted, which all of them have been told."""
    interrupted = False
    for child in children:
        while child.returncode is None:
            try:
                child.wait()
            except KeyboardInterrupt:
                # They have process groups of their own, so that none is told twice.
                for each in children if not interrupted else ():
                    each.send_signal(signal.SIGINT)
                interrupted = True
    return interrupted


def _without_device(arguments: Sequence[str]) -> list[str]:
    kept: list[str] = []
    skip = False
    for each in arguments:
        if skip or each == "--device":
            skip = not skip
        elif not each.startswith("--device="):
            kept.append(each)
    return kept
