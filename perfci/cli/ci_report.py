"""perfci ci merge and report: one verdict over all runners, and what is said of it on GitHub."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from perfci.ci.attempt import GITHUB, Attempt, is_url, own_attempt, read_attempt
from perfci.ci.comment import LONGEST_BYTES, Place, write_markdown, write_title
from perfci.ci.conclusion import conclude
from perfci.ci.entries import folders_in, is_there
from perfci.ci.event import Provider
from perfci.ci.merging import Ruling, find_parcels, rule_plan
from perfci.ci.outputs import write_outputs
from perfci.ci.patience import Patience
from perfci.ci.plan import Plan, make_plan
from perfci.ci.providers import find_provider, read_event
from perfci.ci.summary import LONGEST_BYTES as LONGEST_SUMMARY_BYTES
from perfci.ci.summary import write_summary
from perfci.ci.terminal import ruling_text
from perfci.ci.trust import ACTS, is_about
from perfci.ci.verdict_file import FILE, VerdictFile, read_verdict_file, write_verdict_file
from perfci.cli.ci_job import Job, find_job, find_root, inputs_option
from perfci.cli.options import config_of, echo_lines, kernels_option, make_folder
from perfci.config import Config, inherited_environment
from perfci.errors import ConfigurationError, ExitCode, ParcelError, UsageError
from perfci.history.text import one_line

if TYPE_CHECKING:
    from perfci.ci.reporting import Reporter

COMMENT_FILE = "comment.md"
_API = "https://api.github.com"


@click.command("merge")
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="The folder for verdict.json and comment.md.",
)
@inputs_option
@kernels_option
def merge(
    folders: tuple[Path, ...], out: Path, inputs: tuple[str, ...], kernels: str | None
) -> int:
    r"""Make one verdict of the parcels of all runners.

    A folder is a parcel or holds parcels. A runner that has left none, or one of another commit,
    run or attempt, is missing, by name, and then nothing is green.

    Writes verdict.json and comment.md, on GitHub also the job's summary and, as outputs of the
    step, verdict and title. Exits with what the verdict amounts to: 1 where anything is slower or
    incorrect, else the highest exit code of any runner, 9 for one that is missing.

    \b
    Example:
      perfci ci merge parcels --out verdict
    """
    job = find_job(inputs, kernels)
    if job.event.provider is Provider.PLAIN:
        _require_folders(folders)
    make_folder(out)
    return merge_parcels(job, make_plan(job.event, job.root, job.config), folders, out)


def _require_folders(folders: Sequence[Path]) -> None:
    """Raise UsageError of a folder that is mistyped.

    In a pipeline of a provider's a folder is not there where no runner has handed anything in.
    """
    for each in folders:
        if not is_there(each):
            raise UsageError(f"{one_line(str(each))}: no such folder; name those with parcels")


def merge_parcels(job: Job, plan: Plan, folders: Sequence[Path], out: Path) -> int:
    """Make one verdict of parcels, say it and write it into a folder; the exit code."""
    ruling = rule_plan(plan, job.event, find_parcels(folders))
    place = Place(check=_name_check(job.config, job.root), url=_find_url(job))
    write_verdict_file(out, ruling)
    _write(out / COMMENT_FILE, write_markdown(ruling, place, longest_bytes=LONGEST_BYTES))
    if job.event.provider is Provider.GITHUB:
        _tell_job(job.variables, ruling, place)
    echo_lines([*ruling_text(ruling), f"  the whole of it: {one_line(str(out / COMMENT_FILE))}"])
    return ruling.exit_code


@click.command("report")
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@click.option("--started", is_flag=True, help="Say that the verdict is being worked on.")
def report(folder: Path | None, started: bool) -> int:  # noqa: FBT001
    r"""Say on GitHub, in one check run and one comment, what a workflow has come to.

    For a workflow that GitHub starts by workflow_run: --started when the measuring one is
    requested or in progress, the folder with its artefacts (parcels, verdict.json) when it has
    completed. Where no forks are measured, a job of the measuring workflow may call it too. Commit
    and attempt are the event's, the pull request is the one that GitHub has of them; what a fork
    hands over counts only where a member has approved this very run.

    Needs GITHUB_TOKEN with checks: write and pull-requests: write. What GitHub does not take is
    said on standard error, stands in the job's summary and changes no verdict. Exits with 0
    whatever the verdict, since GitHub shows this job at the default branch; merge is what fails.

    \b
    Example:
      perfci ci report --started
      perfci ci report artefacts
    """
    if started == (folder is not None):
        raise UsageError("give either --started or the folder with the artefacts of the run")
    variables = inherited_environment()
    attempt = _find_attempt(variables)
    if attempt.kind not in ACTS:
        click.echo(f"of a {one_line(attempt.kind, limit=60)} there is no check: nothing to say")
        return int(ExitCode.FINE)
    with _reporter_of(attempt, variables) as reporter:
        if folder is None:
            reporter.start()
            click.echo(f"attempt {attempt.attempt} at {attempt.head[:10]} is being measured")
            return int(ExitCode.FINE)
        ruling = reporter.end(_find_claim(folder, attempt), find_parcels([folder]))
        _summarise(variables, reporter.write(ruling, LONGEST_SUMMARY_BYTES))
    echo_lines(ruling_text(ruling))
    return int(ExitCode.FINE)


@contextmanager
def _reporter_of(attempt: Attempt, variables: Mapping[str, str]) -> Iterator["Reporter"]:
    """What says on GitHub what is to be said of an attempt."""
    try:
        from perfci.ci.github import Access, Repository  # noqa: PLC0415 — an extra of its own
        from perfci.ci.reporting import Project, Reporter  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name != "github":
            raise
        raise ConfigurationError("PyGithub is not here: pip install 'perfci[ci]'") from None
    config = config_of()
    root = find_root(config)
    token = variables.get("GITHUB_TOKEN")
    if not token:
        raise ConfigurationError(
            "GITHUB_TOKEN is not set: give it to the step (env: GITHUB_TOKEN: ${{ github.token }})"
        )
    api_url = variables.get("GITHUB_API_URL") or _API
    access = Access(api_url=api_url, repository=attempt.repository, token=token)
    with Repository(access) as repository:
        yield Reporter(
            repository=repository,
            patience=Patience(),
            attempt=attempt,
            project=Project(
                check=_name_check(config, root),
                settings=config.ci,
                kernels=_inside(config.kernels, root),
                folder=_inside(config.root, root),
                environment=config.environment,
            ),
            complain=_complain,
        )


def _find_attempt(variables: Mapping[str, str]) -> Attempt:
    """The attempt that GitHub's event tells of, or that this job is of. Raises UsageError."""
    if find_provider(variables) is not Provider.GITHUB:
        raise UsageError("perfci ci report is for a job of GitHub's: GITHUB_ACTIONS is not set")
    server_url = variables.get("GITHUB_SERVER_URL") or GITHUB
    if variables.get("GITHUB_EVENT_NAME") == "workflow_run":
        return read_attempt(Path(variables.get("GITHUB_EVENT_PATH", "")), server_url=server_url)
    return own_attempt(read_event(variables, Path.cwd()), server_url=server_url)


