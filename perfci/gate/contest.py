"""A head measured beside its base: what needs it, in the same passes, until it is decided."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from perfci import recording
from perfci.anchors import anchor_cells
from perfci.anchors.machine import compare_anchors, without_anchors
from perfci.build import Build
from perfci.config import Config
from perfci.decision.compare import Floors, Side, count_checked
from perfci.decision.ladder import Thresholds
from perfci.device import environment
from perfci.environments.installation import recorded_in
from perfci.errors import ConfigurationError
from perfci.gate.changes import find_changes
from perfci.gate.matching import Matching, Unpaired, match_cells
from perfci.gate.rungs import Rows, Rungs
from perfci.gate.sides import Sides
from perfci.gate.verdicts import (
    Gate,
    Rules,
    accept,
    decide,
    name_waiting,
    say_same,
    say_unpaired,
    without_haste,
)
from perfci.history import commits
from perfci.history.model import (
    GATE_TRIGGER,
    Comparison,
    Environment,
    Measurement,
    Run,
    Status,
    Verdict,
)
from perfci.history.summary import cell, run_summary
from perfci.modules import modules_in
from perfci.plan import Target
from perfci.prepare import architectures_for, build_all
from perfci.progress import Observer
from perfci.recording import Subject
from perfci.run import Measured, SoFar, measure, measure_pair
from perfci.sameness import is_same_code
from perfci.selection import Cell, Selection, refuse_unknown, variants_of
from perfci.workers.passes import PassServer

_NOTHING = Measured(measurements=(), passes=0, interrupted=False, duration_s=0.0)

Pairs = Sequence[tuple[Cell, Cell]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a gate measures: the device, who measures on it, and what is known of its noise."""

    root: Path
    target: Target
    server: PassServer
    floors: Floors
    observer: Observer


def judge_head(
    sides: Sides,
    selection: Selection,
    place: Place,
    *,
    budget_s: float,
    keep_so_far: Callable[[Sequence[Run]], None],
) -> Gate:
    """Build both sides, measure what needs it, and decide.

    ``keep_so_far`` hears the runs as they are known while passes are still to come. Raises
    UsageError for a name that neither side has, ConfigurationError where nothing is chosen.
    """
    start_s, started_at = time.monotonic(), datetime.now(UTC)
    config, target = sides.config, place.target
    where = environment(target.device, config)
    matching = _match(sides, selection, place)
    same, others, timed_count = _part(matching.pairs, sides, place)
    records = _open_records(sides, where, started_at)
    rules = Rules(thresholds=thresholds_of(config), floors=place.floors)
    spent_before_s = time.monotonic() - start_s
    rungs = Rungs(
        budget_s=budget_s - spent_before_s,
        cells=max(1, timed_count),
        find_waiting=lambda rows, look: name_waiting(
            decide(*records.as_sides(records.runs_of(rows)), rules, look=look)
        ),
    )
    has_anchors = sides.config.anchors and timed_count > 0
    first, second = _measure_pairs(
        others,
        sides,
        place,
        rungs,
        lambda measured: keep_so_far(records.so_far(measured)),
        has_anchors=has_anchors,
    )
    if first.passes:  # what only the head has, and other devices, may be still to come
        keep_so_far(records.so_far([first, second]))
    new = _measure_new(() if first.interrupted else matching.new, sides, place)
    rows = (first.measurements, (*second.measurements, *new.measurements))
    runs = records.runs_of(rows, duration_s=first.duration_s + new.duration_s)
    before, after = records.as_sides(runs)
    decided = decide(before, after, rules, look=rungs.look)
    comparisons = [
        *(without_haste(each, first.passes) for each in decided),
        *_say_not_measured(matching, same, where),
    ]
    explained, accepted = accept(comparisons, config.accepted)
    return Gate(
        ends=sides.ends,
        base=sides.base_commit,
        head=sides.head_commit,
        environment_change=sides.environment_change,
        changes=tuple(find_changes(sides)),
        environment=where,
        threshold=config.threshold,
        comparisons=tuple(sorted(explained, key=lambda each: each.key)),
        accepted=accepted,
        checked=count_checked(without_anchors(before), without_anchors(after)),
        anchors=tuple(compare_anchors(before, after, floors=place.floors)),
        before=before,
        after=after,
        runs=_recorded(runs),
        passes=first.passes,
        ending=rungs.ending,
        budget_s=budget_s,
        spent_s=time.monotonic() - start_s,
        needed_s=spent_before_s + rungs.needed_s,
        interrupted=first.interrupted or new.interrupted,
        unwatched=first.unwatched or new.unwatched,
    )


def _open_records(sides: Sides, where: Environment, started_at: datetime) -> "_Records":
    return _Records(
        sides=sides,
        environments=tuple(recorded_in(each, where) for each in sides.installations),
        started_at=started_at,
        pair=recording.new_id(started_at),
        run_ids=(recording.new_id(started_at), recording.new_id(started_at)),
    )


def _say_not_measured(matching: Matching, same: Pairs, where: Environment) -> Iterator[Comparison]:
    """What is said of the cells that only one side has, and of those of the same code."""
    for unpaired in matching.unpaired:
        yield from say_unpaired(where, unpaired)
    for pair in same:
        yield from say_same(where, pair)


def _recorded(runs: Sequence[Run]) -> tuple[Run, ...]:
    """Runs as they are recorded, where anything of them is."""
    return tuple(run for run in map(_without_unpaired, runs) if run.measurements)


def _without_unpaired(run: Run) -> Run:
    """A run as it is recorded: what only the other side kept from being timed is no failure of it.

    Beside whole runs of that commit it would pass for one.
    """
    own = tuple(each for each in run.measurements if each.status is not Status.MISSING)
    return replace(run, measurements=own)


