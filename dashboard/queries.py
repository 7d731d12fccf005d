"""The only caller of the store: what each page reads, in at most three calls.

A store is opened for one page and closed after it, so that threads share nothing.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from perfci.dashboard import lines, snapshot
from perfci.dashboard.branches import (
    choose_branch,
    order_branch,
    pair_newest,
    runs_at,
    take_newest,
)
from perfci.dashboard.lines import Aside, History
from perfci.dashboard.origins import Origin, find_origins
from perfci.dashboard.snapshot import Snapshot
from perfci.dashboard.states import KernelChoice, KernelState, OverviewState
from perfci.decision.noise import CellNoise, Study, describe_noise, find_floors, find_studies
from perfci.history.model import Cell, Commit, Run, RunSummary
from perfci.history.order import head_first, is_whole, on_line
from perfci.history.stores import open_store
from perfci.history.stores.base import Store
from perfci.load import say_load

MOST_COMMITS = 150
_MOST_CELLS = 30_000
_MOST_APART = 10
ALL = "all"


class NotFoundError(Exception):
    """What a URL names isn't in the store; the message says what."""


class EmptyStoreError(Exception):
    """The store holds no run at all."""


class UnstudiedError(Exception):
    """No study of noise was recorded, of the testbed that is asked for or of any; says of which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelPage:
    """What a kernel's page shows; ``state`` has every choice made.

    ``commit_count`` counts the commits of the whole branch, of which the newest may be shown alone.
    ``apart`` are runs of uncommitted trees and of other branches, the newest first.
    """

    state: KernelState
    choice: KernelChoice
    history: History
    commit_count: int
    apart: Sequence[Aside]


def read_overview(store_url: str, asked: OverviewState) -> tuple[list[Snapshot], list[str]]:
    """Read the newest snapshot of a testbed, or of all where none is asked for, and all names."""
    with _opened(store_url) as store:
        recorded = _runs(store)
        runs = [run for run in recorded if not run.is_study]
        if not runs:
            raise EmptyStoreError
        studies = find_studies(recorded)
        kinds = {run.environment.testbed: run.environment.device.kind for run in reversed(runs)}
        testbeds = sorted(kinds, key=lambda name: (kinds[name] != "cuda", name))
        if asked.testbed and asked.testbed not in testbeds:
            raise NotFoundError(f"no run of a testbed “{asked.testbed}”")
        pairs = []
        shown: list[RunSummary] = []
        for name in [asked.testbed] if asked.testbed else testbeds:
            here = [run for run in runs if run.environment.testbed == name]
            pair = pair_newest(here)
            pairs.append((pair, runs_at(here, pair.recent)))
            shown += [*pair.runs, *pair.previous, *pairs[-1][1]]
        studied = [run for study in studies for run in study]
        cells = store.cells(run_ids={run.run_id for run in (*shown, *studied)})
    floors = find_floors(studies, cells)
    snapshots = [
        snapshot.take(
            pair.runs,
            pair.previous,
            cells,
            newer=pair.newer,
            line=(pair.recent, recent_runs),
            floors=floors,
        )
        for pair, recent_runs in pairs
    ]
    if asked.timer and not any(asked.timer in each.timers for each in snapshots):
        raise NotFoundError(f"no timer “{asked.timer}” here")
    return snapshots, testbeds


def read_kernel(store_url: str, asked: KernelState) -> KernelPage:
    """Read a kernel's history; what ``asked`` leaves open is chosen, what it has must exist.

    Unless all commits are asked for, the newest of the branch are read: at most
    :data:`MOST_COMMITS`, and fewer where they hold very many cells.
    """
    with _opened(store_url) as store:
        runs = _runs(store, studies=False)
        whole = [run for run in runs if is_whole(run)]
        branches = sorted({run.commit.branch for run in whole if run.commit.branch})
        branch = _pick("branch", asked.branch, branches, default=choose_branch(runs))
        line = order_branch(runs, branch)
        commits = (
            line
            if asked.commits == ALL
            else take_newest(line, runs, most=MOST_COMMITS, most_cells=_MOST_CELLS)
        )
        on_it = runs_at(runs, commits)
        apart = _off_line(runs, line)[:_MOST_APART]
        cells = [
            cell
            for cell in store.cells(
                run_ids=[run.run_id for run in (*on_it, *apart)], kernel=asked.kernel
            )
            if cell.contract is not None
        ]
    testbeds = _testbeds_with(cells, [*on_it, *apart])
    if not testbeds:
        raise NotFoundError(f"no timed run of a kernel “{asked.kernel}” here")
    testbed = _pick("testbed", asked.testbed, [*testbeds, ALL])
    here = {run.run_id for run in runs if testbed in (ALL, run.environment.testbed)}
    cells = [cell for cell in cells if cell.run_id in here]
    cases = list(dict.fromkeys(cell.case for cell in cells))
    case = _pick("case", asked.case, cases)
    timers = list(dict.fromkeys(_timer(cell) for cell in cells if cell.case == case))
    timer = _pick("timer", asked.timer, timers)
    chosen = [cell for cell in cells if cell.case == case and _timer(cell) == timer]
    return KernelPage(
        state=replace(asked, testbed=testbed, case=case, timer=timer, branch=branch),
        choice=KernelChoice(
            testbeds=sorted(testbeds), cases=cases, timers=timers, branches=branches
        ),
        history=lines.trace([run for run in on_it if run.run_id in here], chosen, commits),
        commit_count=len({run.commit.sha for run in runs_at(runs, line) if run.run_id in here}),
        apart=lines.set_apart(apart, chosen),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisePage:
    """What the page of a testbed's noise shows: its newest study, cell by cell.

    ``load`` says how busy others kept a CPU, and is empty where that was not much.
    """

    testbeds: Sequence[str]
    study: Study
    noise: Sequence[CellNoise]
    load: str


def read_noise(store_url: str, testbed: str, *, threshold: float) -> NoisePage:
    """Read the newest study of a testbed, or of the one that was studied last."""
    with _opened(store_url) as store:
        studies = find_studies(store.runs(studies=True))
        newest: dict[str, Study] = {}
        for each in studies:
            newest.setdefault(each[0].environment.testbed, each)
        if testbed not in newest:
            _pick("testbed", testbed, [*newest, *_testbeds(store.runs())])
        chosen = newest.get(testbed or next(iter(newest), ""))
        if chosen is None:
            raise UnstudiedError(testbed)
        cells = store.cells(run_ids=[run.run_id for run in chosen])
    noise = describe_noise(chosen, cells, threshold=threshold)
    load = say_load({"": cells})
    return NoisePage(testbeds=sorted(newest), study=chosen, noise=noise, load=load)


def read_run(store_url: str, run_id: str) -> tuple[Run, Origin]:
    """Read one run whole, by its id or the unique beginning of it, and what it was measured for."""
    with _opened(store_url) as store:
        runs = _runs(store)
        fitting = [run.run_id for run in runs if run.run_id.startswith(run_id)]
        if run_id in fitting:
            fitting = [run_id]
        if len(fitting) != 1 or not run_id:
            how_many = "several runs begin" if fitting else "no run begins"
            raise NotFoundError(f"{how_many} with “{run_id}”")
        origins = {each.run.run_id: each for each in find_origins(runs)}
        return store.run(fitting[0]), origins[fitting[0]]


def read_runs(store_url: str, *, testbed: str, sha: str) -> tuple[list[Origin], list[str]]:
    """Read the runs that match, newest first, and the names of all testbeds."""
    with _opened(store_url) as store:
        runs = _runs(store)
    return [
        each
        for each in find_origins(runs)
        if each.run.commit.sha.startswith(sha.lower())
        and testbed in ("", each.run.environment.testbed)
    ], _testbeds(runs)


def _opened(store_url: str) -> Store:
    return open_store(store_url, create=False)


def _runs(store: Store, *, studies: bool | None = None) -> list[RunSummary]:
    runs = head_first(store.runs(studies=studies))
    if not runs:
        raise EmptyStoreError
    return runs


def _testbeds(runs: Sequence[RunSummary]) -> list[str]:
    return sorted({run.environment.testbed for run in runs})


def _timer(cell: Cell) -> str:
    return "" if cell.contract is None else cell.contract.label


def _testbeds_with(cells: Iterable[Cell], runs: Iterable[RunSummary]) -> list[str]:
    """Name the testbeds that have a cell; ``runs`` and what is returned begin with the line's."""
    with_cell = {cell.run_id for cell in cells}
    return list(dict.fromkeys(run.environment.testbed for run in runs if run.run_id in with_cell))


def _off_line(runs: Sequence[RunSummary], line: Iterable[Commit]) -> list[RunSummary]:
    shas = {commit.sha for commit in line}
    return [run for run in runs if run.commit.sha not in shas or not on_line(run.commit)]


def _pick(what: str, asked: str, known: Sequence[str], *, default: str = "") -> str:
    if not asked:
        return default or next(iter(known), "")
    if asked not in known:
        raise NotFoundError(f"no {what} “{asked}” here")
    return asked
