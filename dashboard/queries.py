"""The only caller of the store: what each page reads, in at most three calls.

A store is opened for one page and closed after it, so that threads share nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from perfci.dashboard import lines, snapshot
from perfci.dashboard.branches import choose_branch, order_branch, pair_newest
from perfci.dashboard.lines import History
from perfci.dashboard.snapshot import Snapshot
from perfci.dashboard.states import KernelChoice, KernelState
from perfci.history.model import Cell, Run, RunSummary
from perfci.history.stores import open_store
from perfci.history.stores.base import Store


class NotFoundError(Exception):
    """What a URL names isn't in the store; the message says what."""


class EmptyStoreError(Exception):
    """The store holds no run at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelPage:
    """What a kernel's page shows; ``state`` has every choice made."""

    state: KernelState
    choice: KernelChoice
    history: History
    off_line: Sequence[RunSummary]


def read_overview(store_url: str, testbed: str) -> tuple[list[Snapshot], list[str]]:
    """Read the newest snapshot of a testbed, or of all where it is empty, and all their names."""
    with open_store(store_url) as store:
        runs = _all_runs(store)
        testbeds = _testbeds(runs)
        if testbed and testbed not in testbeds:
            raise NotFoundError(f"no run of a testbed “{testbed}”")
        pairs = [
            pair_newest([run for run in runs if run.environment.testbed == name])
            for name in ([testbed] if testbed else testbeds)
        ]
        cells = store.cells(
            run_ids=[run.run_id for pair in pairs for run in (*pair.runs, *pair.previous)]
        )
    return [
        snapshot.take(pair.runs, pair.previous, cells, newer=pair.newer) for pair in pairs
    ], testbeds


def read_kernel(store_url: str, asked: KernelState) -> KernelPage:
    """Read a kernel's history; what ``asked`` leaves open is chosen, what it has must exist."""
    with open_store(store_url) as store:
        runs = _all_runs(store)
        cells = store.cells(kernel=asked.kernel)
    if not cells:
        raise NotFoundError(f"no run of a kernel “{asked.kernel}”")
    with_kernel = {cell.run_id for cell in cells}
    runs = [run for run in runs if run.run_id in with_kernel]
    state, choice = _choose(asked, runs, cells)
    if state.testbed != "all":
        runs = [run for run in runs if run.environment.testbed == state.testbed]
    commits = order_branch(runs, state.branch)
    on_line = {commit.sha for commit in commits}
    chosen = [cell for cell in cells if cell.case == state.case and _timer(cell) == state.timer]
    return KernelPage(
        state=state,
        choice=choice,
        history=lines.trace(runs, chosen, commits),
        off_line=[
            run for run in runs if run.commit.sha not in on_line or run.commit.dirty is not None
        ],
    )


def read_run(store_url: str, run_id: str) -> Run:
    """Read one run whole, by its id or the unique beginning of it."""
    with open_store(store_url) as store:
        fitting = [run.run_id for run in _all_runs(store) if run.run_id.startswith(run_id)]
        if run_id in fitting:
            fitting = [run_id]
        if len(fitting) != 1 or not run_id:
            how_many = "several runs begin" if fitting else "no run begins"
            raise NotFoundError(f"{how_many} with “{run_id}”")
        return store.run(fitting[0])


def read_runs(store_url: str, *, testbed: str, sha: str) -> tuple[list[RunSummary], list[str]]:
    """Read the runs that match, newest first, and the names of all testbeds."""
    with open_store(store_url) as store:
        runs = _all_runs(store)
    testbeds = _testbeds(runs)
    return [
        run
        for run in runs
        if run.commit.sha.startswith(sha.lower()) and testbed in ("", run.environment.testbed)
    ], testbeds


def _all_runs(store: Store) -> list[RunSummary]:
    runs = list(store.runs())
    if not runs:
        raise EmptyStoreError
    return runs


def _testbeds(runs: Sequence[RunSummary]) -> list[str]:
    return sorted({run.environment.testbed for run in runs})


def _timer(cell: Cell) -> str:
    return "" if cell.contract is None else cell.contract.label


def _choose(
    asked: KernelState, runs: Sequence[RunSummary], cells: Sequence[Cell]
) -> tuple[KernelState, KernelChoice]:
    timed = [cell for cell in cells if cell.contract is not None]
    testbeds = _testbeds(runs)
    testbed = _pick("testbed", asked.testbed, [*testbeds, "all"])
    cases = list(dict.fromkeys(cell.case for cell in timed))
    case = _pick("case", asked.case, cases)
    here = {run.run_id for run in runs if testbed in ("all", run.environment.testbed)}
    timers = sorted({_timer(cell) for cell in timed if cell.case == case and cell.run_id in here})
    branches = sorted({run.commit.branch for run in runs if run.commit.branch})
    state = replace(
        asked,
        testbed=testbed,
        case=case,
        timer=_pick("timer", asked.timer, timers),
        branch=_pick("branch", asked.branch, branches, default=choose_branch(runs)),
    )
    return state, KernelChoice(testbeds=testbeds, cases=cases, timers=timers, branches=branches)


def _pick(what: str, asked: str, known: Sequence[str], *, default: str = "") -> str:
    if not asked:
        return default or next(iter(known), "")
    if asked not in known:
        raise NotFoundError(f"no {what} “{asked}” here")
    return asked
