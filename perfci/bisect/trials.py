"""What can be found out about one cell of a commit: built, checked, measured beside another's.

References, cases, tolerances and settings are always those of one base.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from perfci import recording
from perfci.build import Build
from perfci.config import Config
from perfci.decision import stats
from perfci.decision.compare import Side, are_processes, assumed_floor, floor_of_processes
from perfci.decision.ladder import Thresholds, judge
from perfci.decision.pairs import log_ratios
from perfci.environments.installation import recorded_in
from perfci.environments.requirements import Requirements
from perfci.errors import BuildEnvironmentError, ConfigurationError
from perfci.gate.contest import Place
from perfci.gate.environments import are_apart, made_for, put_into
from perfci.gate.matching import Name
from perfci.gate.rungs import Ending, Rows, Rungs
from perfci.gate.sides import Base, check_out_judged
from perfci.history import commits
from perfci.history.model import BISECT_TRIGGER, Commit, Comparison, Environment, Measurement, Run
from perfci.history.model import Cell as RecordedCell
from perfci.history.summary import cell as summarised
from perfci.history.summary import run_summary
from perfci.kernel import Kernel
from perfci.modules import modules_in
from perfci.prepare import architectures_for, build_all
from perfci.recording import Subject
from perfci.run import Measured, measure, measure_pair
from perfci.sameness import fingerprint
from perfci.selection import Cell, why_skipped

Sides = tuple[Side, Side]

FEWEST_RATIOS = 2
"""Of fewer passes nothing can be said."""


class UntestableError(Exception):
    """A commit of which the cell cannot be tested, and why."""


class OutOfTimeError(Exception):
    """The budget ended before this was known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Specimen:
    """The cell as it is at a commit, built. ``code`` is a digest of it, empty where not known."""

    commit: Commit
    kernels: tuple[Kernel, ...]
    cell: Cell
    build: Build
    code: str


