"""What the doctor found, as lines for a terminal, at most 80 wide."""

from collections.abc import Sequence

import click

from perfci.findings import Finding, State
from perfci.reports.columns import wrap

_MARKS = {
    State.PRESENT: ("✓", "green"),
    State.ABSENT: ("·", "yellow"),
    State.BROKEN: ("✗", "red"),
}
_INDENT = 17


def findings_table(findings: Sequence[Finding]) -> list[str]:
    """Write findings, each with its mark and its detail beside its name, and their sum."""
    lines = []
    for each in findings:
        mark, colour = _MARKS[each.state]
        first, *rest = wrap(each.detail, indent=_INDENT) or [""]
        lines.append(f"{click.style(mark, fg=colour)} {each.name:<{_INDENT - 3}} {first.strip()}")
        lines += rest
    broken = sum(each.state is State.BROKEN for each in findings)
    verdict = f"{broken} to put right" if broken else "ready to run"
    return [*lines, "", verdict]
