"""What all runners together say of a commit: one ruling, in which silence is never green."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfci import units
from perfci.ci.act import Act
from perfci.ci.entries import folders_in, is_there
from perfci.ci.event import Event
from perfci.ci.judgement import JudgedCell
from perfci.ci.parcel import FILE, LARGEST_PARCEL_BYTES, Parcel, read_parcel
from perfci.ci.plan import Plan
from perfci.decision.verdict import exit_code, rank
from perfci.errors import ExitCode, ParcelError
from perfci.history.model import Verdict
from perfci.history.text import one_line

_SAME_INPUT = "give merge the same --input as measure"
_MOST_PARCELS = 64
_LARGEST_TOTAL_BYTES = 2 * LARGEST_PARCEL_BYTES
"""Parcels may come from a fork: what is read is bounded, whatever is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What there have to be parcels of: which act, of which attempt at which commit, by whom."""

    act: Act
    head: str | None
    run_id: str
    attempt: int
    runners: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The parcels that could be read, and a line about each that could not."""

    parcels: tuple[Parcel, ...] = ()
    unreadable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What one runner said; ``problem`` says why it counts as missing, where it does."""

    runner: str
    parcel: Parcel | None = None
    problem: str = ""

    @property
    def cells(self) -> list[JudgedCell]:
        """All cells that it has judged, on whichever of its devices, if they count."""
        if self.parcel is None or self.problem:
            return []
        return [cell for gate in self.parcel.gates for cell in gate.comparisons]

    @property
    def exit_code(self) -> int:
        """What it amounts to: its own word, but never better than what its steps and cells say."""
        if self.parcel is None or self.problem:
            return ExitCode.MISSING_CELLS
        codes = [self.parcel.exit_code, *(each.exit_code for each in self.parcel.steps)]
        for gate in self.parcel.gates:
            codes.append(gate.exit_code)
            counted = [each for each in gate.comparisons if not each.accepted]
            if counted or not gate.comparisons:
                codes.append(exit_code(counted))
        return worst_of(codes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """One verdict over all runners.

    ``notes`` are about parcels that do not count. ``head`` is None of a branch that is gone. Where
    nothing is measured, ``act`` is nothing, and ``is_admitted`` says whether that is since nobody
    has approved it.
    """

    act: Act
    reason: str
    head: str | None
    run_id: str
    attempt: int
    is_admitted: bool = True
    reports: tuple[Report, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 if and only if every runner has reported that all is well."""
        if self.act is Act.NOTHING:
            return ExitCode.FINE if self.is_admitted else ExitCode.MISSING_CELLS
        return worst_of([each.exit_code for each in self.reports] or [ExitCode.MISSING_CELLS])

    @property
    def missing(self) -> list[Report]:
        """The reports that are none."""
        return [each for each in self.reports if each.problem]

    @property
    def cells(self) -> list[tuple[str, JudgedCell]]:
        """All cells with the runner that judged each, the worst first."""
        pairs = [(each.runner, cell) for each in self.reports for cell in each.cells]
        return sorted(pairs, key=lambda pair: (rank(pair[1]), pair[0]))

    @property
    def is_open(self) -> bool:
        """Whether a cell is inconclusive, so that green would say more than is known."""
        return any(
            cell.verdict is Verdict.INCONCLUSIVE for each in self.reports for cell in each.cells
        )


def worst_of(codes: Iterable[int]) -> int:
    """What several exit codes amount to: a regression anywhere, else the highest."""
    known = list(codes)
    regression = int(ExitCode.REGRESSION_OR_INCORRECT)
    return regression if regression in known else max(known)


def find_parcels(folders: Sequence[Path]) -> Found:
    """The parcels in folders, each a parcel itself or a folder of them."""
    parcels, unreadable, left_bytes = [], [], _LARGEST_TOTAL_BYTES
    candidates = [each for folder in folders for each in _candidates(folder)]
    for folder in candidates[:_MOST_PARCELS]:
        try:
            left_bytes -= _size_bytes(folder / FILE)
            if left_bytes >= 0:
                parcels.append(read_parcel(folder))
            else:
                unreadable.append(f"{one_line(folder.name)}: too large together: not read")
        except ParcelError as error:
            unreadable.append(_without_place(str(error), folder))
    if (more := len(candidates) - _MOST_PARCELS) > 0:
        unreadable.append(f"{units.count_things(more, 'more parcel')} than there may be: not read")
    return Found(parcels=tuple(parcels), unreadable=tuple(unreadable))


