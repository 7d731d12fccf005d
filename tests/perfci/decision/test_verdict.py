import pytest
from records import measurement

from perfci.decision.verdict import WORST_FIRST, exit_code, run_exit_code, sort_worst_first
from perfci.errors import ExitCode
from perfci.history.model import Comparison, SeriesKey, Status, Verdict


def _comparison(verdict: Verdict, kernel: str = "rope", ratio: float | None = None) -> Comparison:
    key = SeriesKey(testbed="bench", device_model="CPU", kernel=kernel, case="c", variant="v")
    return Comparison(key=key, verdict=verdict, ratio=ratio)


def test_every_verdict_has_its_place() -> None:
    assert sorted(WORST_FIRST) == sorted(Verdict)


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        (["unchanged", "improvement", "known_incorrect"], 0),
        (["unchanged", "inconclusive"], 0),
        (["unchanged", "regression"], 1),
        (["missing", "incomparable", "regression"], 1),
        (["missing", "incomparable", "incorrect"], 1),
        (["improvement", "incomparable", "missing"], 9),
        (["incomparable", "unchanged"], 7),
        ([], 9),
    ],
)
def test_exit_code_is_that_of_the_worst(verdicts: list[str], code: int) -> None:
    assert exit_code([_comparison(Verdict(each)) for each in verdicts]) == code


def test_inconclusive_fails_only_when_asked_and_after_all_else() -> None:
    inconclusive = _comparison(Verdict.INCONCLUSIVE)
    assert exit_code([inconclusive], fail_on_inconclusive=True) == ExitCode.INCONCLUSIVE
    for verdict, code in ((Verdict.REGRESSION, 1), (Verdict.MISSING, 9), (Verdict.INCOMPARABLE, 7)):
        assert exit_code([inconclusive, _comparison(verdict)], fail_on_inconclusive=True) == code


def test_worst_first_then_slowest_first_then_by_name() -> None:
    comparisons = [
        _comparison(Verdict.UNCHANGED, "a", 1.0),
        _comparison(Verdict.REGRESSION, "b", 1.2),
        _comparison(Verdict.REGRESSION, "c", 3.0),
        _comparison(Verdict.MISSING, "e"),
        _comparison(Verdict.MISSING, "d"),
        _comparison(Verdict.INCORRECT, "f"),
    ]
    assert [each.key.kernel for each in sort_worst_first(comparisons)] == list("fcbdea")


def test_a_failed_anchor_is_no_failure_of_the_code() -> None:
    failed = measurement(status=Status.TIMEOUT)
    anchor = measurement(kernel="perfci_copy", status=Status.TIMEOUT)
    passed = measurement((1.0,))
    assert run_exit_code([passed, anchor]) is ExitCode.FINE
    assert run_exit_code([passed, failed, anchor]) is ExitCode.REGRESSION_OR_INCORRECT
