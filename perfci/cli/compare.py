"""perfci compare: two recorded commits, cell by cell."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import click

from perfci.anchors.machine import compare_anchors, without_anchors
from perfci.cli.options import (
    config_of,
    echo_json,
    echo_lines,
    json_option,
    open_to_read,
    store_option,
)
from perfci.config import Config
from perfci.decision.compare import Side, compare, count_checked, find_compared
from perfci.decision.studies import read_floors
from perfci.decision.verdict import exit_code
from perfci.errors import UsageError
from perfci.history.model import Cell, is_anchor
from perfci.history.plain import plain
from perfci.history.stores import Store
from perfci.load import say_load
from perfci.reports.bounds import changes_table, find_bound_changes
from perfci.reports.comparison import comparison_table
from perfci.reports.differences import find_differences
from perfci.runs import runs_of
from perfci.suggest import did_you_mean

_SIDES = ("the baseline", "the contender")


@click.command("compare")
@click.argument("baseline", metavar="A")
@click.argument("contender", metavar="B")
@click.option("--testbed", metavar="NAME", help="Only what was measured on this testbed.")
@click.option(
    "--fail-on",
    type=click.Choice(["inconclusive"]),
    help="Exit with 8 also where a cell is inconclusive.",
)
@click.option("--case", "cases", multiple=True, metavar="NAME", help="Only this case.")
@click.option("--variant", "variants", multiple=True, metavar="NAME", help="Only this variant.")
@click.option("--kernel", "names", multiple=True, metavar="NAME", help="Only this kernel.")
@store_option
@json_option
def command(
    baseline: str,
    contender: str,
    names: tuple[str, ...],
    variants: tuple[str, ...],
    cases: tuple[str, ...],
    testbed: str | None,
    fail_on: str | None,
    store: str | None,
    as_json: bool,  # noqa: FBT001
) -> int:
    r"""Compare what is recorded at commit B with what is recorded at commit A.

    A and B are anything that git understands; SHA+dirty is the newest dirty tree there. A run's id,
    or its beginning with the T, stands for that run alone.

    For each cell: the change of its latency, the interval it lies in, and a verdict. All runs of
    a commit count; where some of both were measured together, these alone. Exits with 1 for a
    regression or a wrong result, 9 where cells are missing.

    Where a cell got slower or faster, it is said what differs in its code and launches. Where that
    is the same, only runs that were measured together say anything of it. Where results are judged
    by other bounds than before, that comes first.

    What the anchors say of the machine is shown beside it, whatever is chosen, and counts for
    nothing.

    \b
    Example:
      perfci compare HEAD~1 HEAD
      perfci compare HEAD HEAD+dirty --kernel mla_attention
      perfci compare v1.0 HEAD --json
      perfci compare 20261130T014330 20261130T014343
    """
    config = config_of(store)
    with open_to_read(config) as history:
        sides = [_side(history, config, each, testbed) for each in (baseline, contender)]
        _refuse_shared(*sides)
        testbeds = {run.environment.testbed for side in sides for run in side.runs}
        floors = read_floors(history, testbeds)
    wanted = {"kernel": names, "variant": variants, "case": cases}
    _refuse_unknown([without_anchors(side) for side in sides], wanted)
    chosen = [replace(side, cells=_chosen(side.cells, wanted)) for side in sides]
    anchors = compare_anchors(*chosen, threshold=config.threshold, floors=floors)
    before, after = (without_anchors(side) for side in chosen)
    differences = find_differences(before, after)
    changes = find_bound_changes(before.cells, after.cells)
    comparisons = compare(before, after, threshold=config.threshold, floors=floors)
    checked = count_checked(before, after)
    load = say_load(dict(zip(_SIDES, find_compared(*chosen), strict=True)))
    if as_json:
        told = [
            {**plain(each), "differences": differences.get(each.key, ())} for each in comparisons
        ]
        echo_json(
            {
                "comparisons": told,
                "anchors": [plain(each) for each in anchors],
                "bounds": [plain(each) for each in changes],
                "checked": checked,
                "load": load,
            }
        )
    else:
        table = comparison_table(comparisons, anchors, differences, load, checked=checked)
        echo_lines([*changes_table(changes), *table])
    return int(exit_code(comparisons, fail_on_inconclusive=fail_on is not None))


def _side(store: Store, config: Config, revision: str, testbed: str | None) -> Side:
    runs = runs_of(store, config.root, revision, testbed=testbed)
    return Side(runs=runs, cells=store.cells(run_ids=[run.run_id for run in runs]))


def _refuse_shared(baseline: Side, contender: Side) -> None:
    """UsageError where a run is on both sides: what is compared with itself shows no change."""
    ids = {run.run_id for run in baseline.runs}
    shared = next((run for run in contender.runs if run.run_id in ids), None)
    if shared is not None:
        raise UsageError(
            f"run {shared.run_id} is on both sides: name two commits, or two other runs"
        )


def _chosen(cells: Sequence[Cell], wanted: Mapping[str, Sequence[str]]) -> list[Cell]:
    """The cells that are asked for, and the anchors, which always are."""
    return [
        cell
        for cell in cells
        if is_anchor(cell.kernel)
        or all(not names or getattr(cell, what) in names for what, names in wanted.items())
    ]


def _refuse_unknown(sides: Sequence[Side], wanted: Mapping[str, Sequence[str]]) -> None:
    for what, names in wanted.items():
        known = {str(getattr(cell, what)) for side in sides for cell in side.cells}
        for name in names:
            if name not in known:
                raise UsageError(
                    f"no {what} '{name}' is recorded on either side {did_you_mean(name, known)}"
                )