def rule_plan(plan: Plan, event: Event, found: Found) -> Ruling:
    """One ruling over a plan that was carried out, or that is to do nothing."""
    if plan.act is Act.NOTHING:
        return Ruling(
            act=plan.act,
            reason=plan.reason,
            head=plan.head,
            run_id=event.run_id,
            attempt=event.attempt,
            is_admitted=plan.is_admitted,
        )
    expected = Expected(
        act=plan.act,
        head=plan.head,
        run_id=event.run_id,
        attempt=event.attempt,
        runners=plan.runners,
    )
    return merge(expected, found, reason=plan.reason)


def merge(expected: Expected, found: Found, *, reason: str) -> Ruling:
    """One ruling from what was found; a parcel that is not as expected counts as missing."""
    strangers = [each for each in found.parcels if each.runner not in expected.runners]
    notes = [f"{each.runner} has reported and was not asked" for each in strangers]
    return Ruling(
        act=expected.act,
        reason=reason,
        head=expected.head,
        run_id=expected.run_id,
        attempt=expected.attempt,
        reports=tuple(_report_of(each, expected, found.parcels) for each in expected.runners),
        notes=(*found.unreadable, *notes),
    )


def _candidates(folder: Path) -> list[Path]:
    if is_there(folder / FILE):
        return [folder]
    return [each for each in folders_in(folder) if is_there(each / FILE)]


def _size_bytes(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError as error:
        where = one_line(str(path))
        raise ParcelError(f"{where}: cannot be read: {error.strerror}") from None


def _without_place(message: str, folder: Path) -> str:
    """A message that names a folder by its name; where it lies is of no use to a reader."""
    return message.replace(f"{folder.parent}/", "")


def _report_of(runner: str, expected: Expected, parcels: Sequence[Parcel]) -> Report:
    own = [each for each in parcels if each.runner == runner]
    # The artefacts of a run that was repeated may hold those of all its attempts.
    known = expected.run_id, expected.attempt
    own = [each for each in own if (each.run_id, each.attempt) == known] or own
    if not own:
        return Report(runner=runner, problem="did not report")
    if len(own) > 1:
        return Report(runner=runner, problem=f"has reported {len(own)} times")
    return Report(runner=runner, parcel=own[0], problem=_find_problem(own[0], expected))


def _find_problem(parcel: Parcel, expected: Expected) -> str:
    """Why a parcel is none of what was to be measured; empty where it is."""
    heads = {gate.head.sha for gate in parcel.gates} - {expected.head}
    is_dirty = any(gate.head.dirty is not None for gate in parcel.gates)
    bases = {gate.base.sha for gate in parcel.gates} - {parcel.base}
    is_green = parcel.exit_code == ExitCode.FINE
    is_empty = not parcel.steps or (parcel.act is Act.GATE and not parcel.gates)
    problems = (
        (parcel.head != expected.head, f"reported of another commit, {_short([parcel.head])}"),
        (parcel.run_id != expected.run_id, "reported of another run"),
        (
            parcel.attempt != expected.attempt,
            f"reported of attempt {parcel.attempt}; this is attempt {expected.attempt}",
        ),
        (
            parcel.act is not expected.act,
            f"has done '{parcel.act}', not '{expected.act}': {_SAME_INPUT}",
        ),
        (bool(heads), f"has judged another commit, {_short(heads)}"),
        (is_dirty, "has judged a changed working tree"),
        (bool(bases), f"has judged by another base, {_short(bases)}"),
        (is_green and is_empty, "says that all is well, of nothing that was done"),
    )
    return next((problem for is_so, problem in problems if is_so), "")


def _short(shas: Iterable[str]) -> str:
    return ", ".join(sorted(units.shorten_sha(each) for each in shas))
