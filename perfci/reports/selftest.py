"""A self-test as lines for a terminal, at most 80 wide."""

from collections import Counter
from collections.abc import Sequence

from perfci.reports.columns import Column, lay_out
from perfci.reports.text import list_reasons
from perfci.selftest.trial import Fate, Trial

_MARKS = {
    Fate.CAUGHT: "✓",
    Fate.ACCEPTED: "✓",
    Fate.SKIPPED: "·",
    Fate.NOT_CAUGHT: "✗",
    Fate.ACCUSED: "✗",
}
_PLANTED = (
    Column("#", align="right"),
    Column("planted", shrinks=True),
    Column("fate"),
    Column("by", shrinks=True),
)
_HONEST = (Column("honest", shrinks=True), Column("fate"), Column("at", shrinks=True))


def selftest_table(trials: Sequence[Trial]) -> list[str]:
    """Write the planted by number, then the honest, then in full what went wrong."""
    planted = sorted((each for each in trials if each.number), key=lambda each: each.number or 0)
    honest = [each for each in trials if not each.number]
    lines = lay_out(
        _PLANTED,
        [(str(each.number), each.title, _write(each.fate), each.reason) for each in planted],
    )
    lines += ["", *lay_out(_HONEST, [(e.title, _write(e.fate), e.reason) for e in honest]), ""]
    lines += list_reasons(
        (each.title, _write(each.fate), each.reason) for each in trials if each.fate.is_failure
    )
    return [*lines, "; ".join((_count("planted", planted), _count("honest", honest)))]


def _count(name: str, trials: Sequence[Trial]) -> str:
    counts = Counter(each.fate for each in trials)
    return f"{name}: " + ", ".join(f"{counts[fate]} {fate}" for fate in Fate if counts[fate])


def _write(fate: Fate) -> str:
    return f"{_MARKS[fate]} {fate}"
