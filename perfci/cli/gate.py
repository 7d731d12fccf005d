"""perfci gate: a head judged by its base."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from perfci.cli.keeping import Keeper, counted, file_in, say_cut_off
from perfci.cli.options import (
    config_of,
    device_option,
    echo_json,
    json_option,
    kernels_option,
    make_folder,
    open_to_read,
    open_to_record,
    selection_of,
    selection_options,
    server_for,
    store_option,
    write_json,
)
from perfci.cli.record import say_unwatched
from perfci.config import Config
from perfci.decision.studies import read_floors
from perfci.device import environment, find_targets
from perfci.errors import UsageError
from perfci.gate.contest import Place, judge_head
from perfci.gate.environments import furnished
from perfci.gate.past import find_failed, find_marks, read_past
from perfci.gate.sides import Sides, check_out, find_ends
from perfci.gate.verdicts import Gate, exit_code_of, find_same, worst_code
from perfci.history import commits
from perfci.history.stores import Store
from perfci.lock import lock_device
from perfci.plan import Target
from perfci.progress import progress
from perfci.reports.gate import gate_text
from perfci.reports.gate_json import VALUES_FILE, gate_values
from perfci.reports.markdown import gate_github, gate_markdown
from perfci.selection import Selection
from perfci.workers.passes import PassServer

_BUDGET_MIN = 10.0
_WRITERS: Mapping[str, Callable[[Gate], str]] = {
    "text": lambda gate: "\n".join(gate_text(gate)),
    "markdown": gate_markdown,
    "github": gate_github,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """What the command line asks for, resolved."""

    config: Config
    root: Path
    selection: Selection
    budget_s: float
    out: Path | None
    reads_store: bool


@click.command("gate")
@click.option("--base", metavar="REV", help="Judge by this commit, an ancestor of the head.")
@click.option("--head", metavar="REV", help="Judge this commit, not what lies here.")
@click.option(
    "--budget",
    "budget_min",
    type=click.FloatRange(0, min_open=True),
    metavar="MINUTES",
    default=_BUDGET_MIN,
    show_default=True,
    help="What it may take of a device.",
)
@selection_options
@device_option
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "markdown", "github", "json"]),
    default="text",
    show_default=True,
    help="github: Markdown within the limits of a comment.",
)
@json_option
@click.option(
    "--fail-on",
    type=click.Choice(["inconclusive"]),
    help="Exit with 8 also where a cell is inconclusive.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write the two run files, from the first complete pass on, and gate.json, what --json "
    "prints, into this folder instead of recording; a --store beside it is only read.",
)
@kernels_option
@store_option
def command(
    base: str | None,
    head: str | None,
    budget_min: float,
    names: tuple[str, ...],
    variants: tuple[str, ...],
    cases: tuple[str, ...],
    tier: str,
    device: str | None,
    form: str,
    as_json: bool,  # noqa: FBT001
    fail_on: str | None,
    out: Path | None,
    kernels: str | None,
    store: str | None,
) -> int:
    r"""Judge a head by its base: what is slower, wrong or gone.

    The base is where the head left the default branch (origin/HEAD, else origin/main, main or
    master), the head what lies in the working tree. Both are built and measured in the same
    passes, cell by cell in turns, 6, 12, 24 or 48 of them, until every cell is decided or the
    budget ends. Cells of which the code is the same are not measured.

    The base's references, cases, tolerances and settings judge both sides. What the head changes
    in them comes first in the report and changes no verdict; what it takes away is missing. Where
    [tool.perfci] environment names what to install, and the head asks for something else than the
    base, each side gets an environment and processes of its own.

    \b
    Example:
      perfci gate
      perfci gate --base HEAD                what the working tree adds to HEAD
      perfci gate --base HEAD~1 --kernel mla_attention --budget 3
      perfci gate --base v1.0 --head v1.1 --fail-on inconclusive
    """
    config = config_of(store, kernels)
    root = commits.repository_root(config.root)
    if root is None:
        raise UsageError(f"{config.root} is in no git repository: there is no base to judge by")
    request = _Request(
        config=config,
        root=root,
        selection=selection_of(names, variants, cases, tier),
        budget_s=60 * budget_min,
        out=out,
        reads_store=out is None or store is not None,
    )
    ends = find_ends(root, config, base=base, head=head)
    with _opened(request) as history, _keeper_of(request, history) as keeper:
        with check_out(config, root, ends, kernels=config.kernels if kernels else None) as sides:
            server = server_for((*sides.baseline, *sides.proposed), sides.config)
            targets = find_targets(device, server.probe_gpus)
            with ExitStack() as stack:
                with progress() as observer:
                    furnishing = furnished(sides, observer)
                    lodged = stack.enter_context(furnishing)
                gates = _judge(targets, request, lodged, server, history, keeper)
        for each in gates:
            keeper.keep(counted(run, history) for run in each.runs)
    values = _values_of(gates, fail_on_inconclusive=fail_on is not None)
    if out is not None:
        write_json(out / VALUES_FILE, values)
    if as_json or form == "json":
        echo_json(values)
    else:
        write = _WRITERS[form]
        click.echo("\n".join(write(each).rstrip("\n") + "\n" for each in gates).rstrip("\n"))
    if any(each.interrupted for each in gates):
        raise KeyboardInterrupt
    codes = [exit_code_of(each, fail_on_inconclusive=fail_on is not None) for each in gates]
    return int(worst_code(codes))


@contextmanager
def _opened(request: _Request) -> Iterator[Store | None]:
    """The store, opened before anything is measured, so that a bad one costs nothing."""
    if request.out is not None:
        make_folder(request.out)
    if not request.reads_store:
        yield None
        return
    # Beside --out, a store is read for what it knows, and nothing goes into it.
    opened = open_to_record if request.out is None else open_to_read
    with opened(request.config) as store:
        if request.out is None:
            say_cut_off(request.config, store)
        yield store


def _keeper_of(request: _Request, store: Store | None) -> Keeper:
    return Keeper(request.config, store, lambda run: file_in(request.out, run))


def _judge(
    targets: Sequence[Target],
    request: _Request,
    sides: Sides,
    server: PassServer,
    store: Store | None,
    keeper: Keeper,
) -> list[Gate]:
    """Gate each device; no more after an interruption."""
    gates = []
    for target in targets:
        gates.append(_judge_on(target, request, sides, server, store, keeper))
        say_unwatched(gates[-1].unwatched)
        if gates[-1].interrupted:
            break
    return gates


def _judge_on(
    target: Target,
    request: _Request,
    sides: Sides,
    server: PassServer,
    store: Store | None,
    keeper: Keeper,
) -> Gate:
    testbed = environment(target.device, sides.config).testbed
    floors = {} if store is None else read_floors(store, [testbed])
    with progress() as observer, lock_device(target.device):
        place = Place(
            root=request.root, target=target, server=server, floors=floors, observer=observer
        )
        gate = judge_head(
            sides,
            request.selection,
            place,
            budget_s=request.budget_s,
            keep_so_far=keeper.keep_so_far,
        )
    if store is None:
        return gate
    marks = find_marks(request.root, sides.ends.base, sides.pinned)
    past = read_past(store, gate.after, marks, threshold=gate.threshold, floors=floors)
    same = [each.key for each in find_same(gate.comparisons)]
    failed = find_failed(store, gate.base.sha, same)
    return replace(gate, past=replace(past, failed_at_base=failed))


def _values_of(gates: Sequence[Gate], *, fail_on_inconclusive: bool) -> dict[str, Any]:
    values = [gate_values(each, fail_on_inconclusive=fail_on_inconclusive) for each in gates]
    return {"gates": values}
