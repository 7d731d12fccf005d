"""perfci doctor: what is here, what is missing and what to do."""

from dataclasses import asdict

import click

from perfci.cli.options import (
    config_of,
    echo_json,
    echo_lines,
    json_option,
    kernels_option,
    store_option,
)
from perfci.doctor import examine
from perfci.errors import ExitCode
from perfci.reports.findings import findings_table


@click.command("doctor")
@kernels_option
@store_option
@json_option
def command(kernels: str | None, store: str | None, as_json: bool) -> int:  # noqa: FBT001
    r"""Say what is here, what is missing and what to do.

    Exits with the code that a run would end with because of what is missing.

    \b
    Example:
      perfci doctor
      perfci doctor --json
    """
    findings = list(examine(config_of(store, kernels)))
    if as_json:
        echo_json([asdict(each) for each in findings])
    else:
        echo_lines(findings_table(findings))
    broken = [each.code for each in findings if each.code is not ExitCode.FINE]
    return int(broken[0] if broken else ExitCode.FINE)
