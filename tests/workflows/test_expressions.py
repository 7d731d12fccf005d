"""The expressions that the driver of workflows works out, and those that it refuses."""

from typing import Any

import pytest
from expressions import ExpressionError, Missing, evaluate, fill_in, find_expressions

_CONTEXTS = {
    "github": {"event": {"action": "opened"}, "ref": "refs/heads/main", "run_attempt": 2},
    "needs": Missing(plan={"outputs": {"act": "gate", "runners": '["h200", "a100"]'}}),
}
_FUNCTIONS = {"always": lambda: True, "cancelled": lambda: False}


def _evaluate(text: str) -> Any:
    return evaluate(text, _CONTEXTS, _FUNCTIONS)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("needs.plan.outputs.act != 'nothing'", True),
        ("github.event.action == 'OPENED'", True),
        ("github.event.absent.more", None),
        ("github.event.absent || 'else'", "else"),
        ("!cancelled() && github.ref == 'refs/heads/main'", True),
        ("always() && (false || 'it''s')", "it's"),
        ('contains(fromJSON(\'["run", "gate"]\'), needs.plan.outputs.act)', True),
        ("contains('a sentence', 'none')", False),
        ("github.run_attempt == 2", True),
        ("fromJSON(needs.plan.outputs.runners)", ["h200", "a100"]),
    ],
)
def test_value(text: str, value: object) -> None:
    assert _evaluate(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "secrets.TOKEN",
        "needs.measure.result",
        "hashFiles('**')",
        "github.ref + 1",
        "github.ref == 'a' 'b'",
        "github['ref']",
        "(true",
        "'open",
        "github.run_attempt == '2'",
        "",
    ],
)
def test_what_is_not_known_is_refused(text: str) -> None:
    with pytest.raises(ExpressionError):
        _evaluate(text)


def test_text_around_an_expression() -> None:
    assert fill_in("parcel-${{ github.run_attempt }}", _CONTEXTS, _FUNCTIONS) == "parcel-2"
    assert fill_in("${{ github.run_attempt }}", _CONTEXTS, _FUNCTIONS) == 2
    with pytest.raises(ExpressionError):
        fill_in("parcel-${{ github.run_attempt", _CONTEXTS, _FUNCTIONS)
    with pytest.raises(ExpressionError):
        fill_in("${{ github.event }} is pasted", _CONTEXTS, _FUNCTIONS)


def test_expressions_are_found_wherever_they_stand() -> None:
    part = {"if": "a == b", "steps": [{"if": "${{ c }}", "with": {"ref": "x-${{ d }}-${{ e }}"}}]}
    assert [each.strip() for each in find_expressions(part)] == ["a == b", "c", "d", "e"]
