"""perfci bisect: the first commit from which on a cell is slower, wrong or not built."""

import math
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from perfci import units
from perfci.bisect.answer import Bisection, exit_code_of
from perfci.bisect.flagged import NAME_IT, Wanted, find_flagged
from perfci.bisect.hunt import bisect
from perfci.bisect.notebook import Notebook, Question, settings_of
from perfci.bisect.report import bisect_text, find_commands, interval_of
from perfci.bisect.trials import Trials
from perfci.cli.keeping import counted, keep
from perfci.cli.options import (
    config_of,
    device_option,
    echo_json,
    echo_lines,
    json_option,
    kernels_option,
    make_folder,
    open_to_read,
    open_to_record,
    server_for,
    store_option,
)
from perfci.config import Config
from perfci.decision.compare import Floors, to_ratio
from perfci.decision.studies import read_floors
from perfci.device import environment, find_targets
from perfci.errors import ConfigurationError, UsageError
from perfci.gate.contest import Place, thresholds_of
from perfci.gate.environments import are_apart
from perfci.gate.matching import Name
from perfci.gate.sides import Base, check_out_base, check_out_judged
from perfci.history import commits
from perfci.history.errors import NoStoreError
from perfci.history.midpoints import authored_at, require_ancestor
from perfci.history.model import Run, Verdict
from perfci.history.plain import plain
from perfci.history.stores import Store
from perfci.lock import lock_device
from perfci.progress import progress
from perfci.reports.columns import wrap
from perfci.reports.comparison import name_cell, write_verdict
from perfci.selection import Selection, refuse_unknown
from perfci.suggest import did_you_mean
from perfci.timers import TIMERS, timers_on


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """What the command line asks for, resolved."""

    config: Config
    root: Path
    good: str
    bad: str
    kernels: Path | None
    wanted: Wanted
    device: str | None
    budget_s: float
    out: Path | None


@click.command("bisect")
@click.argument("good", metavar="GOOD")
@click.argument("bad", metavar="BAD")
@click.option("--kernel", metavar="NAME", help="The kernel of the cell.")
@click.option("--variant", metavar="NAME", help="The variant.")
@click.option("--case", metavar="NAME", help="The case.")
@click.option(
    "--timer", metavar="NAME", help="cold, hot, host or cpu (default: the first that is slower)."
)
@click.option(
    "--budget",
    "budget_min",
    type=click.FloatRange(0, min_open=True),
    metavar="MINUTES",
    help="What it may take of a device; the same command goes on later.",
)
@device_option
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write run files into this folder instead of recording.",
)
@kernels_option
@store_option
@json_option
def command(
    good: str,
    bad: str,
    kernel: str | None,
    variant: str | None,
    case: str | None,
    timer: str | None,
    budget_min: float | None,
    device: str | None,
    out: Path | None,
    kernels: str | None,
    store: str | None,
    as_json: bool,  # noqa: FBT001
) -> int:
    r"""Find the commit from which on a cell is slower, wrong or not built.

    GOOD is an older commit that BAD builds on. It is measured first whether they differ at all.
    Then commits between them are measured beside GOOD, in the same passes, until each is known to
    be like GOOD or like BAD; the one that is left is measured beside its parents. References,
    cases, tolerances and settings are those of GOOD at every commit.

    What is not named of the cell is taken from the runs that are recorded of both: the cell that
    is worst at BAD. What does not build or has no such kernel is skipped, the same code is not
    measured again. After an interruption the same command goes on.

    Exits with 0 where the commit was found, 8 where it cannot be told.

    \b
    Example:
      perfci bisect v1.0 HEAD                  the cell that is recorded as worst
      perfci bisect HEAD~40 HEAD --kernel axpb --variant plain --case large
      perfci bisect v1.0 HEAD --kernel axpb --timer host --budget 30
    """
    config = config_of(store, kernels)
    root = commits.repository_root(config.root)
    if root is None:
        raise UsageError(f"{config.root} is in no git repository: there is nothing to bisect")
    require_ancestor(root, good, bad)
    request = _Request(
        config=config,
        root=root,
        good=commits.resolve(root, good),
        bad=commits.resolve(root, bad),
        kernels=config.kernels if kernels else None,
        wanted=Wanted(kernel=kernel, variant=variant, case=case, timer=timer),
        device=device,
        budget_s=math.inf if budget_min is None else 60 * budget_min,
        out=out,
    )
    if out is not None:
        make_folder(out)
    with ExitStack() as stack:
        name = f"commit {request.good[:10]}"
        checked_out = check_out_base(config, root, request.good, kernels=request.kernels, name=name)
        base = stack.enter_context(checked_out)
        history = _open_store(request, config)
        if history is not None:
            stack.enter_context(history)
        bisection = _bisect(request, base, history)
    culprit = bisection.suspects[0] if len(bisection.suspects) == 1 else None
    authored = authored_at(root, culprit.sha) if culprit else None
    if as_json:
        echo_json(_told(bisection, authored))
    else:
        echo_lines(bisect_text(bisection, authored))
    return int(exit_code_of(bisection.ending))


