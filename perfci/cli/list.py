"""perfci list: kernels, their variants and cases."""

import click

from perfci.cli.options import config_of, echo_json, echo_lines, json_option, kernels_option
from perfci.kernel import Kernel, discover
from perfci.reports.text import kernel_list


@click.command("list")
@kernels_option
@json_option
def command(kernels: str | None, as_json: bool) -> None:  # noqa: FBT001
    r"""List kernels, their variants and cases.

    \b
    Example:
      perfci list
      perfci list --json
    """
    found = discover(config_of(kernels=kernels).kernels)
    if as_json:
        echo_json([_plain(kernel) for kernel in found])
    else:
        echo_lines(kernel_list(found))


def _plain(kernel: Kernel) -> dict[str, object]:
    return {
        "kernel": kernel.name,
        "variants": [
            {"name": v.name, "kind": v.kind, "devices": v.declaration.devices}
            for v in kernel.variants
        ],
        "controls": [control.name for control in kernel.controls],
        "cases": [
            {
                "name": case.name,
                "timed": case.timed,
                "tier": case.tier,
                "dtype": case.dtype,
                "devices": case.devices,
                "arguments": dict(case.arguments),
            }
            for case in kernel.cases
        ],
    }
