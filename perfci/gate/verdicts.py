"""What a gate decided: a verdict for each cell of a base, and how it came about. Torch-free.

What cannot be compared fails closed: it is missing or incomparable, never unchanged.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from perfci import units
from perfci.anchors.machine import without_anchors
from perfci.decision.compare import Floors, Side
from perfci.decision.ladder import LOOKS, Thresholds, judge, undecided
from perfci.decision.verdict import exit_code
from perfci.errors import ExitCode
from perfci.gate.matching import Name, Unpaired
from perfci.gate.past import Past
from perfci.gate.rungs import Ending
from perfci.gate.sides import Ends
from perfci.history.model import Cell as RecordedCell
from perfci.history.model import Commit, Comparison, Environment, Run, SeriesKey, Status, Verdict
from perfci.policy import Accepted
from perfci.selection import Cell
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

    ``environment_change`` says in what the sides' own environments differ, where they do.
    ``changes`` are those that the head makes to the rules, which are the base's here. ``accepted``
    are the regressions that the base accepts. ``checked`` counts the cells that are only checked,
    and right: these are in no comparison.
    ``before`` and ``after`` are what was measured, ``runs`` the same to be recorded: none where
    nothing needed measuring, and then there is no ``ending``. ``needed_s`` is how long it would
    have been until the next rung. ``unwatched`` says why a GPU's state was not read.
    """

    ends: Ends
    base: Commit
    head: Commit
    changes: tuple[str, ...]
    environment: Environment
    threshold: float
    comparisons: tuple[Comparison, ...]
    accepted: frozenset[SeriesKey]
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
    unwatched: str = ""
    environment_change: str = ""
    checked: int = 0
    past: Past = field(default_factory=Past)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """By what latencies are judged: the base's thresholds, and the noise of the testbed."""

    thresholds: Thresholds
    floors: Floors


def decide(before: Side, after: Side, rules: Rules, *, look: int) -> list[Comparison]:
    """The verdicts of what was measured, after a look of the ladder; the machine's cells aside."""
    one, other = without_anchors(before), without_anchors(after)
    judged = judge(one, other, look=look, thresholds=rules.thresholds, floors=rules.floors)
    base_ends = {key: cells[0] for key, cells in one.cells_by_key().items()}
    head_ends = {key: cells[0] for key, cells in other.cells_by_key().items()}
    return [_lay_to_base(each, base_ends.get(each.key), head_ends.get(each.key)) for each in judged]


def accept(
    comparisons: Iterable[Comparison], accepted: Sequence[Accepted]
) -> tuple[list[Comparison], frozenset[SeriesKey]]:
    """The comparisons, those regressions explained that are accepted, and which these are.

    A slow-down is accepted where its whole interval is inside of what was.
    """
    explained: list[Comparison] = []
    keys: set[SeriesKey] = set()
    for each in comparisons:
        known = next((one for one in accepted if _covers(one, each)), None)
        if known is None:
            explained.append(each)
            continue
        reason = f"accepted up to {units.format_change(1.0 + known.slower_by)}: {known.reason}"
        explained.append(replace(each, reason=reason))
        keys.add(each.key)
    return explained, frozenset(keys)


def exit_code_of(gate: Gate, *, fail_on_inconclusive: bool = False) -> ExitCode:
    """The exit code of the worst cell that was not accepted."""
    counted = [each for each in gate.comparisons if each.key not in gate.accepted]
    if gate.comparisons and not counted:
        return ExitCode.FINE
    return exit_code(counted, fail_on_inconclusive=fail_on_inconclusive)


def worst_code(codes: Sequence[ExitCode]) -> ExitCode:
    """What several devices amount to: a regression on any, else the highest."""
    regression = ExitCode.REGRESSION_OR_INCORRECT
    return regression if regression in codes else max(codes)


def _covers(accepted: Accepted, comparison: Comparison) -> bool:
    key, interval = comparison.key, comparison.interval
    return (
        comparison.verdict is Verdict.REGRESSION
        and accepted.kernel == key.kernel
        and accepted.variant in (None, key.variant)
        and accepted.case in (None, key.case)
        and interval is not None
        and interval[1] <= 1.0 + accepted.slower_by
    )


def name_waiting(comparisons: Iterable[Comparison]) -> set[Name]:
    """The cells of which further passes may decide a latency."""
    keys = undecided(list(comparisons))
    return {(each.kernel, each.variant, each.case) for each in keys}


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
    """No verdict on a latency, and no figure of a change, from fewer passes than the first rung."""
    if passes >= LOOKS[0] or comparison.verdict not in _FROM_LATENCIES:
        return comparison
    reason = f"stopped after {passes} of at least {LOOKS[0]} passes"
    return replace(
        comparison,
        verdict=Verdict.INCONCLUSIVE,
        reason=reason,
        ratio=None,
        interval=None,
        smallest_visible_change=None,
    )


def say_unpaired(where: Environment, unpaired: Unpaired) -> Iterator[Comparison]:
    """What is said of a cell that has nothing to be compared with."""
    for key in _keys(where, unpaired.cell):
        yield Comparison(key=key, verdict=unpaired.verdict, reason=unpaired.reason)


def find_same(comparisons: Iterable[Comparison]) -> list[Comparison]:
    """The cells that were not measured, since they run the same code on both sides."""
    return [each for each in comparisons if each.reason == SAME_CODE]


def say_same(where: Environment, pair: tuple[Cell, Cell]) -> Iterator[Comparison]:
    """What is said of a cell that runs the same code on both sides."""
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
