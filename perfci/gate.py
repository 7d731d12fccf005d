"""What a gate decided: a verdict for each cell of a base, and how it came about. Torch-free.

What cannot be compared fails closed: it is missing or incomparable, never unchanged.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from perfci.compare import Floors, Side, compare
from perfci.history.model import Cell as RecordedCell
from perfci.history.model import Commit, Comparison, Environment, Run, SeriesKey, Status, Verdict
from perfci.machine import without_anchors
from perfci.matching import Unpaired
from perfci.noise import LADDER
from perfci.rungs import Ending
from perfci.selection import Cell
from perfci.sides import Ends
from perfci.timers import TIMERS, timers_on

SAME_CODE = "the same code: not measured"
_FROM_LATENCIES = (
    Verdict.REGRESSION,
    Verdict.IMPROVEMENT,
    Verdict.UNCHANGED,
    Verdict.INCONCLUSIVE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """What was decided on one device.

    ``changes`` are those that the head makes to the rules, which are the base's here.
    ``before`` and ``after`` are what was measured, ``runs`` the same to be recorded: none where
    nothing needed measuring, and then there is no ``ending``. ``needed_s`` is how long it would
    have been until the next rung.
    """

    ends: Ends
    base: Commit
    head: Commit
    changes: tuple[str, ...]
    environment: Environment
    comparisons: tuple[Comparison, ...]
    anchors: tuple[Comparison, ...]
    before: Side
    after: Side
    runs: tuple[Run, ...]
    passes: int
    ending: Ending | None
    budget_s: float
    spent_s: float
    needed_s: float
    interrupted: bool


def decide(before: Side, after: Side, floors: Floors, threshold: float) -> list[Comparison]:
    """The verdicts of what was measured, the machine's own cells aside."""
    one, other = without_anchors(before), without_anchors(after)
    compared = compare(one, other, floors=floors, threshold=threshold)
    base_ends = {key: cells[0] for key, cells in one.cells_by_key().items()}
    head_ends = {key: cells[0] for key, cells in other.cells_by_key().items()}
    return [
        _lay_to_base(each, base_ends.get(each.key), head_ends.get(each.key)) for each in compared
    ]


def is_decided(comparisons: Sequence[Comparison]) -> bool:
    """Whether no more passes are needed."""
    return not any(each.verdict is Verdict.INCONCLUSIVE for each in comparisons)


def _lay_to_base(
    comparison: Comparison, before: RecordedCell | None, after: RecordedCell | None
) -> Comparison:
    """Say of a head that was right, and not timed beside a base that failed, what it is.

    Where the base was wrong, it is new. Where the base did something else that is no figure,
    nothing is known: it stays missing.
    """
    if before is None or after is None or after.status is not Status.MISSING:
        return comparison
    words = before.status.value.replace("_", " ")
    if before.status.is_incorrect:
        reason = f"right, where the base is not ({words}); timed once it is merged"
        return replace(comparison, verdict=Verdict.NEW, reason=reason)
    first_line = next(iter(before.message.strip().splitlines()), "")
    reason = f"the base has nothing to compare with: {words}: {first_line}"
    return replace(comparison, verdict=Verdict.MISSING, reason=reason)


def without_haste(comparison: Comparison, passes: int) -> Comparison:
    """No verdict on a latency from fewer passes than the first rung has."""
    if passes >= LADDER[0] or comparison.verdict not in _FROM_LATENCIES:
        return comparison
    reason = f"the budget ended after {passes} of at least {LADDER[0]} passes"
    return replace(comparison, verdict=Verdict.INCONCLUSIVE, reason=reason)


def say_unpaired(where: Environment, unpaired: Unpaired) -> Iterator[Comparison]:
    """What is said of a cell that has nothing to be compared with."""
    for key in _keys(where, unpaired.cell):
        yield Comparison(key=key, verdict=unpaired.verdict, reason=unpaired.reason)


def say_same(where: Environment, pair: tuple[Cell, Cell]) -> Iterator[Comparison]:
    """What is said of a cell that runs the same code on both sides."""
    if pair[0].case.timed:
        for key in _keys(where, pair[0]):
            yield Comparison(key=key, verdict=Verdict.UNCHANGED, reason=SAME_CODE)


def _keys(where: Environment, cell: Cell) -> list[SeriesKey]:
    """The series of a cell: one a timer, or one without where it is only checked."""
    labels = [TIMERS[name].contract.label for name in timers_on(where.device.kind)]
    return [
        SeriesKey(
            testbed=where.testbed,
            device_model=where.device.model,
            kernel=cell.kernel.name,
            case=cell.case.name,
            variant=cell.variant.name,
            contract=label,
        )
        for label in (labels if cell.case.timed else [""])
    ]
