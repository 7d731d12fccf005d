"""A run: builds, then passes, assembled into measurements.

Each pass measures every cell once, in random order, in a fresh process. A cell that has failed is
not tried again: it is a row with its status, and the others go on. Two sides, where there are two,
share every pass, and each cell's are timed in turns.
"""

import math
import random
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from perfci.anchors import ANCHOR_BUDGET_S
from perfci.anchors.bounds import without_impossible
from perfci.anchors.canary import without_unflushed
from perfci.config import Config
from perfci.decision.precision import Precision
from perfci.gpu.clocks import ClockWatch, GpuEye
from perfci.history.model import Measurement, Status, is_anchor
from perfci.outcome import Outcome, require_pair
from perfci.pace import Sparingly
from perfci.plan import Limits, Target, Task
from perfci.prepare import Prepared, architectures_for, build_all, limits_of, reason_to_skip
from perfci.progress import Observer
from perfci.rows import State, can_be_timed, rows_of
from perfci.selection import Cell, variants_of
from perfci.timers import TIMERS, timers_on
from perfci.workers.passes import PassServer

FIRST_SEEDS = 3
ROTATING_INPUTS = 4
_SEED_BITS = 48
_KEPT_SHARE = 0.01
"""What keeping passes while others are still to come may take of the time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What a run measured; ``passes`` were completed, fewer than asked for if interrupted.

    ``unwatched`` says why nothing could be read of the GPU's state, or not its clock.
    """

    measurements: tuple[Measurement, ...]
    passes: int
    interrupted: bool
    duration_s: float
    unwatched: str = ""


SoFar = Callable[[Sequence[Measured]], None]
"""Who hears between two passes what is known of each side, as it is if nothing follows."""


class Until(Protocol):
    """Until when two sides are measured. Passes go to the cells that it is ``waiting`` for.

    These are (kernel, variant, case); None stands for all.
    """

    waiting: Collection[tuple[str, str, str]] | None

    def is_over(
        self,
        sides: Callable[[], Sequence[Sequence[Measurement]]],
        *,
        passes: int,
        spent_s: float,
        can_go_on: bool,
    ) -> bool:
        """Whether so many passes are enough; ``sides`` makes the rows of each side so far.

        ``can_go_on`` says whether any cell is left that could be timed.
        """
        ...


_Rule = Callable[[Sequence[Sequence[State]], int, float], bool]
"""Whether it is enough, by the states of each side, the passes and the seconds so far."""


def measure(
    cells: Sequence[Cell],
    config: Config,
    *,
    target: Target,
    server: PassServer,
    passes: int | Precision,
    timed: bool = True,
    observer: Observer,
    keep_so_far: SoFar | None = None,
) -> Measured:
    """Build, check and (where ``timed``) time cells, in so many passes or until it is precise.

    It ends as soon as nothing of the code is left that could be timed: anchors are not timed for
    their own sake, unless nothing else is asked for. KeyboardInterrupt before the first pass is
    complete goes through; after that it ends the run with the passes that are complete. These are
    handed to ``keep_so_far`` before each further one, unless that would take too much of the time.
    """
    timers = timers_on(target.device.kind) if timed else ()
    precision = passes if isinstance(passes, Precision) and timed else None

    def is_over(sides: Sequence[Sequence[State]], complete: int, spent_s: float) -> bool:
        if not _can_go_on([[each] for each in sides[0]], timers, complete):
            return True
        if precision is None:
            return complete >= (passes if timed and isinstance(passes, int) else 1)
        means_ns = _means_ns(sides[0], timers)
        return precision.is_over(means_ns, passes=complete, spent_s=spent_s)

    (measured,) = _measure(
        [cells],
        config,
        target=target,
        server=server,
        is_over=is_over,
        timers=timers,
        precision=None if precision is None else precision.target,
        observer=observer,
        keep_so_far=keep_so_far,
    )
    return measured


