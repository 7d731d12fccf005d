"""A run: builds, then passes, assembled into measurements.

Each pass measures every cell once, in random order, in a fresh process. A cell that has failed is
not tried again: it is a row with its status, and the others go on.
"""

import math
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from perfci.anchors import ANCHOR_BUDGET_S
from perfci.build import Build, build
from perfci.config import Config
from perfci.device import memory_bytes
from perfci.history.model import Contract, Measurement, Metric, Pass, Status, is_anchor
from perfci.history.plain import PlainError, plain, record
from perfci.history.text import one_line, printable
from perfci.kernel import Variant, skip_reason
from perfci.outcome import Outcome
from perfci.passes import PassServer
from perfci.plan import Limits, Target, Task
from perfci.prepare import Prepared
from perfci.progress import Observer
from perfci.selection import Cell, variants_of
from perfci.timers import TIMERS, timers_on

FIRST_SEEDS = 3
ROTATING_INPUTS = 4
_MEMORY_SHARE = 0.8
_SEED_BITS = 48


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What a run measured; ``passes`` were completed, fewer than asked for if interrupted."""

    measurements: tuple[Measurement, ...]
    passes: int
    interrupted: bool
    duration_s: float


@dataclass(slots=True, kw_only=True)
class _Progress:
    """What is known so far of one cell."""

    cell: Cell
    build: Build
    failure: Outcome | None = None
    outcomes: list[tuple[int, Outcome]] = field(default_factory=list)


def measure(
    cells: Sequence[Cell],
    config: Config,
    *,
    target: Target,
    server: PassServer,
    passes: int,
    timed: bool = True,
    observer: Observer,
) -> Measured:
    """Build, check and (where ``timed``) time cells.

    KeyboardInterrupt before the first pass is complete goes through; after that it ends the run
    with the passes that are complete.
    """
    start_s = time.monotonic()
    states = _begin(cells, config, target, observer)
    limits = _limits(config, target)
    live = [(each.build, each.cell) for each in states if each.failure is None]
    Prepared(config).fill(live, server=server, target=target, limits=limits, observer=observer)
    timers = timers_on(target.device.kind) if timed else ()
    complete, interrupted = 0, False
    try:
        for index in range(passes if timed else 1):
            fresh = _one_pass(states, server, limits, target, index, timers, observer)
            for state, outcome in fresh:
                state.outcomes.append((index, outcome))
                if outcome.status is not Status.PASSED:
                    state.failure = outcome
            complete += 1
    except KeyboardInterrupt:
        if not complete:
            raise
        interrupted = True
    return Measured(
        measurements=tuple(row for state in states for row in _rows(state, timers, target)),
        passes=complete,
        interrupted=interrupted,
        duration_s=time.monotonic() - start_s,
    )


def architectures_for(config: Config, target: Target | None) -> tuple[str, ...]:
    """The architectures to compile for: those configured, else the device's own if it has one."""
    capability = target.device.compute_capability if target else None
    if config.architectures or capability is None:
        return config.architectures
    return (f"sm_{capability.replace('.', '')}",)


def build_all(
    variants: Sequence[Variant],
    config: Config,
    architectures: Sequence[str],
    observer: Observer,
) -> list[Build]:
    """Build variants, telling the observer."""
    return build(
        variants,
        config,
        architectures=architectures,
        on_step=lambda done, total, name: observer.step("build", done, total, name),
    )


def prepare_all(
    cells: Sequence[Cell],
    builds: Sequence[Build],
    config: Config,
    target: Target,
    server: PassServer,
    observer: Observer,
) -> int:
    """Let the variants that compile at their first call do so; how many cells that were."""
    by_key = {each.variant.key: each for each in builds}
    live = [(by_key[cell.variant.key], cell) for cell in cells if not _skip_reason(cell, target)]
    limits = _limits(config, target)
    return Prepared(config).fill(
        live, server=server, target=target, limits=limits, observer=observer
    )


def _begin(
    cells: Sequence[Cell], config: Config, target: Target, observer: Observer
) -> list[_Progress]:
    """Every cell with its build, the ones that cannot go on marked as failed or skipped."""
    architectures = architectures_for(config, target)
    built = build_all(variants_of(cells), config, architectures, observer)
    builds = {each.variant.key: each for each in built}
    states = []
    for cell in cells:
        state = _Progress(cell=cell, build=builds[cell.variant.key])
        reason = _skip_reason(cell, target)
        if reason:
            state.failure = Outcome(status=Status.SKIPPED, message=reason)
        elif state.build.failed:
            state.failure = Outcome(status=Status.BUILD_FAILED, message=state.build.message)
        states.append(state)
    return states


def _skip_reason(cell: Cell, target: Target) -> str:
    device = target.device
    return skip_reason(
        cell.variant, cell.case, device.kind, device_memory_bytes=device.memory_bytes
    )


def _one_pass(
    states: Sequence[_Progress],
    server: PassServer,
    limits: Limits,
    target: Target,
    index: int,
    timers: Sequence[str],
    observer: Observer,
) -> list[tuple[_Progress, Outcome]]:
    """One pass over all cells that are still alive; checks alone belong to the first."""
    alive = [
        each for each in states if each.failure is None and (index == 0 or each.cell.case.timed)
    ]
    repeated = _first_of_each(alive) if index == 0 else []
    random.shuffle(alive)
    tasks = [
        _task(
            state,
            timers,
            first=index == 0,
            repeats=state in repeated,
            on_gpu=target.device.kind == "cuda",
        )
        for state in alive
    ]
    phase = f"pass {index + 1}" if timers else "check"
    ended = []
    for done, (number, outcome) in enumerate(server.run(tasks, target=target, limits=limits), 1):
        ended.append((alive[number], outcome))
        observer.step(phase, done, len(tasks), "/".join(tasks[number].cell))
    return ended


