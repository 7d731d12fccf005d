"""The program: runs the command line and turns errors into one line and an exit code."""

import signal
import sys
import traceback
from types import FrameType
from typing import NoReturn

import click

from perfci.cli import cli
from perfci.errors import ExitCode, PerfciError
from perfci.history.errors import HistoryError
from perfci.streams import give_up_output, secure_streams


def main() -> NoReturn:
    """Run the command line and exit with its code."""
    signal.signal(signal.SIGTERM, _interrupt)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as it is under nohup
        signal.signal(signal.SIGHUP, _interrupt)
    secure_streams()
    code = _run()
    give_up_output()
    sys.exit(code)


def _run() -> int:
    try:
        code = cli.main(prog_name="perfci", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return int(ExitCode.USAGE)
    except (PerfciError, HistoryError) as error:
        click.echo(f"perfci: {error}", err=True)
        return int(error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        click.echo("perfci: interrupted; nothing that was recorded is lost", err=True)
        return int(ExitCode.INTERRUPTED)
    except SystemExit:
        # Click's answer where nobody reads on, as behind `| head`; its code would be a verdict's.
        return int(ExitCode.CLOSED_PIPE)
    except Exception:  # noqa: BLE001 — whatever was not thought of must not look like a verdict
        traceback.print_exc()
        click.echo("perfci: this is a fault of perfci's own; please report it", err=True)
        return int(ExitCode.UNCAUGHT)
    return int(code or 0)


def _interrupt(_signal: int, _frame: FrameType | None) -> NoReturn:
    """Being told to end, or losing the terminal, is treated as Ctrl-C: what is complete is kept."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