def _open_store(request: _Request, config: Config) -> Store | None:
    """The store, where the cell is looked up in it or trials are recorded; None where neither."""
    if not request.wanted.is_whole:
        try:
            return open_to_read(config)
        except NoStoreError as error:
            raise NoStoreError(f"{NAME_IT}, or: {error}") from None
    return open_to_record(config) if request.out is None else None


def _bisect(request: _Request, base: Base, store: Store | None) -> Bisection:
    server = server_for(base.kernels, base.config)
    targets = find_targets(request.device, server.probe_gpus)
    if len(targets) != 1:
        raise UsageError("a bisection measures on one device: name one with --device")
    where = environment(targets[0].device, base.config)
    floors = {} if store is None else read_floors(store, [where.testbed])
    wanted = request.wanted
    _refuse_unknown_timer(wanted.timer, targets[0].device.kind)
    if not wanted.is_whole and store is not None:
        wanted = _find_cell(request, store, where.testbed, floors)
    cell = _checked(wanted, base)
    question = Question(
        good=request.good,
        bad=request.bad,
        kernel=cell[0],
        variant=cell[1],
        case=cell[2],
        timer=wanted.timer or "",
        environment=where,
        settings=settings_of(base.config),
    )
    notebook = Notebook(base.config.cache, question)
    if notebook.findings:
        _tell(f"going on after {units.count_things(len(notebook.findings), 'known step')}")

    def record(run: Run) -> None:
        kept = store if request.out is None else None
        path = request.out / f"{run.run_id}.json.gz" if request.out else None
        keep(counted(run, kept), kept, path)

    with progress() as observer, lock_device(targets[0].device):
        place = Place(
            root=request.root, target=targets[0], server=server, floors=floors, observer=observer
        )
        trials = Trials(
            config=request.config,
            root=request.root,
            base=base,
            base_sha=request.good,
            kernels=request.kernels,
            name=cell,
            place=place,
            environment=where,
            thresholds=thresholds_of(base.config),
            deadline_s=time.monotonic() + request.budget_s,
            keep=record,
            apart=_are_ends_apart(request, base),
        )
        try:
            return bisect(question, trials, notebook, _tell)
        except KeyboardInterrupt:
            _tell("what was found is kept; the same command goes on")
            raise


def _are_ends_apart(request: _Request, base: Base) -> bool:
    """Whether the ends ask for different environments; a bad end that says nothing does not."""
    with suppress(ConfigurationError):
        asked = check_out_judged(
            request.config,
            request.root,
            request.bad,
            base,
            kernels=request.kernels,
            name=f"commit {request.bad[:10]}",
        )
        with asked as judged:
            return are_apart(judged.requirements, base.requirements)
    return False


def _tell(line: str) -> None:
    for each in wrap(line, indent=0):
        click.echo(each, err=True)


def _find_cell(request: _Request, store: Store, testbed: str, floors: Floors) -> Wanted:
    """The cell that is recorded as worst, and the timer by which it is slower."""
    flagged = find_flagged(
        store,
        request.config.root,
        (request.good, request.bad),
        request.wanted,
        testbed=testbed,
        threshold=request.config.threshold,
        floors=floors,
    )
    first = flagged[0]
    key = first.key
    slower = first.verdict is Verdict.REGRESSION
    timer = key.contract.partition("/")[0] if slower else request.wanted.timer
    others = len(flagged) - 1
    cells = units.count_things(others, "more cell is", "more cells are")
    more = f"; {cells} bad as well" if others else ""
    _tell(f"{write_verdict(first.verdict)}: {name_cell(first)}, by what is recorded{more}")
    return Wanted(kernel=key.kernel, variant=key.variant, case=key.case, timer=timer)


def _refuse_unknown_timer(wanted: str | None, device_kind: str) -> None:
    timers = [TIMERS[name].contract.timer for name in timers_on(device_kind)]
    if wanted is not None and wanted not in timers:
        raise UsageError(f"no timer '{wanted}' on {device_kind} {did_you_mean(wanted, timers)}")


def _checked(wanted: Wanted, base: Base) -> Name:
    """The cell's name. Raises UsageError where the good end has none such."""
    named = (wanted.kernel or "", wanted.variant or "", wanted.case or "")
    kernel, variant, case = named
    refuse_unknown(base.kernels, Selection(kernels=(kernel,), variants=(variant,), cases=(case,)))
    return named


def _told(bisection: Bisection, authored: datetime | None) -> dict[str, Any]:
    """The bisection as plain values."""
    told = plain(bisection)
    del told["findings"]
    return {
        **told,
        "authored_at": plain(authored),
        "steps": [
            {
                **plain(finding),
                "commit": plain(commit),
                "ratio": None if finding.change is None else to_ratio(finding.change.mean),
                "interval": interval_of(finding.change),
            }
            for commit, finding in bisection.findings
        ],
        "commands": find_commands(bisection),
    }