def measure_pair(
    baseline: Sequence[Cell],
    contender: Sequence[Cell],
    config: Config,
    *,
    target: Target,
    server: PassServer,
    passes: int | Until,
    timers: Sequence[str] | None = None,
    observer: Observer,
    keep_so_far: SoFar | None = None,
) -> tuple[Measured, Measured]:
    """Measure two sides in the same passes, each cell's in turns, as ``measure`` does one.

    ``contender`` has the cells of ``baseline``, in its order; cases and references are the
    baseline's. A cell of which one side failed has no figures on the other. ``timers`` are all of
    the device where they are not named.
    """
    timers = timers_on(target.device.kind) if timers is None else timers

    def is_over(sides: Sequence[Sequence[State]], complete: int, spent_s: float) -> bool:
        if isinstance(passes, int):
            together = list(zip(*sides, strict=True))
            return complete >= passes or not _can_go_on(together, timers, complete)
        return passes.is_over(
            lambda: [_rows(states, timers, target) for states in sides],
            passes=complete,
            spent_s=spent_s,
            can_go_on=any(
                can_be_timed(each, timers)
                for each in zip(*sides, strict=True)
                if waits_for(each[0])
            ),
        )

    def waits_for(state: State) -> bool:
        return isinstance(passes, int) or passes.waiting is None or state.name in passes.waiting

    first, second = _measure(
        [baseline, contender],
        config,
        target=target,
        server=server,
        is_over=is_over,
        waits_for=waits_for,
        timers=timers,
        observer=observer,
        keep_so_far=keep_so_far,
    )
    return first, second


def _measure(
    sides: Sequence[Sequence[Cell]],
    config: Config,
    *,
    target: Target,
    server: PassServer,
    is_over: _Rule,
    waits_for: Callable[[State], bool] = lambda _: True,
    timers: Sequence[str],
    precision: float | None = None,
    observer: Observer,
    keep_so_far: SoFar | None,
) -> list[Measured]:
    start_s = time.monotonic()
    begun = [_begin(cells, config, target, observer) for cells in sides]
    if timers:
        begun = _without_idle_anchors(begun, timers)
    limits = limits_of(config, target)
    live = [(each.build, each.cell) for states in begun for each in states if not each.failure]
    Prepared(config).fill(live, server=server, target=target, limits=limits, observer=observer)
    together = list(zip(*begun, strict=True))
    for cell in together:
        if len(cell) > 1:
            cell[0].beside, cell[1].beside = cell[1], cell[0]
    complete, interrupted = 0, False
    eye = GpuEye(target.device.uuid)
    watch = ClockWatch(eye.glance)

    def known() -> list[Measured]:
        duration_s = time.monotonic() - start_s
        return [
            Measured(
                measurements=tuple(_rows(states, timers, target, precision=precision)),
                passes=complete,
                interrupted=interrupted,
                duration_s=duration_s,
                unwatched=eye.reason,
            )
            for states in begun
        ]

    keep = Sparingly(lambda: keep_so_far and keep_so_far(known()), share=_KEPT_SHARE)
    try:
        with watch:
            while not is_over(begun, complete, time.monotonic() - start_s):
                if complete:
                    keep()
                wanted = [each for each in together if waits_for(each[0])]
                fresh = _one_pass(wanted, server, limits, target, complete, timers, watch, observer)
                for state, outcome in fresh:
                    state.add(complete, outcome)
                complete += 1
    except KeyboardInterrupt:
        if not complete:
            raise
        interrupted = True
    return known()


def _without_idle_anchors(sides: list[list[State]], timers: Sequence[str]) -> list[list[State]]:
    """The cells of each side, without anchors where these would be all that is timed."""
    together = list(zip(*sides, strict=True))
    code = [each for each in together if not is_anchor(each[0].cell.kernel.name)]
    if not code or any(can_be_timed(each, timers) for each in code):
        return sides
    return [list(states) for states in zip(*code, strict=True)]


def _can_go_on(together: Sequence[Sequence[State]], timers: Sequence[str], complete: int) -> bool:
    """Whether a further pass tells of anything: the first checks too, the others only time."""
    if complete == 0:
        return any(each.failure is None for sides in together for each in sides)
    code = [each for each in together if not is_anchor(each[0].cell.kernel.name)]
    return not code or any(can_be_timed(each, timers) for each in code)


def _rows(
    states: Sequence[State],
    timers: Sequence[str],
    target: Target,
    *,
    precision: float | None = None,
) -> Sequence[Measurement]:
    """What is known so far, as the rows of a run."""
    rows = [
        row for each in states for row in rows_of(each, timers, target=target, precision=precision)
    ]
    return without_impossible(without_unflushed(rows))


def _means_ns(states: Sequence[State], timers: Sequence[str]) -> list[list[float]]:
    """The means of each latency that is still timed. Anchors are the machine's: left out."""
    return [
        means
        for state in states
        if not is_anchor(state.cell.kernel.name) and state.failure is None
        for name in timers
        if (means := state.pass_means_ns(TIMERS[name].contract))
    ]


