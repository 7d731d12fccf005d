"""perfci check --sanitize: variants under compute-sanitizer instead of against their references."""

import secrets
from collections.abc import Sequence
from datetime import UTC, datetime

from perfci.cli.options import echo_json, echo_lines
from perfci.config import Config
from perfci.errors import ConfigurationError, ExitCode, UsageError
from perfci.history.plain import plain
from perfci.lock import lock_device
from perfci.plan import Target
from perfci.prepare import architectures_for, build_all, prepare_all
from perfci.progress import progress
from perfci.reports.inspections import inspection_table
from perfci.selection import Cell, variants_of, why_skipped
from perfci.tools.sanitizer import Inspection, State, inspect, require_sanitizer
from perfci.workers.passes import PassServer


def sanitize(
    cells: Sequence[Cell], config: Config, *, target: Target, server: PassServer, as_json: bool
) -> int:
    """Build, run under each of the tools, and show what they found; the exit code.

    Peers are left out: what a library does is not ours. Raises UsageError on a CPU.
    """
    if target.device.kind != "cuda":
        raise UsageError(
            "--sanitize is for CUDA kernels, and this is a CPU: name a GPU with --device"
        )
    own = own_cells(cells)
    if all(why_skipped(each, target.device) for each in own):
        raise ConfigurationError(
            f"{config.kernels}: nothing to sanitize on {target.device.model} with this selection"
        )
    program = require_sanitizer()
    logs = config.cache / "sanitizer" / f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(4)}"
    with progress() as observer, lock_device(target.device):
        builds = build_all(variants_of(own), config, architectures_for(config, target), observer)
        prepare_all(own, builds, config, target, server, observer)
        rows = inspect(
            own,
            builds,
            program=program,
            target=target,
            timeout_s=config.timeout_s,
            logs=logs,
            observer=observer,
        )
    if as_json:
        echo_json({"inspections": plain(tuple(rows)), "logs": str(logs)})
    else:
        echo_lines(inspection_table(rows, logs))
    return int(inspection_exit_code(rows))


def own_cells(cells: Sequence[Cell]) -> list[Cell]:
    """The cells of variants that are no peers."""
    return [cell for cell in cells if not cell.variant.declaration.peer]


def inspection_exit_code(rows: Sequence[Inspection]) -> ExitCode:
    """Return what a script is told: the variants' faults come before the tool's."""
    states = {row.state for row in rows}
    if states & {State.FOUND, State.FAILED}:
        return ExitCode.REGRESSION_OR_INCORRECT
    return ExitCode.DEVICE if State.UNPROVED in states else ExitCode.FINE
