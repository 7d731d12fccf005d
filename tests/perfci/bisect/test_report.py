"""What a bisection says where it is not sure, and that nothing of it is wider than a screen."""

import math

import click
import pytest
import records

from perfci.bisect.answer import Bisection, Confirmation, Ending, Ends
from perfci.bisect.bisection import Likeness
from perfci.bisect.notebook import Finding, Proof, Question, Symptom
from perfci.bisect.report import bisect_text, describe_finding, format_confidence
from perfci.decision.stats import Estimate
from perfci.history.model import Commit, Comparison, SeriesKey, Verdict

_CHANGE = Estimate(mean=math.log(1.2), variance=1e-6, degrees=20.0)


def _commit(digit: str, subject: str, *parents: str) -> Commit:
    return Commit(
        sha=digit * 40,
        committed_at=records.MOMENT,
        subject=subject,
        parents=tuple(each * 40 for each in parents),
    )


def _bisection(
    ending: Ending, *suspects: Commit, confirmations: tuple[Confirmation, ...] = ()
) -> Bisection:
    question = Question(
        good="a" * 40,
        bad="b" * 40,
        kernel="axpb",
        variant="plain",
        case="large",
        timer="",
        environment=records.environment("bench"),
        settings="",
    )
    return Bisection(
        question=question,
        good=_commit("a", "Begin"),
        bad=_commit("b", "End"),
        count=12,
        ending=ending,
        ends=Ends(proof=Proof(symptom=Symptom.SLOWER, timer="cpu/1", change=_CHANGE)),
        findings=(
            (
                _commit("c", "A subject that is far longer than what a line can hold " * 3),
                Finding(sha="c" * 40, likeness=Likeness.BAD, change=_CHANGE, passes=6),
            ),
        ),
        suspects=suspects,
        confirmations=confirmations,
        confidence=0.9876,
        passes=30,
        spent_s=75.0,
    )


def _text(bisection: Bisection) -> str:
    lines = [click.unstyle(line) for line in bisect_text(bisection, None)]
    assert max(map(len, lines)) <= 80
    return " ".join(" ".join(lines).split())


def test_one_that_is_as_fast_as_its_parent_is_not_simply_blamed() -> None:
    parent = _commit("d", "Before")
    key = SeriesKey(
        testbed="bench",
        device_model="Some CPU",
        kernel="axpb",
        case="large",
        variant="plain",
        contract="cpu/1",
    )
    comparison = Comparison(
        key=key,
        verdict=Verdict.UNCHANGED,
        baseline_ns=1e3,
        contender_ns=1.01e3,
        ratio=1.01,
        interval=(0.99, 1.03),
        paired_passes=12,
    )
    beside = Confirmation(parent=parent, is_confirmed=False, comparison=comparison)
    culprit = _commit("c", "Suspected", "d")
    text = _text(_bisection(Ending.UNCONFIRMED, culprit, confirmations=(beside,)))
    assert "the bad one is slower, +20.0 %, [+19.7, +20.3] %, by cpu/1" in text
    assert "1.00 µs → 1.01 µs, +1.0 %, [−1.0, +3.0] %, in 12 passes" in text
    assert "It does not differ so from its parent: the change came in parts" in text
    assert "12 commits, 1 step, 30 passes in 1 m 15 s; confidence 98.8 %" in text


def test_where_the_budget_ended_nothing_is_blamed_and_no_confidence_claimed() -> None:
    suspects = (_commit("c", "One"), _commit("d", "Other"))
    text = _text(_bisection(Ending.OUT_OF_TIME, *suspects))
    assert "The budget ended with 2 commits left; the same command goes on" in text
    assert "confidence" not in text
    assert "first bad commit" not in text


@pytest.mark.parametrize(
    ("confidence", "words"), [(1.0, "above 99.9 %"), (0.9995, "above 99.9 %"), (0.95, "95.0 %")]
)
def test_nothing_is_certain(confidence: float, words: str) -> None:
    assert format_confidence(confidence) == words


def test_a_finding_says_from_whom_it_has_its_verdict() -> None:
    taken = Finding(likeness=Likeness.BAD, same_as="e" * 40, change=_CHANGE)
    assert describe_finding(taken) == "bad: the same code as eeeeeeeeee"
    measured = Finding(likeness=Likeness.BAD, change=_CHANGE, reason="it has a part of the change")
    assert describe_finding(measured) == (
        "bad, +20.0 % against the good end: it has a part of the change"
    )
