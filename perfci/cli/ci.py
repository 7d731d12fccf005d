"""perfci ci: what a pipeline calls, from an event to a verdict."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import click

from perfci.ci.act import Act
from perfci.ci.admission import admit as judge_admission
from perfci.ci.event import Provider
from perfci.ci.measurement import RECORDED, Task, measure_event, open_parcel
from perfci.ci.outputs import write_outputs
from perfci.ci.parcel import Parcel
from perfci.ci.plan import make_plan, output_values
from perfci.ci.providers import find_provider, read_event
from perfci.ci.settings import CiSettings, is_runner
from perfci.ci.terminal import plan_text
from perfci.cli.ci_job import Job, find_job, inputs_option
from perfci.cli.ci_report import merge, merge_parcels, report
from perfci.cli.keeping import keep
from perfci.cli.options import (
    device_option,
    echo_json,
    echo_lines,
    has_store,
    json_option,
    kernels_option,
    open_to_record,
    store_option,
)
from perfci.config import inherited_environment
from perfci.errors import ExitCode, UsageError
from perfci.history.codec import read_run_file
from perfci.history.plain import plain
from perfci.history.text import one_line

_runner_option = click.option(
    "--runner", metavar="NAME", help="What this runner is called (default: the one that is asked)."
)


@click.group("ci", invoke_without_command=True)
@_runner_option
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="The folder for parcel and verdict, an empty one (default: a new one in .perfci/ci).",
)
@device_option
@inputs_option
@kernels_option
@store_option
@click.pass_context
def command(
    ctx: click.Context,
    runner: str | None,
    out: Path | None,
    device: str | None,
    inputs: tuple[str, ...],
    kernels: str | None,
    store: str | None,
) -> int:
    r"""Act on an event of continuous integration: what a pipeline calls.

    The event is read from the variables of GitHub or GitLab; under neither, as in a cron job, what
    is checked out is looked at as by a schedule.

    By itself it does all of it here, in one job: plans, measures, records what is of a branch's
    history, and exits with the verdict. Where several runners measure, or code of forks, each
    command has a job of its own.

    \b
    Example:
      perfci ci                            all of it, as in a cron job
      perfci ci plan                       what is to be done, and why
      perfci ci measure --runner h200 --out parcel
      perfci ci merge parcels --out verdict
    """
    if ctx.invoked_subcommand is not None:
        if any((runner, out, device, inputs, kernels, store)):
            raise UsageError(f"give options behind the command: perfci ci {ctx.invoked_subcommand}")
        return int(ExitCode.FINE)
    job = find_job(inputs, kernels, store)
    made = make_plan(job.event, job.root, job.config)
    folder = out or job.config.root / ".perfci" / "ci" / f"{datetime.now(UTC):%Y%m%dT%H%M%S}"
    if made.act is Act.NOTHING:
        open_parcel(folder)
    else:
        # Before the folder, since a store has git ignore the folder that was not there before it.
        with open_to_record(job.config) as history:
            open_parcel(folder)
            known = job.config.store if has_store(job.config) else None
            parcel = _measure(job, runner, folder / "parcel", device, store=known)
            for name in parcel.runs if made.act in RECORDED else ():
                keep(read_run_file(folder / "parcel" / name), history, None)
    _say(f"kept in {folder}")
    return merge_parcels(job, made, [folder], folder)


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
@_runner_option
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
    job = find_job(inputs, kernels, store)
    store = job.store
    if store and not has_store(job.config):
        # What syncs it before a job has none where nothing was recorded, or no remote answers.
        _say(f"{store}: not there yet, so that gates know of no study of noise")
        store = None
    return _measure(job, runner, out, device, store=store).exit_code


def _measure(
    job: Job, runner: str | None, out: Path, device: str | None, *, store: str | None
) -> Parcel:
    """Leave a parcel in a new folder."""
    if runner is not None and not is_runner(runner):
        raise UsageError(f"--runner {runner}: letters, digits, '_', '.' and '-', 100 at most")
    open_parcel(out)
    task = Task(
        event=job.event,
        runner=runner or "",
        root=job.root,
        folder=job.config.root,
        out=out.resolve(),
        device=device,
        kernels=job.kernels,
        store=store,
    )
    with _unspoken(job.event.provider):
        parcel = measure_event(task, job.config, say=_say)
        if parcel.error:
            _say(f"perfci: {parcel.error}")
    return parcel


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
