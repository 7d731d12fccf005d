"""What all runners together say, as lines for a terminal."""

from perfci.ci.comment import write_title
from perfci.ci.conclusion import SYMBOLS, conclude
from perfci.ci.merging import Report, Ruling
from perfci.history.text import one_line, without_commands
from perfci.reports.columns import wrap
from perfci.reports.comparison import count_verdicts


def ruling_text(ruling: Ruling) -> list[str]:
    """Write a ruling: what it amounts to, then each runner, then what does not count."""
    conclusion = conclude(ruling)
    lines = wrap(f"{SYMBOLS[conclusion]} {conclusion}: {write_title(ruling)}", indent=0)
    lines += wrap(one_line(ruling.reason), indent=2) if ruling.reason else []
    for each in ruling.reports:
        lines += wrap(f"{each.runner}: {_write_report(each)}", indent=2)
    for note in ruling.notes:
        lines += wrap(f"not counted: {one_line(note)}", indent=2)
    return [without_commands(each) for each in lines]


def _write_report(report: Report) -> str:
    if report.problem:
        return f"missing: it {report.problem}"
    cells = f"{count_verdicts(report.cells)}, " if report.cells else ""
    return f"{cells}exit code {report.exit_code}"
