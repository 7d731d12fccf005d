"""What moved though its code is the same, and when nothing may be laid to that."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from records import cell, launch, summary
from sides import STEADY

from perfci.decision.compare import Side, compare
from perfci.history.model import Cell, RunSummary, Verdict

_SLOW = tuple(2 * each for each in STEADY)
_CODE = (("host code", "aa11"), ("bounds", "as frozen"))
_LAUNCH = launch(
    grid=(64, 1, 1),
)


def _changed(run: RunSummary, **changes: Any) -> RunSummary:
    return replace(run, environment=replace(run.environment, **changes))


def _other_driver(run: RunSummary) -> RunSummary:
    return _changed(run, device=replace(run.environment.device, driver="999.1"))


def _as_it_is(run: RunSummary) -> RunSummary:
    return run


@pytest.mark.parametrize(
    ("changes", "of_run", "verdict"),
    [
        ({}, _as_it_is, Verdict.INCONCLUSIVE),
        ({}, lambda run: _changed(run, host="another"), Verdict.INCONCLUSIVE),
        ({"identity": (_CODE[0], ("bounds", "stale"))}, _as_it_is, Verdict.INCONCLUSIVE),
        ({"launches": (replace(_LAUNCH, spill_bytes=None),)}, _as_it_is, Verdict.INCONCLUSIVE),
        ({"identity": (("host code", "bb22"),)}, _as_it_is, Verdict.REGRESSION),
        ({"identity": ()}, _as_it_is, Verdict.REGRESSION),
        ({"launches": (replace(_LAUNCH, registers=64),)}, _as_it_is, Verdict.REGRESSION),
        ({"launches": (_LAUNCH, _LAUNCH)}, _as_it_is, Verdict.REGRESSION),
        ({}, lambda run: _changed(run, torch="9.9"), Verdict.REGRESSION),
        ({}, _other_driver, Verdict.REGRESSION),
    ],
)
def test_a_cell_of_the_same_code_has_no_verdict_by_runs_that_were_measured_apart(
    changes: dict[str, Any], of_run: Callable[[RunSummary], RunSummary], verdict: Verdict
) -> None:
    told = {"identity": _CODE, "launches": (_LAUNCH,)}
    before = replace(cell(STEADY, run_id="a"), **told)
    for means, is_slower in ((_SLOW, True), (tuple(each / 2 for each in STEADY), False)):
        after = replace(cell(means, run_id="b"), **{**told, **changes})
        (said,) = _compared(before, after, of_run)
        moved = Verdict.REGRESSION if is_slower else Verdict.IMPROVEMENT
        assert said.verdict is (moved if verdict is Verdict.REGRESSION else verdict)
        assert ("the same code, measured apart" in said.reason) == (said.verdict is not moved)
        assert said.ratio == pytest.approx(2.0 if is_slower else 0.5)


def test_an_anchor_shows_what_the_machine_did_though_its_code_is_the_same() -> None:
    before, after = (
        replace(cell(means, run_id=run_id), kernel="perfci_copy", identity=_CODE)
        for means, run_id in ((STEADY, "a"), (_SLOW, "b"))
    )
    (said,) = _compared(before, after, _as_it_is)
    assert said.verdict is Verdict.REGRESSION


def test_what_is_not_known_of_the_code_may_have_changed() -> None:
    told = (*_CODE, ("further code not read", "what it imports, or is linked with"))
    before, after = (
        replace(cell(means, run_id=run_id), identity=told)
        for means, run_id in ((STEADY, "a"), (_SLOW, "b"))
    )
    (said,) = _compared(before, after, _as_it_is)
    assert said.verdict is Verdict.REGRESSION


def _compared(before: Cell, after: Cell, of_run: Callable[[RunSummary], RunSummary]) -> Any:
    return compare(
        Side([summary(before.run_id)], [before]), Side([of_run(summary(after.run_id))], [after])
    )
