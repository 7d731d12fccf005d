"""perfci explain: how far each variant of a kernel is from what the device can do."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import click

from perfci.cli.options import (
    config_of,
    echo_json,
    echo_lines,
    json_option,
    kernels_option,
    open_to_read,
    store_option,
)
from perfci.config import Config
from perfci.errors import ConfigurationError, MissingError
from perfci.explain import Explanation, KnownCases, explain
from perfci.history.model import Cell, RunSummary, is_anchor
from perfci.history.plain import plain
from perfci.kernel import discover
from perfci.reports.explain import explanation_table
from perfci.runs import find_run
from perfci.suggest import did_you_mean


@click.command("explain")
@click.argument("kernel")
@click.argument("sha", required=False)
@click.option("--variant", "variant", metavar="NAME", help="This variant alone, in full.")
@click.option("--run", "run_id", metavar="ID", help="This run instead of a commit's newest.")
@click.option("--testbed", metavar="NAME", help="The newest run of this testbed.")
@kernels_option
@store_option
@json_option
def command(
    kernel: str,
    sha: str | None,
    variant: str | None,
    run_id: str | None,
    testbed: str | None,
    kernels: str | None,
    store: str | None,
    as_json: bool,  # noqa: FBT001
) -> None:
    r"""Explain a kernel by its figures in the newest run, or in the newest at a commit.

    For each case: what it must move and compute, the floor that the device has for it by the
    run's own anchors, and what binds it; for each variant how much of the floor it reaches, its
    error beside the library's, and the kernels that a call launches. Needs neither torch nor GPU.

    \b
    Example:
      perfci explain mla_attention
      perfci explain mla_kv_projection --variant tiled
      perfci explain mla_attention HEAD~1 --json
    """
    config = config_of(store, kernels)
    with open_to_read(config) as history:
        run = find_run(history, config.root, revision=sha, run_id=run_id, testbed=testbed)
        cells = history.cells(run_ids=[run.run_id])
    _require_recorded(run, cells, kernel, variant)
    explanation = explain(run, kernel, cells, _cases_at_hand(config, kernel))
    if variant is not None:
        explanation = _only(explanation, variant)
    if as_json:
        echo_json(_plain(explanation))
    else:
        echo_lines(explanation_table(explanation, detailed=variant is not None))


def _require_recorded(
    run: RunSummary, cells: Sequence[Cell], kernel: str, variant: str | None
) -> None:
    timed = [cell for cell in cells if cell.contract is not None]
    if not any(cell.kernel == kernel for cell in timed):
        hint = did_you_mean(kernel, {cell.kernel for cell in timed if not is_anchor(cell.kernel)})
        raise MissingError(f"run {run.run_id} has timed no kernel '{kernel}' {hint}")
    variants = {cell.variant for cell in timed if cell.kernel == kernel}
    if variant is not None and variant not in variants:
        hint = did_you_mean(variant, variants)
        raise MissingError(f"run {run.run_id} has timed no variant '{variant}' of {kernel} {hint}")


def _cases_at_hand(config: Config, kernel: str) -> KnownCases:
    """The cases of the kernel in the folder here; none where it is not there or is wrong."""
    try:
        found = [each for each in discover(config.kernels) if each.name == kernel]
    except ConfigurationError:
        return {}
    return {(case.name, each.workload_digest(case)): case for each in found for case in each.cases}


def _only(explanation: Explanation, variant: str) -> Explanation:
    """The explanation of one variant, at the cases that it was timed at."""
    cases = [
        replace(table, variants=tuple(each for each in table.variants if each.variant == variant))
        for table in explanation.cases
    ]
    return replace(
        explanation,
        cases=tuple(each for each in cases if each.variants),
        failed_checks=tuple(e for e in explanation.failed_checks if e.variant == variant),
    )


def _plain(explanation: Explanation) -> Any:
    """The explanation as JSON values, pairs of names and values as objects."""
    document = plain(explanation)
    for peaks in document["peaks"]:
        peaks["flops_per_s"] = dict(peaks["flops_per_s"])
    for table in document["cases"]:
        if table["arguments"] is not None:
            table["arguments"] = dict(table["arguments"])
    return document