def thresholds_of(config: Config) -> Thresholds:
    """What change matters in which cells."""
    named = dict(config.thresholds)
    return Thresholds(
        default=config.threshold,
        kernels={name: each for name, each in named.items() if "/" not in name},
        cases={
            (kernel, case): each
            for name, each in named.items()
            for kernel, slash, case in [name.partition("/")]
            if slash
        },
    )


def _match(sides: Sides, selection: Selection, place: Place) -> Matching:
    """Match the chosen cells; what would run the working tree's modules is nobody's side."""
    refuse_unknown([*sides.baseline, *sides.proposed], selection)
    device = place.target.device
    matching = match_cells(sides.baseline, sides.contender, sides.proposed, selection, device)
    if not (matching.pairs or matching.unpaired or matching.new):
        raise ConfigurationError(
            f"nothing to judge on {device.kind} with this selection: neither side has such cells"
        )
    pairs: list[tuple[Cell, Cell]] = []
    unpaired = [*matching.unpaired]
    for pair in matching.pairs:
        changed = _changed_modules(pair, sides, place.root)
        if not changed:
            pairs.append(pair)
            continue
        reason = f"the head changes {changed[0]}, of which both sides would run the working tree's"
        unpaired.append(Unpaired(cell=pair[0], verdict=Verdict.INCOMPARABLE, reason=reason))
    return replace(matching, pairs=tuple(pairs), unpaired=tuple(unpaired))


def _changed_modules(pair: tuple[Cell, Cell], sides: Sides, root: Path) -> list[str]:
    """The modules of the repository that both sides import by name and that are not the same."""
    used = {name: path for each in pair for name, path in modules_in(root, each.variant).items()}
    ends = sides.ends
    return [
        name
        for name, path in sorted(used.items())
        if not commits.is_unchanged(root, path, ends.base, ends.head)
    ]


def _part(pairs: Pairs, sides: Sides, place: Place) -> tuple[Pairs, Pairs, int]:
    """The pairs that run the same code on both sides, the others, how many of these are timed."""
    architectures = architectures_for(sides.config, place.target)
    builds: list[dict[tuple[str, str], Build]] = []
    for number in (0, 1):
        variants = variants_of(pair[number] for pair in pairs)
        built = build_all(variants, sides.config, architectures, place.observer)
        builds.append({each.variant.key: each for each in built})
    same: list[tuple[Cell, Cell]] = []
    others: list[tuple[Cell, Cell]] = []
    timed_count = 0
    for pair in pairs:
        one, other = (known[each.variant.key] for known, each in zip(builds, pair, strict=True))
        if is_same_code(one, other):
            same.append(pair)
            continue
        others.append(pair)
        timed_count += pair[0].case.timed and not (one.failed or other.failed)
    return same, others, timed_count


def _measure_pairs(
    pairs: Pairs,
    sides: Sides,
    place: Place,
    rungs: Rungs,
    keep_so_far: SoFar,
    *,
    has_anchors: bool,
) -> tuple[Measured, Measured]:
    if not pairs:
        return _NOTHING, _NOTHING
    anchors = anchor_cells(place.target.device.kind) if has_anchors else []
    return measure_pair(
        [*(one for one, _ in pairs), *anchors],
        [*(other for _, other in pairs), *anchors],
        sides.config,
        target=place.target,
        server=place.server,
        passes=rungs,
        observer=place.observer,
        keep_so_far=keep_so_far,
    )


def _measure_new(cells: Sequence[Cell], sides: Sides, place: Place) -> Measured:
    """Check what only the head has, and read it once: there is nothing to compare it with."""
    if not cells:
        return _NOTHING
    return measure(
        cells,
        sides.config,
        target=place.target,
        server=place.server,
        passes=1,
        observer=place.observer,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Records:
    """Rows as the two runs that they make."""

    sides: Sides
    environments: Sequence[Environment]
    started_at: datetime
    pair: str
    run_ids: tuple[str, str]

    def runs_of(self, rows: Rows, *, duration_s: float = 0.0) -> tuple[Run, Run]:
        subjects = (
            Subject(commit=self.sides.base_commit, kernels=self.sides.baseline),
            Subject(commit=self.sides.head_commit, kernels=self.sides.contender),
        )
        first, second = (
            recording.assemble(
                subject,
                replace(
                    _NOTHING,
                    measurements=tuple(map(self._without_trees, measurements)),
                    duration_s=duration_s,
                ),
                environment,
                run_id=run_id,
                started_at=self.started_at,
                trigger=GATE_TRIGGER,
                attempt=1,
                pair=self.pair,
            )
            for subject, measurements, environment, run_id in zip(
                subjects, rows, self.environments, self.run_ids, strict=True
            )
        )
        return first, second

    def _without_trees(self, row: Measurement) -> Measurement:
        """The row, its message without the folders that are gone when it is read."""
        message = row.message
        for tree in self.sides.trees:
            message = message.replace(f"{tree}/", "")
        return replace(row, message=message)

    def so_far(self, measured: Sequence[Measured]) -> tuple[Run, ...]:
        """The runs as they are recorded if nothing follows what was measured of both sides."""
        rows = [each.measurements for each in measured]
        return _recorded(self.runs_of(rows, duration_s=measured[0].duration_s))

    def as_sides(self, runs: Sequence[Run]) -> tuple[Side, Side]:
        before, after = (
            Side([run_summary(run)], [cell(run.run_id, row) for row in run.measurements])
            for run in runs
        )
        return before, after
