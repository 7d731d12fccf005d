"""The command line: one module a command, imported only when that command is asked for."""

from importlib import import_module

import click

from perfci import __version__

COMMANDS = {
    "doctor": ("perfci.cli.doctor", "Say what is here, what is missing and what to do."),
    "list": ("perfci.cli.list", "List kernels, their variants and cases."),
    "build": ("perfci.cli.build", "Compile the variants that have changed."),
    "check": ("perfci.cli.check", "Check variants against their references."),
    "selftest": ("perfci.cli.selftest", "See whether perfci catches what it is there to catch."),
    "run": ("perfci.cli.run", "Build, check, time and record by commit."),
    "noise": ("perfci.cli.noise", "Measure how far a testbed lies from itself."),
    "profile": ("perfci.cli.profile", "Profile variants with Nsight Compute."),
    "show": ("perfci.cli.show", "Show a recorded run."),
    "explain": ("perfci.cli.explain", "Explain a kernel by its figures in a recorded run."),
    "compare": ("perfci.cli.compare", "Compare two recorded commits, cell by cell."),
    "gate": ("perfci.cli.gate", "Judge a head by its base, cell by cell."),
    "baseline": ("perfci.cli.baseline", "Pin the commit that later ones are held against."),
    "bisect": ("perfci.cli.bisect", "Find the commit that made a cell slower or wrong."),
    "ci": ("perfci.cli.ci", "Act on an event of continuous integration."),
    "history": ("perfci.cli.history", "List, export, import, sync recorded runs."),
    "serve": ("perfci.cli.serve", "Serve the dashboard."),
}
"""Name → module and short help; the command in a module is called ``command``."""


class LazyGroup(click.Group):
    """A group that imports a command's module when the command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """The commands, in the order in which they are of use."""
        return [*COMMANDS]  # once its module is imported, `list` is a command here

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command of that name."""
        if cmd_name not in COMMANDS:
            return None
        return _with_examples(import_module(COMMANDS[cmd_name][0]).command)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The list of commands, from the short helps above."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


def _with_examples(command: click.Command) -> click.Command:
    """The command with its examples on lines of their own.

    Its docstring is raw, so that click's mark for lines that stay as they are, a backspace, is
    there as two characters.
    """
    command.help = (command.help or "").replace("\\b\n", "\b\n")
    if isinstance(command, click.Group):
        for each in command.commands.values():
            _with_examples(each)
    return command


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="perfci")
def cli() -> None:
    r"""Continuous integration for GPU kernel performance.

    Builds and runs kernels on each commit against their PyTorch references, records correctness
    and latency by git SHA, and shows what became slower.

    \b
    Example:
      perfci doctor             what is here, what is missing
      perfci run                build, check, time and record
      perfci compare HEAD~1 HEAD
      perfci serve              look at it in a browser

    \b
    Exit codes: 0 fine, 1 regression or incorrect, 2 usage, 3 configuration,
    4 build environment, 5 device, 6 store, 7 incomparable, 8 inconclusive,
    9 missing cells, 70 a fault of perfci's own, 130 interrupted,
    141 output unread.
    """


_with_examples(cli)