def _first_of_each(states: Sequence[_Progress]) -> list[_Progress]:
    """The first cell of each variant, which is one that is timed where there is any."""
    first: dict[tuple[str, str], _Progress] = {}
    for state in states:
        first.setdefault(state.cell.variant.key, state)
    return list(first.values())


def _task(
    state: _Progress, timers: Sequence[str], *, first: bool, repeats: bool, on_gpu: bool
) -> Task:
    case = state.cell.case
    # An anchor is the library's own way: to look at it once in a pass is enough.
    anchor = is_anchor(state.cell.kernel.name)
    return Task(
        kernel=state.cell.kernel,
        build=state.build,
        case=case,
        timers=tuple(timers) if case.timed else (),
        proves=first and not anchor,
        repeats=repeats and not anchor,
        launches=first and on_gpu,
        seeds=tuple(_seeds(FIRST_SEEDS if first and not anchor else 1)),
        timing_seeds=tuple(_seeds(ROTATING_INPUTS)) if case.timed else (),
        budget_s=ANCHOR_BUDGET_S if anchor else math.inf,
    )


def _seeds(count: int) -> Iterator[int]:
    """Seeds that no kernel can know."""
    source = random.SystemRandom()
    return (source.getrandbits(_SEED_BITS) for _ in range(count))


def _limits(config: Config, target: Target) -> Limits:
    memory = None
    if config.memory_limit_gib is not None:
        memory = int(config.memory_limit_gib * 2**30)
    elif target.device.kind == "cpu":
        memory = int(memory_bytes() * _MEMORY_SHARE)
    return Limits(
        timeout_s=config.timeout_s,
        cell_budget_s=config.cell_budget_s,
        memory_bytes=memory,
    )


def _rows(state: _Progress, timers: Sequence[str], target: Target) -> Iterator[Measurement]:
    """The measurements of one cell: one a contract, or one without where it is only checked."""
    contracts: Sequence[Contract | None] = [None]
    if state.cell.case.timed and timers:
        contracts = [TIMERS[name].contract for name in timers]
    for contract in contracts:
        yield _recordable(_row(state, contract, target))


def _recordable(row: Measurement) -> Measurement:
    """The row, or one that says why it cannot be kept: code under test must not cost the others.

    What a worker said is well formed, and yet a kernel that speaks in its worker's place could
    say what no store takes.
    """
    try:
        record(Measurement, plain(row))
    except PlainError as error:
        message = one_line(f"cannot be recorded: {error}")
        return replace(row, status=Status.RUNTIME_ERROR, message=message, passes=(), metrics=())
    return row


def _row(state: _Progress, contract: Contract | None, target: Target) -> Measurement:
    cell, variant = state.cell, state.cell.variant
    outcomes = [outcome for _, outcome in state.outcomes]
    final = state.failure or outcomes[-1]
    passes: list[Pass] = []
    if final.status is Status.PASSED and contract is not None:
        final = _of_timer(final, outcomes, contract)
    if final.status is Status.PASSED and contract is not None:
        passes = [
            Pass(
                index=index,
                samples_ns=timing.samples_ns,
                loops=timing.loops,
                stop=timing.stop,
                clocks=timing.clocks,
            )
            for index, outcome in state.outcomes
            for timing in outcome.timings
            if timing.contract == contract
        ]
    message = final.message
    if state.failure is not None and len(outcomes) > 1:
        message = f"passed {len(outcomes) - 1} passes, then: {message}"
    return Measurement(
        kernel=variant.kernel,
        case=cell.case.name,
        variant=variant.name,
        contract=contract,
        status=final.status,
        message=printable(message),
        passes=tuple(passes),
        metrics=_metrics(state, outcomes),
        workload_digest=cell.kernel.workload_digest(cell.case),
        source_digest=state.build.digest,
        identity=_identity(state, outcomes, target),
        launches=outcomes[0].launches if outcomes else (),
    )


def _identity(
    state: _Progress, outcomes: Sequence[Outcome], target: Target
) -> tuple[tuple[str, str], ...]:
    """What is known of the code; what a worker says of what its build has said is not believed."""
    built = state.build.code.texts(target.device.compute_capability)
    told = outcomes[0].identity if outcomes else ()
    return tuple({**dict(built), **dict(told), **dict(built)}.items())


def _of_timer(final: Outcome, outcomes: Sequence[Outcome], contract: Contract) -> Outcome:
    """The outcome as one timer sees it: invalid where it could not time the cell in some pass."""
    for outcome in outcomes:
        reason = dict(outcome.invalid).get(contract.label)
        if reason is not None:
            return replace(final, status=Status.INVALID_TIMING, message=reason)
    notes = [
        timing.note
        for outcome in outcomes
        for timing in outcome.timings
        if timing.contract == contract and timing.note
    ]
    return replace(final, message=notes[0]) if notes else final


def _metrics(state: _Progress, outcomes: Sequence[Outcome]) -> tuple[Metric, ...]:
    """The worst figure of every metric over all passes, and the time it took to compile."""
    worst: dict[str, Metric] = {}
    for outcome in outcomes:
        for metric in outcome.metrics:
            known = worst.get(metric.name)
            if known is None or metric.value > known.value:
                worst[metric.name] = metric
    if state.build.library is not None:
        worst["compile_s"] = Metric(name="compile_s", value=state.build.compile_s, unit="s")
    return tuple(worst.values())
