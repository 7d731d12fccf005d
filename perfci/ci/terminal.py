"""What is to be done about an event, and what all runners together say, as lines for a terminal."""

from perfci import units
from perfci.ci.comment import RED, write_title
from perfci.ci.conclusion import SYMBOLS, conclude
from perfci.ci.judgement import JudgedCell
from perfci.ci.merging import Report, Ruling
from perfci.ci.plan import Plan
from perfci.history.text import one_line, without_commands
from perfci.reports.columns import wrap
from perfci.reports.comparison import count_verdicts, give_reason, name_cell, write_verdict

_MOST_CELLS = 20


def plan_text(plan: Plan) -> list[str]:
    """Write a plan."""
    ends = (("base", plan.base), ("head", plan.head))
    parts = [
        str(plan.act),
        *(f"{name} {units.shorten_sha(sha)}" for name, sha in ends if sha),
        *(f"{name} {value}" for name, value in plan.options),
    ]
    lines = [*wrap(" · ".join(parts), indent=0), *wrap(one_line(plan.reason), indent=2)]
    if plan.runners:
        lines += wrap(f"runners: {', '.join(plan.runners)}", indent=2)
    if not plan.is_admitted:
        lines += wrap("not admitted to a runner: nothing is known of it", indent=2)
    return [without_commands(each) for each in lines]


def ruling_text(ruling: Ruling) -> list[str]:
    """Write a ruling: what it amounts to, each runner, red cells, then what does not count."""
    conclusion = conclude(ruling)
    lines = wrap(f"{SYMBOLS[conclusion]} {conclusion}: {write_title(ruling)}", indent=0)
    lines += wrap(one_line(ruling.reason), indent=2) if ruling.reason else []
    for each in ruling.reports:
        lines += wrap(f"{each.runner}: {_write_report(each)}", indent=2)
    red = [each for each in ruling.cells if each[1].verdict in RED and not each[1].accepted]
    for runner, cell in red[:_MOST_CELLS]:
        lines += wrap(f"{_write_cell(cell)} on {runner}", indent=2)
    if len(red) > _MOST_CELLS:
        lines.append(f"  … and {units.count_things(len(red) - _MOST_CELLS, 'cell')} more")
    for note in ruling.notes:
        lines += wrap(f"not counted: {one_line(note)}", indent=2)
    return [without_commands(each) for each in lines]


def _write_cell(cell: JudgedCell) -> str:
    change = f" {units.format_change(cell.ratio)}" if cell.ratio else ""
    reason = one_line(give_reason(cell, {cell.key: cell.differences}))
    told = f" ({reason})" if reason else ""
    return f"{write_verdict(cell.verdict)} · {one_line(name_cell(cell))}{change}{told}"


def _write_report(report: Report) -> str:
    if report.problem:
        return f"missing: it {report.problem}"
    cells = f"{count_verdicts(report.cells)}, " if report.cells else ""
    return f"{cells}exit code {report.exit_code}"
