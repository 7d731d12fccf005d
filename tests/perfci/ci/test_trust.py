"""What is believed of what a workflow hands over: of the own code its word, of a fork's none."""

from dataclasses import replace
from typing import Any

import attempts
import parcels
import pytest
import rulings

from perfci.ci.act import Act
from perfci.ci.attempt import Attempt
from perfci.ci.conclusion import Conclusion, conclude
from perfci.ci.merging import Found, Ruling
from perfci.ci.parcel import Parcel
from perfci.ci.settings import CiSettings
from perfci.ci.trust import Fork, rule
from perfci.ci.verdict_file import RunnerVerdict, VerdictFile

_OWN = attempts.attempt()
_FORKED = attempts.attempt(head_repository=attempts.FORK)
_SETTINGS = CiSettings(runners=rulings.RUNNERS)


def _claim(**fields: Any) -> VerdictFile:
    known: dict[str, Any] = {
        "act": Act.NOTHING,
        "reason": "no kernel is touched",
        "is_admitted": True,
        "head": parcels.HEAD,
        "run_id": "4711",
        "attempt": 1,
        "exit_code": 0,
        "conclusion": Conclusion.SKIPPED,
        "title": "nothing to measure",
        "runners": (),
        "notes": (),
    }
    return VerdictFile(**{**known, **fields})


def _rule(
    attempt: Attempt, claim: VerdictFile | None, *handed: Parcel, fork: Fork | None = None
) -> Ruling:
    return rule(attempt, claim, Found(parcels=handed), _SETTINGS, fork)


def test_of_the_own_code_nothing_is_nothing() -> None:
    ruling = _rule(_OWN, _claim())
    assert (ruling.act, ruling.reason) == (Act.NOTHING, "no kernel is touched")
    assert conclude(ruling) is Conclusion.SKIPPED


@pytest.mark.parametrize("fields", [{"head": "a" * 40}, {"run_id": "1"}, {"attempt": 2}])
def test_a_claim_about_something_else_is_none(fields: dict[str, Any]) -> None:
    ruling = _rule(_OWN, _claim(**fields))
    assert [each.runner for each in ruling.missing] == ["h200", "a100"]


def test_of_the_own_code_the_workflow_says_who_was_asked() -> None:
    asked = RunnerVerdict(runner="h200", exit_code=0, problem="", counts=())
    claim = _claim(act=Act.GATE, runners=(asked,))
    ruling = _rule(_OWN, claim, rulings.green("h200"))
    assert conclude(ruling) is Conclusion.SUCCESS
    assert conclude(_rule(_OWN, None, rulings.green("h200"))) is Conclusion.FAILURE


def test_a_claim_is_not_what_decides() -> None:
    """Only the parcels are: the claim of success is not even looked at."""
    asked = RunnerVerdict(runner="h200", exit_code=0, problem="", counts=())
    claim = _claim(act=Act.GATE, runners=(asked,), conclusion=Conclusion.SUCCESS)
    assert conclude(_rule(_OWN, claim, rulings.red("h200"))) is Conclusion.FAILURE


_PARCELS = tuple(rulings.green(each) for each in rulings.RUNNERS)


def test_a_forks_parcels_count_once_a_member_has_approved_it() -> None:
    ruling = _rule(_FORKED, None, *_PARCELS, fork=Fork(is_approved=True, is_touched=True))
    assert conclude(ruling) is Conclusion.SUCCESS
    assert "fork/kernels" in ruling.reason


def test_a_forks_parcels_without_approval_are_forged() -> None:
    ruling = _rule(_FORKED, None, *_PARCELS, fork=Fork(is_approved=False, is_touched=True))
    assert conclude(ruling) is Conclusion.ACTION_REQUIRED
    assert ruling.notes == (
        "h200 has reported without approval",
        "a100 has reported without approval",
    )
    assert "'perf-approved'" in ruling.reason


@pytest.mark.parametrize("claim", [None, _claim(), _claim(is_admitted=False)])
@pytest.mark.parametrize("is_approved", [True, False])
def test_a_fork_that_touches_no_kernel_is_not_measured(
    claim: VerdictFile | None, is_approved: bool
) -> None:
    fork = Fork(is_approved=is_approved, is_touched=False)
    assert conclude(_rule(_FORKED, claim, fork=fork)) is Conclusion.SKIPPED


@pytest.mark.parametrize(
    ("claim", "is_approved", "conclusion"),
    [
        (_claim(), False, Conclusion.ACTION_REQUIRED),  # says that there is nothing to measure
        (_claim(is_admitted=False), False, Conclusion.ACTION_REQUIRED),
        (_claim(is_admitted=False), True, Conclusion.ACTION_REQUIRED),  # an old label
        (None, False, Conclusion.ACTION_REQUIRED),
        (None, True, Conclusion.FAILURE),  # approved, and nobody has reported
        (_claim(), True, Conclusion.FAILURE),
    ],
)
def test_a_fork_that_touches_kernels_is_never_green_without_parcels(
    claim: VerdictFile | None, is_approved: bool, conclusion: Conclusion
) -> None:
    fork = Fork(is_approved=is_approved, is_touched=True)
    assert conclude(_rule(_FORKED, claim, fork=fork)) is conclusion


def test_a_forks_claim_does_not_say_who_was_asked() -> None:
    asked = RunnerVerdict(runner="h200", exit_code=0, problem="", counts=())
    claim = _claim(act=Act.GATE, runners=(asked,))
    fork = Fork(is_approved=True, is_touched=True)
    ruling = _rule(_FORKED, claim, rulings.green("h200"), fork=fork)
    assert [each.runner for each in ruling.missing] == ["a100"]


def test_a_push_is_a_run() -> None:
    push = replace(_OWN, kind="push")
    done = [
        parcels.parcel(runner=each, act=Act.RUN, exit_code=0, gates=()) for each in rulings.RUNNERS
    ]
    assert conclude(_rule(push, None, *done)) is Conclusion.SUCCESS
    assert conclude(_rule(_OWN, None, *done)) is Conclusion.FAILURE