def _begin(
    cells: Sequence[Cell], config: Config, target: Target, observer: Observer
) -> list[State]:
    """Every cell with its build, the ones that cannot go on marked as failed or skipped."""
    architectures = architectures_for(config, target)
    built = build_all(variants_of(cells), config, architectures, observer)
    builds = {each.variant.key: each for each in built}
    states = []
    for cell in cells:
        state = State(cell=cell, build=builds[cell.variant.key])
        reason = reason_to_skip(cell, target)
        if reason:
            state.failure = Outcome(status=Status.SKIPPED, message=reason)
        elif state.build.failed:
            state.failure = Outcome(status=Status.BUILD_FAILED, message=state.build.message)
        states.append(state)
    return states


def _one_pass(
    together: Sequence[Sequence[State]],
    server: PassServer,
    limits: Limits,
    target: Target,
    index: int,
    timers: Sequence[str],
    watch: ClockWatch,
    observer: Observer,
) -> list[tuple[State, Outcome]]:
    """One pass over all cells that are still alive; checks alone belong to the first."""
    alive = [
        living
        for sides in together
        if (living := _living(sides, timers)) and (index == 0 or sides[0].cell.case.timed)
    ]
    repeated = _first_of_each(alive) if index == 0 else []
    random.shuffle(alive)
    tasks = [
        _task(
            sides,
            timers,
            first=index == 0,
            repeats=sides in repeated,
            on_gpu=target.device.kind == "cuda",
        )
        for sides in alive
    ]
    phase = f"pass {index + 1}" if timers else "check"
    ended: list[tuple[State, Outcome]] = []
    for done, (number, outcomes) in enumerate(server.run(tasks, target=target, limits=limits), 1):
        seen = [_watched(each, watch) for each in outcomes]
        ended += zip(alive[number], seen, strict=True)
        observer.step(phase, done, len(tasks), "/".join(tasks[number].cell))
    return ended


def _watched(outcome: Outcome, watch: ClockWatch) -> Outcome:
    """The outcome with what was read of the GPU while each timer read."""
    timings = []
    for each in outcome.timings:
        seen = watch.during(*each.span_s)
        timings.append(
            replace(each, clocks=seen.clocks, sm_mhz=seen.sm_mhz, other_processes=seen.others)
        )
    return replace(outcome, timings=tuple(timings))


def _living(sides: Sequence[State], timers: Sequence[str]) -> Sequence[State]:
    """The sides of a cell that go on: of one that is timed all or none."""
    living = [each for each in sides if each.failure is None]
    if len(living) == len(sides) or not (timers and sides[0].cell.case.timed):
        return living
    ends = [each.failure or Outcome(status=Status.PASSED) for each in sides]
    for each, end in zip(sides, require_pair(ends), strict=True):
        each.failure = end
    return []


def _first_of_each(cells: Sequence[Sequence[State]]) -> list[Sequence[State]]:
    """The first cell of each variant, which is one that is timed where there is any."""
    first: dict[tuple[str, str], Sequence[State]] = {}
    for sides in cells:
        first.setdefault(sides[0].cell.variant.key, sides)
    return list(first.values())


def _task(
    sides: Sequence[State], timers: Sequence[str], *, first: bool, repeats: bool, on_gpu: bool
) -> Task:
    cell = sides[0].cell
    case = cell.case
    # An anchor is the library's own way: to look at it once in a pass is enough.
    anchor = is_anchor(cell.kernel.name)
    return Task(
        kernel=cell.kernel,
        build=sides[0].build,
        other=sides[1].build if len(sides) > 1 else None,
        case=case,
        timers=tuple(timers) if case.timed else (),
        proves=first and not anchor,
        repeats=repeats and not anchor,
        footprint=first and (on_gpu or cell.variant.declaration.compiles),
        seeds=tuple(_seeds(FIRST_SEEDS if first and not anchor else 1)),
        timing_seeds=tuple(_seeds(ROTATING_INPUTS)) if case.timed else (),
        budget_s=ANCHOR_BUDGET_S if anchor else math.inf,
    )


def _seeds(count: int) -> Iterator[int]:
    """Seeds that no kernel can know."""
    source = random.SystemRandom()
    return (source.getrandbits(_SEED_BITS) for _ in range(count))
