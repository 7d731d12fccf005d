"""perfci show: a recorded run."""

import click

from perfci.cli.options import config_of, echo_json, echo_lines, json_option, store_option
from perfci.errors import MissingError, UsageError
from perfci.history.plain import plain
from perfci.history.stores import Store, open_store
from perfci.profiler import find_reports, profiles_folder
from perfci.reports.columns import wrap
from perfci.reports.run import run_table
from perfci.runs import runs_at


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

    SHA is anything that git understands. SHA+dirty is the newest run of a dirty tree.

    \b
    Example:
      perfci show
      perfci show HEAD~1
      perfci show HEAD+dirty --json
    """
    if run_id is not None and (sha or testbed):
        raise UsageError("--run names a run by itself; leave out SHA and --testbed")
    config = config_of(store)
    with open_store(config.store) as history:
        if run_id is None:
            run_id = _newest(history, testbed) if sha is None else None
        if run_id is None:
            run_id = runs_at(history, config.root, sha or "", testbed=testbed)[0].run_id
        if as_json:
            echo_json(plain(history.run(run_id)))
            return
        run = history.run(run_id)
        summary = next(
            each for each in history.runs(sha_prefix=run.commit.sha) if each.run_id == run.run_id
        )
        echo_lines(run_table(summary, history.cells(run_ids=[run.run_id])))
    folder = profiles_folder(config, run.run_id)
    if reports := find_reports(folder):
        echo_lines(["", *wrap(f"profiles: {len(reports)} in {folder}", indent=0)])


def _newest(store: Store, testbed: str | None) -> str:
    newest = store.runs(testbed=testbed, limit=1)
    if not newest:
        of = f" of testbed '{testbed}'" if testbed else ""
        raise MissingError(f"{store.url} holds no runs{of} yet: record one with perfci run")
    return newest[0].run_id