def _find_claim(folder: Path, attempt: Attempt) -> VerdictFile | None:
    """What the measured workflow says itself; None where it says nothing that can be read."""
    found = []
    for each in (folder, *folders_in(folder)):
        if not is_there(each / FILE):
            continue
        try:
            found.append(read_verdict_file(each / FILE))
        except ParcelError as error:
            _complain(str(error))
    own = [each for each in found if is_about(each, attempt)]
    return own[0] if len(own) == 1 else None


def _name_check(config: Config, root: Path) -> str:
    """What check and comment are called: of each project in a repository otherwise."""
    folder = _inside(config.root, root)
    return "perfci" if folder == "." else f"perfci ({folder})"


def _inside(path: Path, root: Path) -> str:
    """A folder from the top of the repository; one that is outside matches nothing."""
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else "/"


def _find_url(job: Job) -> str:
    """Where the run is to be seen; empty where no provider says so."""
    if job.event.provider is Provider.GITHUB:
        server = job.variables.get("GITHUB_SERVER_URL") or GITHUB
        url = f"{server}/{job.event.repository}/actions/runs/{job.event.run_id}"
    else:
        url = job.variables.get("CI_PIPELINE_URL", "")
    return url if is_url(url) else ""


def _tell_job(variables: Mapping[str, str], ruling: Ruling, place: Place) -> None:
    """Say on the page of a job of GitHub's, and to the steps after this one, what it came to."""
    _summarise(variables, write_markdown(ruling, place, longest_bytes=LONGEST_SUMMARY_BYTES))
    if variables.get("GITHUB_OUTPUT"):
        values = {"verdict": conclude(ruling).value, "title": write_title(ruling)}
        write_outputs(Path(variables["GITHUB_OUTPUT"]), values)


def _summarise(variables: Mapping[str, str], text: str) -> None:
    path = variables.get("GITHUB_STEP_SUMMARY")
    problem = write_summary(Path(path), text) if path else ""
    if problem:
        _complain(problem)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None


def _complain(problem: str) -> None:
    click.echo(f"perfci: {one_line(problem, limit=400)}", err=True)
