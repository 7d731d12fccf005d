"""What becomes of comparisons before they are a gate's: blame, haste, and what is accepted."""

from dataclasses import replace

import pytest
import records

from perfci.decision.compare import Side, assumed_floor
from perfci.decision.ladder import Thresholds
from perfci.errors import ExitCode
from perfci.gate.verdicts import Rules, accept, decide, name_waiting, without_haste, worst_code
from perfci.history.model import Comparison, SeriesKey, Status, Verdict
from perfci.policy import Accepted

_KEY = SeriesKey(
    testbed="bench",
    device_model="Some CPU",
    kernel="rope",
    case="headline",
    variant="tiled",
    contract="cpu/1",
)
_SLOWER = Comparison(
    key=_KEY, verdict=Verdict.REGRESSION, ratio=1.08, interval=(1.06, 1.1), paired_passes=12
)
_RULES = Rules(thresholds=Thresholds(), floors={_KEY: assumed_floor("cold/1")})


def _decide(before: Status, after: Status) -> Comparison:
    sides = [
        Side(
            [replace(records.summary(run_id=name), pair="p")],
            [records.cell(run_id=name, status=status, message=f"{name} said\nmuch")],
        )
        for name, status in (("base", before), ("head", after))
    ]
    (decided,) = decide(*sides, _RULES, look=0)
    return decided


@pytest.mark.parametrize(
    ("before", "after", "verdict", "reason"),
    [
        (
            Status.BUILD_FAILED,
            Status.MISSING,
            Verdict.MISSING,
            "the base has nothing to compare with: build failed: base said",
        ),
        (
            Status.WRONG_VALUES,
            Status.MISSING,
            Verdict.NEW,
            "right, where the base is not (wrong values); timed once it is merged",
        ),
        (Status.MISSING, Status.BUILD_FAILED, Verdict.MISSING, "build failed: head said"),
        (Status.MISSING, Status.WRONG_SHAPE, Verdict.INCORRECT, "wrong shape: head said"),
        (
            Status.WRONG_SHAPE,
            Status.WRONG_VALUES,
            Verdict.KNOWN_INCORRECT,
            "wrong values: head said (so was the baseline)",
        ),
    ],
)
def test_who_is_to_blame_for_a_cell_without_figures(
    before: Status, after: Status, verdict: Verdict, reason: str
) -> None:
    decided = _decide(before, after)
    assert (decided.verdict, decided.reason) == (verdict, reason)


def test_fewer_passes_than_the_first_rung_decide_nothing() -> None:
    hasty = without_haste(_SLOWER, 5)
    assert hasty.verdict is Verdict.INCONCLUSIVE
    assert hasty.reason == "stopped after 5 of at least 6 passes"
    assert (hasty.ratio, hasty.interval, hasty.smallest_visible_change) == (None, None, None)
    assert without_haste(_SLOWER, 6) is _SLOWER
    gone = Comparison(key=_KEY, verdict=Verdict.MISSING)
    assert without_haste(gone, 1) is gone


def test_what_waits_gets_further_passes() -> None:
    waits = replace(_SLOWER, verdict=Verdict.INCONCLUSIVE, waits=True)
    assert name_waiting([_SLOWER]) == set()
    assert name_waiting([_SLOWER, waits]) == {("rope", "tiled", "headline")}


@pytest.mark.parametrize(
    ("accepted", "is_accepted"),
    [
        (Accepted(kernel="rope", slower_by=0.1, reason="why"), True),
        (Accepted(kernel="rope", slower_by=0.09, reason="why"), False),
        (Accepted(kernel="rope", variant="tiled", case="headline", slower_by=1, reason="w"), True),
        (Accepted(kernel="rope", variant="other", slower_by=1, reason="why"), False),
        (Accepted(kernel="rope", case="other", slower_by=1, reason="why"), False),
        (Accepted(kernel="norm", slower_by=1, reason="why"), False),
    ],
)
def test_a_slow_down_is_accepted_where_all_of_its_interval_is(
    accepted: Accepted, is_accepted: bool
) -> None:
    (explained,), keys = accept([_SLOWER], [accepted])
    assert keys == ({_KEY} if is_accepted else set())
    assert explained.verdict is Verdict.REGRESSION
    assert explained.reason.startswith("accepted up to +" if is_accepted else "")


def test_a_regression_on_one_of_several_devices_is_the_worst() -> None:
    codes = (ExitCode.FINE, ExitCode.REGRESSION_OR_INCORRECT, ExitCode.MISSING_CELLS)
    assert worst_code(codes) is ExitCode.REGRESSION_OR_INCORRECT
    assert worst_code(codes[::2]) is ExitCode.MISSING_CELLS


def test_nothing_but_a_regression_can_be_accepted() -> None:
    accepted = Accepted(kernel="rope", slower_by=10.0, reason="why")
    for verdict in set(Verdict) - {Verdict.REGRESSION}:
        assert accept([replace(_SLOWER, verdict=verdict)], [accepted])[1] == frozenset()
