"""perfci run: build, check, time and record by commit."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import click

from perfci import recording, units
from perfci.cli.keeping import Keeper, count_attempts, say_cut_off
from perfci.cli.options import (
    config_of,
    device_option,
    echo_json,
    echo_lines,
    json_option,
    kernels_option,
    make_folder,
    open_to_record,
    read_passes,
    selection_of,
    selection_options,
    server_of,
    store_option,
)
from perfci.cli.record import choose_cells, say_interrupted, say_unwatched
from perfci.cli.side_by_side import run_side_by_side
from perfci.config import Config
from perfci.decision.precision import Precision
from perfci.decision.verdict import run_exit_code
from perfci.device import environment, find_targets, has_gpu_driver, why_no_gpu
from perfci.errors import ConfigurationError, ExitCode, UsageError
from perfci.history import commits
from perfci.history.model import Run
from perfci.history.plain import plain
from perfci.history.stores import Store
from perfci.history.summary import cell, run_summary
from perfci.lock import lock_device
from perfci.plan import Target
from perfci.progress import progress
from perfci.recording import Subject
from perfci.reports.run import run_table
from perfci.run import Measured, measure
from perfci.selection import Selection, select
from perfci.workers.passes import PassServer

_BUDGET_MIN = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """What the command line asks for, resolved."""

    config: Config
    selection: Selection
    server: PassServer
    targets: tuple[Target, ...]
    passes: int | Precision
    trigger: str
    out: Path | None
    as_json: bool


@click.command("run")
@selection_options
@device_option
@click.option(
    "--passes",
    callback=read_passes,
    metavar="N|auto",
    help="Fresh processes to measure in; auto: until every latency is known.",
)
@click.option(
    "--budget",
    "budget_min",
    type=click.FloatRange(0, min_open=True),
    metavar="MINUTES",
    help=f"What --passes auto may take of a device (default: {_BUDGET_MIN:g}).",
)
@click.option(
    "--commit",
    "revision",
    metavar="REV",
    help="Measure this commit in a temporary worktree; outside of a repository: the SHA of what "
    "lies here.",
)
@click.option(
    "--range", "span", metavar="A..B", help="Measure the commits after A up to B, oldest first."
)
@click.option("--again", is_flag=True, help="With --range: also what is recorded already.")
@click.option(
    "--cases-from",
    type=click.Choice(["here", "commit"]),
    default="here",
    show_default=True,
    help="Whose references and cases judge other commits.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Write a run file instead of recording, from the first complete pass on; with --range or "
    "several devices a folder.",
)
@kernels_option
@store_option
@json_option
def command(
    names: tuple[str, ...],
    variants: tuple[str, ...],
    cases: tuple[str, ...],
    tier: str,
    device: str | None,
    passes: int | Literal["auto"] | None,
    budget_min: float | None,
    revision: str | None,
    span: str | None,
    again: bool,  # noqa: FBT001
    cases_from: str,
    out: Path | None,
    kernels: str | None,
    store: str | None,
    as_json: bool,  # noqa: FBT001
) -> int:
    r"""Build, check, time and record kernels, filed under their commit.

    Without --commit or --range the working tree is measured; where it differs from HEAD, the run
    is kept apart from the commit's.

    \b
    Example:
      perfci run
      perfci run --kernel mla_attention --passes 10
      perfci run --passes auto --budget 5
      perfci run --range HEAD~5..HEAD
      perfci run --out ../run.json.gz
    """
    _refuse_clashes(
        revision, span, again=again, cases_from=cases_from, passes=passes, budget_min=budget_min
    )
    config = config_of(store, kernels, passes=None if passes == "auto" else passes)
    server = server_of(config)
    request = _Request(
        config=config,
        selection=selection_of(names, variants, cases, tier),
        server=server,
        targets=tuple(find_targets(device, server.probe_gpus)),
        passes=Precision(target=config.precision, budget_s=60 * (budget_min or _BUDGET_MIN))
        if passes == "auto"
        else config.passes,
        trigger="range" if span else config.trigger,
        out=out,
        as_json=as_json,
    )
    if device is None and has_gpu_driver() and request.targets[0].device.kind == "cpu":
        click.echo(f"measuring the CPU: {why_no_gpu()}", err=True)
    if config.side_by_side and len(request.targets) > 1:
        if out is not None:
            make_folder(out)
        return run_side_by_side(request.targets, sys.argv[1:])
    with _opened(request) as history:
        root = commits.repository_root(config.kernels if config.kernels.is_dir() else config.root)
        if root is None or not (revision or span):
            if span:
                raise UsageError(f"{config.root} is in no git repository: --range needs one")
            return _record(request, history, recording.here(config, revision))
        shas = commits.commit_range(root, span) if span else [commits.resolve(root, revision or "")]
        return _record_commits(
            request,
            history,
            root,
            shas,
            again=again or not span,
            own_cases=cases_from == "commit",
        )


def _refuse_clashes(
    revision: str | None,
    span: str | None,
    *,
    again: bool,
    cases_from: str,
    passes: int | Literal["auto"] | None,
    budget_min: float | None,
) -> None:
    """Raise UsageError where two options do not go together."""
    if revision and span:
        raise UsageError("--commit and --range exclude each other; give one")
    if again and not span:
        raise UsageError("--again goes with --range; without it, what is named is measured anyhow")
    if cases_from == "commit" and not (revision or span):
        raise UsageError("--cases-from commit goes with --commit or --range")
    if budget_min is not None and passes != "auto":
        raise UsageError("--budget goes with --passes auto; a number of passes takes what it takes")


@contextmanager
def _opened(request: _Request) -> Iterator[Store | None]:
    """The store, opened before anything is measured, so that a bad one costs nothing."""
    if request.out is not None:
        folder = request.out.absolute().parent
        if _is_folder(request):
            make_folder(request.out)
        elif not folder.is_dir():
            raise UsageError(f"{folder}: no such folder; make it, or give --out another path")
        yield None
        return
    with open_to_record(request.config) as store:
        say_cut_off(request.config, store)
        yield store


def _record_commits(
    request: _Request,
    store: Store | None,
    root: Path,
    shas: Sequence[str],
    *,
    again: bool,
    own_cases: bool,
) -> int:
    """Measure commits one after the other; the worst exit code, 9 where one had no kernels."""
    codes = [int(ExitCode.FINE)]
    for number, sha in enumerate(shas, 1):
        click.echo(f"commit {number} of {len(shas)}: {sha[:10]}", err=True)
        try:
            with recording.at_commit(request.config, root, sha, own_cases=own_cases) as subject:
                if store is not None and not again and _is_recorded(request, store, subject):
                    click.echo("recorded already; measure it anew with --again", err=True)
                    continue
                codes.append(_record(request, store, subject))
        except (ConfigurationError, UsageError) as error:
            click.echo(f"perfci: commit {sha[:10]} is left out: {error}", err=True)
            codes.append(int(ExitCode.MISSING_CELLS))
    return int(ExitCode.REGRESSION_OR_INCORRECT) if 1 in codes else max(codes)


def _is_recorded(request: _Request, store: Store, subject: Subject) -> bool:
    """Whether every cell that is asked for has been recorded at the commit, on every testbed."""
    for target in request.targets:
        testbed = environment(target.device, request.config).testbed
        runs = store.runs(sha_prefix=subject.commit.sha, testbed=testbed, studies=False)
        clean = [run.run_id for run in runs if run.commit.dirty is None]
        known = {(c.kernel, c.variant, c.case) for c in store.cells(run_ids=clean)}
        asked = select(subject.kernels, request.selection, target.device.kind)
        if not all((c.kernel.name, c.variant.name, c.case.name) in known for c in asked):
            return False
    return True


def _file_for(request: _Request, run: Run) -> Path | None:
    """The run file asked for, or the one in a folder where there are several runs."""
    if request.out is None or not _is_folder(request):
        return request.out
    return request.out / f"{run.commit.sha[:10]}-{run.run_id}.json.gz"


def _is_folder(request: _Request) -> bool:
    """Whether run files go into a folder: where there may be several, or where there is one."""
    several = request.trigger == "range" or len(request.targets) > 1
    return several or (request.out is not None and request.out.is_dir())


def _record(request: _Request, store: Store | None, subject: Subject) -> int:
    """Measure one subject on every device, record it and show it; the worst exit code."""
    return max(_record_on(target, request, store, subject) for target in request.targets)


def _record_on(target: Target, request: _Request, store: Store | None, subject: Subject) -> int:
    kind = target.device.kind
    cells = choose_cells(request.config, subject.kernels, request.selection, kind)
    started_at = datetime.now(UTC)
    run_id = recording.new_id(started_at)
    where = environment(target.device, request.config)
    attempt = count_attempts(store, subject.commit, where.testbed)

    def assemble(measured: Measured) -> Run:
        return recording.assemble(
            subject,
            measured,
            where,
            run_id=run_id,
            started_at=started_at,
            trigger=request.trigger,
            attempt=attempt,
        )

    with Keeper(request.config, store, lambda run: _file_for(request, run)) as keeper:
        with progress() as observer, lock_device(target.device):
            measured = measure(
                cells,
                request.config,
                target=target,
                server=request.server,
                passes=request.passes,
                observer=observer,
                keep_so_far=lambda sides: keeper.keep_so_far(map(assemble, sides)),
            )
        run = assemble(measured)
        keeper.keep([run])
    _show(request, run)
    say_unwatched(measured.unwatched)
    asked = request.passes if isinstance(request.passes, int) else None
    if measured.interrupted:
        say_interrupted(measured.passes, asked)
        raise KeyboardInterrupt
    if asked is not None and measured.passes < asked:
        of = units.count_things(asked, "pass", "passes")
        ended = f"ended after {units.format_count(measured.passes)} of {of}"
        click.echo(f"{ended}: nothing is left that could be timed", err=True)
    return int(run_exit_code(run.measurements))


def _show(request: _Request, run: Run) -> None:
    if request.as_json:
        echo_json(plain(run))
        return
    cells = [cell(run.run_id, each) for each in run.measurements]
    echo_lines(run_table(run_summary(run), cells))
