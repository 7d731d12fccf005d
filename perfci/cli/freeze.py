"""perfci check --freeze: bounds measured and written instead of variants checked."""

from collections.abc import Sequence

from perfci.cli.options import echo_json, echo_lines
from perfci.config import Config
from perfci.errors import ConfigurationError, ExitCode
from perfci.freezing import freeze as measure_and_write
from perfci.history.plain import plain
from perfci.kernel import Kernel
from perfci.lock import lock_device
from perfci.plan import Target
from perfci.progress import progress
from perfci.reports.bounds import freeze_table
from perfci.selection import Selection
from perfci.workers.passes import PassServer


def freeze(
    kernels: Sequence[Kernel],
    selection: Selection,
    config: Config,
    *,
    target: Target,
    server: PassServer,
    as_json: bool,
) -> int:
    """Freeze the bounds of the chosen cases on a device, and show what changed; the exit code."""
    with progress() as observer, lock_device(target.device):
        made = measure_and_write(
            kernels, selection, config, target=target, server=server, observer=observer
        )
    if not made:
        raise ConfigurationError(
            f"{config.kernels}: nothing to freeze on {target.device.kind} with this selection"
        )
    if as_json:
        echo_json(plain(tuple(made)))
    else:
        echo_lines(freeze_table(made, target.device))
    failed = any(each.failed for each in made)
    return int(ExitCode.REGRESSION_OR_INCORRECT if failed else ExitCode.FINE)
