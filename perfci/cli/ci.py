"""perfci ci: what a pipeline calls, from an event to a verdict."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from perfci.ci.admission import admit as judge_admission
from perfci.ci.event import Provider
from perfci.ci.measurement import Task, measure_event, open_parcel
from perfci.ci.outputs import write_outputs
from perfci.ci.plan import make_plan, output_values
from perfci.ci.providers import find_provider, read_event
from perfci.ci.settings import CiSettings, is_runner
from perfci.cli.ci_job import find_job, inputs_option
from perfci.cli.ci_report import merge, report
from perfci.cli.options import (
    device_option,
    echo_json,
    echo_lines,
    json_option,
    kernels_option,
)
from perfci.config import inherited_environment
from perfci.errors import ExitCode, UsageError
from perfci.history.plain import plain
from perfci.history.text import one_line
from perfci.reports.plan import plan_text


@click.group("ci")
def command() -> None:
    r"""Act on an event of continuous integration: what a pipeline calls.

    The event is read from the variables of GitHub or GitLab; under neither, as in a cron job, what
    is checked out is looked at as by a schedule.

    \b
    Example:
      perfci ci plan                       what is to be done, and why
      perfci ci measure --runner h200 --out parcel
      perfci ci merge parcels --out verdict
    """


@command.command("plan")
@inputs_option
@kernels_option
@json_option
def plan(inputs: tuple[str, ...], kernels: str | None, as_json: bool) -> int:  # noqa: FBT001
    r"""Say what is to be done about the event, between which commits, and why.

    A shallow clone is deepened as far as that takes. On GitHub act, base, head, runners (a JSON
    list), admitted, attempt and reason become the step's outputs.

    \b
    Example:
      perfci ci plan
      perfci ci plan --input act=backfill --input range=v1.0..main
    """
    job = find_job(inputs, kernels)
    made = make_plan(job.event, job.root, job.config)
    if job.event.provider is Provider.GITHUB and job.variables.get("GITHUB_OUTPUT"):
        values = output_values(made, attempt=job.event.attempt)
        write_outputs(Path(job.variables["GITHUB_OUTPUT"]), values)
    if as_json:
        echo_json(plain(made))
    else:
        echo_lines(plan_text(made))
    return int(ExitCode.FINE)


@command.command("admit")
@click.option(
    "--label",
    metavar="NAME",
    default=CiSettings().approval_label,
    show_default=True,
    help="The label that approves a fork's commit.",
)
@click.option(
    "--repository",
    "repositories",
    multiple=True,
    metavar="OWNER/NAME",
    help="Only events of this repository.",
)
def admit(label: str, repositories: tuple[str, ...]) -> int:
    r"""Say whether the event may use this machine; exit with 2 where it may not.

    For the hook that a self-hosted runner runs before a job (ACTIONS_RUNNER_HOOK_JOB_STARTED),
    which lies on the machine: a workflow can be edited by the pull request that it is to keep out.
    No file of the checkout is read, nor any setting.

    \b
    Example:
      perfci ci admit --repository example/kernels
    """
    variables = inherited_environment()
    if find_provider(variables) is Provider.PLAIN:
        raise UsageError("this is no job of GitHub's or GitLab's: there is nothing to admit")
    event = read_event(variables, Path.cwd())
    admission = judge_admission(event, label=label, repositories=repositories)
    if not admission.is_admitted:
        raise UsageError(f"not admitted: {admission.reason}")
    click.echo(f"admitted: {admission.reason}")
    return int(ExitCode.FINE)


@command.command("measure")
@click.option(
    "--runner", metavar="NAME", help="What this runner is called (default: the one that is asked)."
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="The folder for the parcel, an empty one.",
)
@click.option(
    "--store",
    metavar="URL",
    help="A store with studies of noise, which gates go by; it is only read.",
)
@device_option
@inputs_option
@kernels_option
def measure(
    runner: str | None,
    out: Path,
    store: str | None,
    device: str | None,
    inputs: tuple[str, ...],
    kernels: str | None,
) -> int:
    r"""Do on this runner what is to be done about the event; leave a parcel of it.

    The parcel is a folder: parcel.json, run files, logs. It is left also where something fails,
    and says then what. The code that is measured sees no token and no file of the pipeline's.

    Exits with the worst exit code of what was run.

    \b
    Example:
      perfci ci measure --runner h200 --out parcel
      perfci ci measure --out parcel --input act=run --device cpu
    """
    if runner is not None and not is_runner(runner):
        raise UsageError(f"--runner {runner}: letters, digits, '_', '.' and '-', 100 at most")
    job = find_job(inputs, kernels, store)
    open_parcel(out)
    task = Task(
        event=job.event,
        runner=runner or "",
        root=job.root,
        folder=job.config.root,
        out=out.resolve(),
        device=device,
        kernels=job.kernels,
        store=job.store,
    )
    with _unspoken(job.event.provider):
        parcel = measure_event(task, job.config, say=_say)
        if parcel.error:
            _say(f"perfci: {parcel.error}")
    return parcel.exit_code


def _say(line: str) -> None:
    click.echo(one_line(line, limit=1000), err=True)


@contextmanager
def _unspoken(provider: Provider) -> Iterator[None]:
    """Have GitHub take nothing that is printed for a command of its own, as `::error::` is."""
    if provider is not Provider.GITHUB:
        yield
        return
    mark = f"perfci-{secrets.token_hex(16)}"
    click.echo(f"::stop-commands::{mark}", err=True)
    try:
        yield
    finally:
        click.echo(f"::{mark}::", err=True)


command.add_command(merge)
command.add_command(report)