@dataclass(slots=True, kw_only=True)
class Trials:
    """One cell, at whatever commit, in one place, while the budget lasts.

    ``kernels`` is their folder where settings have no say. With ``apart`` the ends ask for
    different environments, and every commit runs in its own. ``keep`` takes each run that was
    measured, ``passes`` counts their passes.
    """

    config: Config
    root: Path
    base: Base
    base_sha: str
    kernels: Path | None
    name: Name
    place: Place
    environment: Environment
    thresholds: Thresholds
    deadline_s: float
    keep: Callable[[Run], None]
    apart: bool = False
    passes: int = 0

    @contextmanager
    def open(self, sha: str) -> Iterator[Specimen]:
        """The cell at a commit. Raises UntestableError where the commit does not have it."""
        commit = commits.read_commit(self.root, sha)
        if sha == self.base_sha:
            with self._furnished(commit, self.base.kernels, self.base.requirements) as kernels:
                yield self._specimen(commit, kernels)
            return
        try:
            with (
                check_out_judged(
                    self.config,
                    self.root,
                    sha,
                    self.base,
                    kernels=self.kernels,
                    name=f"commit {sha[:10]}",
                ) as judged,
                self._furnished(commit, judged.kernels, judged.requirements) as kernels,
            ):
                yield self._specimen(commit, kernels)
        except ConfigurationError as error:
            raise UntestableError(str(error)) from None

    @contextmanager
    def _furnished(
        self, commit: Commit, kernels: tuple[Kernel, ...], asked: Requirements | None
    ) -> Iterator[tuple[Kernel, ...]]:
        """The kernels in the environment of their commit. Raises UntestableError without one."""
        if not self.apart:
            if are_apart(asked, self.base.requirements):
                raise UntestableError("it asks for an environment that neither end has")
            yield kernels
            return
        with ExitStack() as stack:
            whose = f"the environment of {commit.sha[:10]}"
            try:
                made = stack.enter_context(made_for(asked, self.base.config, whose))
            except BuildEnvironmentError as error:
                raise UntestableError(str(error)) from None
            yield put_into(made, kernels)

    def _specimen(self, commit: Commit, kernels: tuple[Kernel, ...]) -> Specimen:
        cell = self._find(kernels)
        for name, path in modules_in(self.root, cell.variant).items():
            if not commits.is_unchanged(self.root, path, self.base_sha, commit.sha):
                raise UntestableError(
                    f"it has another module {name}, of which the working tree's would be run"
                )
        architectures = architectures_for(self.base.config, self.place.target)
        (build,) = build_all([cell.variant], self.base.config, architectures, self.place.observer)
        # Where the worktree lies is nobody's concern, and another one's each time.
        message = build.message.replace(f"{cell.kernel.folder.parent}/", "")
        return Specimen(
            commit=commit,
            kernels=kernels,
            cell=cell,
            build=replace(build, message=message),
            code=fingerprint(build),
        )

    def _find(self, kernels: Sequence[Kernel]) -> Cell:
        name, variant_name, case_name = self.name
        kernel = next((each for each in kernels if each.name == name), None)
        if kernel is None:
            raise UntestableError(f"it has no kernel {name}")
        variant = next((each for each in kernel.variants if each.name == variant_name), None)
        if variant is None:
            raise UntestableError(f"it has no variant {variant_name} of {name}")
        case = next(each for each in kernel.cases if each.name == case_name)
        cell = Cell(kernel=kernel, variant=variant, case=case)
        device = self.place.target.device
        if device.kind not in variant.declaration.devices:
            raise UntestableError(f"{variant_name} is not for {device.kind} there")
        if reason := why_skipped(cell, device):
            raise UntestableError(f"{variant_name} does not take it there: {reason}")
        return cell

    def check(self, specimen: Specimen, *, timed: bool) -> Measurement:
        """Check the cell once, in a fresh process; with ``timed``, see whether it can be timed."""
        if time.monotonic() > self.deadline_s:
            raise OutOfTimeError
        measured = measure(
            [specimen.cell],
            self.base.config,
            target=self.place.target,
            server=self.place.server,
            passes=1,
            timed=timed,
            observer=self.place.observer,
        )
        self.passes += 1
        failed = [each for each in measured.measurements if each.status.is_failure]
        return next(iter(failed), measured.measurements[0])

    def pair(
        self,
        before: Specimen,
        after: Specimen,
        timers: Sequence[str] | None,
        waits: Callable[[Sides, int], bool],
    ) -> tuple[Sides, int]:
        """Measure two commits in the same passes while ``waits`` says that more are needed.

        It is asked at each look of the ladder, which it is told. Returns both sides and the look.
        Raises OutOfTimeError where the budget ends before.
        """
        started_at = datetime.now(UTC)
        specimens = (before, after)

        def find_waiting(rows: Rows, look: int) -> set[Name]:
            runs = self._runs(specimens, rows, started_at=started_at, duration_s=0.0)
            return {self.name} if waits(as_sides(runs), look) else set()

        rungs = Rungs(budget_s=self.deadline_s - time.monotonic(), find_waiting=find_waiting)
        measured = measure_pair(
            [before.cell],
            [after.cell],
            self.base.config,
            target=self.place.target,
            server=self.place.server,
            passes=rungs,
            timers=timers,
            observer=self.place.observer,
        )
        self.passes += measured[0].passes
        runs = self._runs(
            specimens,
            [each.measurements for each in measured],
            started_at=started_at,
            duration_s=measured[0].duration_s,
        )
        for run in runs:
            self.keep(run)
        if measured[0].interrupted:
            raise KeyboardInterrupt
        if rungs.ending is Ending.OUT_OF_TIME:
            raise OutOfTimeError
        return as_sides(runs), rungs.look

    def judge(self, sides: Sides, look: int) -> list[Comparison]:
        """The verdicts on what was measured of two commits, after a look of the ladder."""
        floors = self.place.floors
        return judge(*sides, look=look, thresholds=self.thresholds, floors=floors)

    def change(self, sides: Sides, contract: str) -> stats.Estimate | None:
        """The logarithm of the ratio of two sides under a contract; None without passes of both."""
        one, other = (under(side, contract) for side in sides)
        ratios = log_ratios(one, other)
        if len(ratios) < FEWEST_RATIOS:
            return None
        key = next(key for key in sides[0].cells_by_key() if key.contract == contract)
        floor = self.place.floors.get(key) or assumed_floor(contract)
        floor = floor_of_processes(floor) if are_processes([one], [other]) else floor
        return stats.pool_pairs([ratios], floor=floor.paired)

    def _runs(
        self,
        specimens: Sequence[Specimen],
        rows: Rows,
        *,
        started_at: datetime,
        duration_s: float,
    ) -> tuple[Run, Run]:
        nothing = Measured(measurements=(), passes=0, interrupted=False, duration_s=duration_s)
        pair = recording.new_id(started_at)
        first, second = (
            recording.assemble(
                Subject(commit=specimen.commit, kernels=specimen.kernels),
                replace(nothing, measurements=tuple(measurements)),
                recorded_in(specimen.cell.variant.installation, self.environment),
                run_id=recording.new_id(started_at),
                started_at=started_at,
                trigger=BISECT_TRIGGER,
                attempt=1,
                pair=pair,
            )
            for specimen, measurements in zip(specimens, rows, strict=True)
        )
        return first, second


def under(side: Side, contract: str) -> RecordedCell:
    """What a side has of the cell under a contract."""
    return next(each for each in side.cells if each.contract and each.contract.label == contract)


def as_sides(runs: Sequence[Run]) -> Sides:
    """Two runs as what is compared."""
    before, after = (
        Side([run_summary(run)], [summarised(run.run_id, row) for row in run.measurements])
        for run in runs
    )
    return before, after
