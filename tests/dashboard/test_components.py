import pytest

from perfci.dashboard import components
from perfci.history.model import Status, Verdict


@pytest.mark.parametrize("verdict", list(Verdict))
def test_red_is_a_regression_and_green_was_measured(verdict: Verdict) -> None:
    tone = {
        Verdict.REGRESSION: "regression",
        Verdict.IMPROVEMENT: "measured",
        Verdict.UNCHANGED: "measured",
    }.get(verdict, "neutral")
    mark = components.verdict_mark(verdict, "+1.0 %")
    assert mark.className.split()[1] == tone
    assert verdict.value.replace("_", " ") in str(mark)


def test_the_tones_never_read_the_same_without_colour() -> None:
    marks = {verdict: str(components.verdict_mark(verdict)) for verdict in Verdict}
    assert len(set(marks.values())) == len(Verdict)


@pytest.mark.parametrize("status", list(Status))
def test_a_status_is_in_words(status: Status) -> None:
    mark = components.status_mark(status)
    assert status.value.replace("_", " ") in str(mark)
    assert ("failed" in mark.className) == status.is_failure


def test_one_state_is_no_choice() -> None:
    choice = components.Choice(label="a", href="/", chosen=True)
    assert components.choices("Case", [choice]) is None
    assert components.choices("Case", []) is None


def test_facts_leave_out_what_is_not_known() -> None:
    shown = components.facts([("a", "x"), ("b", None), ("c", "")])
    assert len(shown.children) == 1


def test_counts_leave_out_zeros() -> None:
    assert components.counts([("passed", 1200), ("missing", 0), ("timeout", 1)]) == (
        "1,200 passed · 1 timeout"
    )


def test_verdicts_are_counted_in_words() -> None:
    assert "2 " in str(components.verdict_count(Verdict.REGRESSION, 2))
    assert "regressions" in str(components.verdict_count(Verdict.REGRESSION, 2))
    assert "regressions" not in str(components.verdict_count(Verdict.REGRESSION, 1))
    assert "inconclusives" not in str(components.verdict_count(Verdict.INCONCLUSIVE, 2))


def test_a_name_breaks_behind_its_underscores_only() -> None:
    parts = components.breakable("thread_per_query")
    assert [part for part in parts if isinstance(part, str)] == [
        "thread",
        "_",
        "per",
        "_",
        "query",
    ]
    assert [type(part).__name__ for part in parts].count("Wbr") == 2
    assert components.breakable("tiled") == ["tiled"]
