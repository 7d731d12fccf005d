"""perfci show: a recorded run."""

import click

from perfci.cli.options import (
    config_of,
    echo_json,
    echo_lines,
    json_option,
    open_to_read,
    store_option,
)
from perfci.history.plain import plain
from perfci.reports.columns import wrap
from perfci.reports.run import run_table
from perfci.runs import find_run
from perfci.tools.profiler import find_reports, profiles_folder


@click.command("show")
@click.argument("sha", required=False)
@click.option("--run", "run_id", metavar="ID", help="This run instead of a commit's newest.")
@click.option("--testbed", metavar="NAME", help="The newest run of this testbed.")
@store_option
@json_option
def command(
    sha: str | None,
    run_id: str | None,
    testbed: str | None,
    store: str | None,
    as_json: bool,  # noqa: FBT001
) -> None:
    r"""Show the newest run recorded at a commit, or the newest of all.

    SHA is anything that git understands. SHA+dirty is the newest run of a dirty tree. A run's id,
    or its beginning with the T, stands for that run.

    A latency is a trimmed mean over passes: each weighs the same, and from five on the highest
    and the lowest fifth are cut. A ! before it says that some lie far from it; a table says where.

    \b
    Example:
      perfci show
      perfci show HEAD~1
      perfci show HEAD+dirty --json
      perfci show 20261130T044328-279eb1df
    """
    config = config_of(store)
    with open_to_read(config) as history:
        run = find_run(history, config.root, revision=sha, run_id=run_id, testbed=testbed)
        if as_json:
            echo_json(plain(history.run(run.run_id)))
            return
        echo_lines(run_table(run, history.cells(run_ids=[run.run_id])))
    folder = profiles_folder(config, run.run_id)
    if reports := find_reports(folder):
        echo_lines(["", *wrap(f"profiles: {len(reports)} in {folder}", indent=0)])
