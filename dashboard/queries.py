"""The only caller of the store: what each page reads, in at most three calls.

A store is opened for one page and closed after it, so that threads share nothing.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from perfci.dashboard import lines, snapshot
from perfci.dashboard.branches import choose_branch, order_branch, pair_newest
from perfci.dashboard.lines import History
from perfci.dashboard.snapshot import Snapshot
from perfci.dashboard.states import KernelChoice, KernelState
from perfci.history.model import Cell, Run, RunSummary
from perfci.history.order import on_line
from perfci.history.stores import open_store
from perfci.history.stores.base import Store

MOST_COMMITS = 150
ALL = "all"


class NotFoundError(Exception):
    """What a URL names isn't in the store; the message says what."""


class EmptyStoreError(Exception):
    """The store holds no run at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelPage:
    """What a kernel's page shows; ``state`` has every choice made.

    ``commit_count`` counts the commits of the whole branch, of which the newest may be shown alone.
    """

    state: KernelState
    choice: KernelChoice
    history: History
    commit_count: int
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
    """Read a kernel's history; what ``asked`` leaves open is chosen, what it has must exist.

    Unless all commits are asked for, the newest :data:`MOST_COMMITS` of the branch are read.
    """
    with open_store(store_url) as store:
        runs = _all_runs(store)
        branches = sorted({run.commit.branch for run in runs if run.commit.branch})
        branch = _pick("branch", asked.branch, branches, default=choose_branch(runs))
        line = order_branch(runs, branch)
        commits = line if asked.commits == "all" else line[-MOST_COMMITS:]
        testbed, cells = _read_cells(store, asked, runs, {commit.sha for commit in commits})
    cases = list(dict.fromkeys(cell.case for cell in cells))
    case = _pick("case", asked.case, cases)
    timers = sorted({_timer(cell) for cell in cells if cell.case == case})
    timer = _pick("timer", asked.timer, timers)
    here = [run for run in runs if testbed in (ALL, run.environment.testbed)]
    chosen = [cell for cell in cells if cell.case == case and _timer(cell) == timer]
    return KernelPage(
        state=replace(asked, testbed=testbed, case=case, timer=timer, branch=branch),
        choice=KernelChoice(
            testbeds=_testbeds(runs), cases=cases, timers=timers, branches=branches
        ),
        history=lines.trace(here, chosen, commits),
        commit_count=len(line),
        off_line=_off_line(here, {commit.sha for commit in line}),
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


def _read_cells(
    store: Store, asked: KernelState, runs: Sequence[RunSummary], shas: Collection[str]
) -> tuple[str, list[Cell]]:
    """Read the timed cells of a kernel at some commits, and say of which testbed.

    Where none is asked for, it is the one measured last that has the kernel.
    """
    testbeds = list(dict.fromkeys(run.environment.testbed for run in runs))
    if asked.testbed:
        testbeds = [_pick("testbed", asked.testbed, [*testbeds, ALL])]
    for testbed in testbeds:
        run_ids = [
            run.run_id
            for run in runs
            if run.commit.sha in shas and testbed in (ALL, run.environment.testbed)
        ]
        cells = store.cells(run_ids=run_ids, kernel=asked.kernel)
        if timed := [cell for cell in cells if cell.contract is not None]:
            return testbed, timed
    raise NotFoundError(f"no run of a kernel “{asked.kernel}” here")


def _off_line(runs: Sequence[RunSummary], shas: Collection[str]) -> list[RunSummary]:
    return [run for run in runs if run.commit.sha not in shas or not on_line(run.commit)]


def _pick(what: str, asked: str, known: Sequence[str], *, default: str = "") -> str:
    if not asked:
        return default or next(iter(known), "")
    if asked not in known:
        raise NotFoundError(f"no {what} “{asked}” here")
    return asked
