"""perfci compare: two recorded commits, cell by cell."""

import click

from perfci.cli.options import config_of, echo_json, echo_lines, json_option, store_option
from perfci.compare import Side, compare
from perfci.config import Config
from perfci.history.plain import plain
from perfci.history.stores import Store, open_store
from perfci.reports.text import comparison_table
from perfci.runs import runs_at
from perfci.verdict import exit_code


@click.command("compare")
@click.argument("baseline", metavar="A")
@click.argument("contender", metavar="B")
@click.option("--testbed", metavar="NAME", help="Only what was measured on this testbed.")
@click.option(
    "--fail-on",
    type=click.Choice(["inconclusive"]),
    help="Exit with 8 also where a cell is inconclusive.",
)
@store_option
@json_option
def command(
    baseline: str,
    contender: str,
    testbed: str | None,
    fail_on: str | None,
    store: str | None,
    as_json: bool,  # noqa: FBT001
) -> int:
    r"""Compare what is recorded at commit B with what is recorded at commit A.

    For each cell: the change of its latency, the interval it lies in, and a verdict. All runs of
    a commit count. Exits with 1 for a regression or a wrong result, 9 where cells are missing.

    \b
    Example:
      perfci compare HEAD~1 HEAD
      perfci compare v1.0 HEAD+dirty --json
    """
    config = config_of(store)
    with open_store(config.store) as history:
        comparisons = compare(
            _side(history, config, baseline, testbed),
            _side(history, config, contender, testbed),
            threshold=config.threshold,
        )
    if as_json:
        echo_json([plain(each) for each in comparisons])
    else:
        echo_lines(comparison_table(comparisons))
    return int(exit_code(comparisons, fail_on_inconclusive=fail_on is not None))


def _side(store: Store, config: Config, revision: str, testbed: str | None) -> Side:
    runs = runs_at(store, config.root, revision, testbed=testbed)
    return Side(runs=runs, cells=store.cells(run_ids=[run.run_id for run in runs]))
