"""A ruling in Markdown, within what a comment, a check run or a job summary on GitHub may hold."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from perfci import units
from perfci.ci.act import Act
from perfci.ci.conclusion import SYMBOLS, conclude
from perfci.ci.judgement import JudgedCell, Judgement
from perfci.ci.merging import Report, Ruling
from perfci.ci.parcel import Parcel
from perfci.gate.verdicts import SAME_CODE, find_same
from perfci.history.model import Comparison, Verdict
from perfci.history.text import one_line
from perfci.reports.comparison import count_verdicts, give_reason, name_cell, write_verdict
from perfci.reports.differences import Differences
from perfci.reports.gate import (
    describe_checked,
    describe_ending,
    describe_same,
    describe_since,
    find_drift,
    find_others,
)
from perfci.reports.markdown import (
    add_left_out,
    count_cut,
    describe_far,
    escape,
    folded,
    write_environment,
    write_failed,
    write_list,
)
from perfci.reports.passes import HEADING_OF_SIDES, write_baseline, write_change

LONGEST_BYTES = 65_000
"""GitHub takes 65,536 characters of a comment, 65,535 of a check run: with room for the mark."""

_LONGEST_TITLE = 200

_ROWS = (10_000, 1_000, 300, 100, 30, 10, 3, 1)
RED = (Verdict.INCORRECT, Verdict.REGRESSION, Verdict.MISSING, Verdict.INCOMPARABLE)
_WHOLE = "The whole of it is in the artefacts of the run: `verdict.json`, and a parcel a runner."


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What a report is called, and where its run is to be seen; ``url`` is empty if nowhere."""

    check: str = "perfci"
    url: str = ""


def write_title(ruling: Ruling) -> str:
    """What it amounts to, in a line of plain text."""
    if ruling.act is Act.NOTHING:
        return "nothing to measure" if ruling.is_admitted else "waits for approval"
    parts = [count_verdicts(cell for _, cell in ruling.cells)] if ruling.cells else []
    parts += [f"{each.runner} {each.problem}" for each in ruling.missing]
    parts += [
        f"{each.runner}: {failure}"
        for each in ruling.reports
        if not each.problem and (failure := _find_failure(each))
    ]
    count = len(ruling.reports)
    done = f"{count} of {units.count_things(count, 'runner')}: {ruling.act} done"
    return one_line("; ".join(parts) or done, limit=_LONGEST_TITLE)


def write_markdown(ruling: Ruling, place: Place, *, longest_bytes: int) -> str:
    """Write a ruling, with what is not red folded away, in at most so many bytes of UTF-8.

    What is cut is counted. The worst cells are kept longest.
    """
    shortest = ""
    for rows in _ROWS:
        shortest = _write(ruling, place, rows)
        if len(shortest.encode()) <= longest_bytes:
            return shortest
    return shortest.encode()[:longest_bytes].decode(errors="ignore")


def _write(ruling: Ruling, place: Place, rows: int) -> str:
    symbol = SYMBOLS[conclude(ruling)]
    environments = _find_environment_changes(ruling)
    parts = [
        f"### {symbol} {escape(place.check)}: {escape(write_title(ruling))}",
        *_write_head(ruling),
        *(write_environment(each) for each in environments[:rows]),
        *count_cut(len(environments) - rows),
        write_list(
            "The head changes the rules. Nothing of it counts here:", _find_changes(ruling), rows
        ),
        _write_reports(ruling.reports, rows),
        write_list("Not counted:", ruling.notes, rows),
        *_write_cells(ruling, rows),
        write_list("", _find_loads(ruling), rows),
        *(folded(title, text, fold=True) for title, text in _write_details(ruling, rows)),
        _write_foot(ruling, place.url),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _write_head(ruling: Ruling) -> Iterator[str]:
    head = units.shorten_sha(ruling.head or "")
    gate = next(_gates(ruling), None)
    if gate is None:
        yield f"`{head}`: {escape(ruling.reason)}." if head else f"{escape(ruling.reason)}."
        return
    base = units.shorten_sha(gate.base.sha)
    how = f" ({escape(gate.found)})" if gate.found != gate.base.sha else ""
    yield f"`{head}` ({escape(gate.head.subject)}) against `{base}`{how}. {escape(ruling.reason)}."


def _write_foot(ruling: Ruling, url: str) -> str:
    if not ruling.reports:
        return ""
    if not ruling.run_id:  # a cron job's or a shell's, which is nowhere to be seen
        return _WHOLE
    run = f"Run {ruling.run_id}, attempt {ruling.attempt}"
    linked = f"[{escape(run)}]({url})" if url else escape(run)
    return f"{linked}. {_WHOLE}"


def _write_reports(reports: Sequence[Report], rows: int) -> str:
    if not reports:
        return ""
    ordered = sorted(reports, key=lambda each: (not each.problem, each.exit_code == 0))
    lines = ["| verdict | runner | device | |", "| - | - | - | - |"]
    told = [f"| {' | '.join(row)} |" for each in ordered for row in _report_rows(each)]
    return "\n".join([*lines, *told[:rows], *count_cut(len(told) - rows)])


def _report_rows(report: Report) -> Iterator[tuple[str, ...]]:
    runner, parcel = escape(report.runner), report.parcel
    if report.problem or parcel is None:
        yield "**–\u00a0missing**", f"**{runner}**", "", escape(report.problem)
        return
    for gate in parcel.gates:
        model = escape(gate.environment.device.model)
        yield escape(count_verdicts(gate.comparisons)), runner, model, escape(describe_ending(gate))
    failure = _find_failure(report)
    if failure or not parcel.gates:
        yield escape(failure or f"{parcel.act} done"), runner, "", _write_time(parcel)


def _write_time(parcel: Parcel) -> str:
    return units.format_duration(sum(each.duration_s for each in parcel.steps))


def _find_failure(report: Report) -> str:
    """What went wrong on a runner beside what its cells say; empty where nothing did."""
    parcel, code = report.parcel, report.exit_code
    if parcel is None or not code:
        return ""
    if any(gate.exit_code == code for gate in parcel.gates):
        return ""
    return parcel.error or f"{parcel.act} has ended with exit code {code}"


def _find_environment_changes(ruling: Ruling) -> list[str]:
    """What the head changes of the environment, each once: runners may have other versions."""
    return [*dict.fromkeys(gate.environment_change for gate in _gates(ruling))]


def _find_changes(ruling: Ruling) -> list[str]:
    """What the head changes of the rules, each once: all runners say the same of it."""
    return [*dict.fromkeys(change for gate in _gates(ruling) for change in gate.changes)]


def _find_loads(ruling: Ruling) -> list[str]:
    """Which runners others kept busy while they measured."""
    return [f"{runner}: {gate.load}" for runner, gate in _gates_with_runners(ruling) if gate.load]


def _write_cells(ruling: Ruling, rows: int) -> Iterator[str]:
    cells = ruling.cells
    measured = [(runner, cell) for runner, cell in cells if cell.reason != SAME_CODE]
    loud = [each for each in measured if each[1].verdict is not Verdict.UNCHANGED]
    quiet = [each for each in measured if each[1].verdict is Verdict.UNCHANGED]
    names_runner = len(ruling.reports) > 1
    yield _write_table(loud, rows, names_runner=names_runner)
    title = f"{units.format_count(len(quiet))} unchanged"
    table = _write_table(quiet, rows, names_runner=names_runner)
    yield folded(title, add_left_out(table, [cell for _, cell in quiet]), fold=True)
    same = len(cells) - len(measured)
    yield f"{describe_same(same)}." if same else ""
    for runner, gate in _gates_with_runners(ruling):
        where = f"{runner}: " if names_runner else ""
        same = len(find_same(gate.comparisons))
        yield write_failed(gate.failed_at_base, same, rows, where=where)
    checked = sum(gate.checked for gate in _gates(ruling))
    yield f"{describe_checked(checked)}." if checked else ""


def _write_table(cells: Sequence[tuple[str, JudgedCell]], rows: int, *, names_runner: bool) -> str:
    if not cells:
        return ""
    heads = ["verdict", "change", "cell", *(["runner"] if names_runner else []), "base", "interval"]
    lines = [f"| {' | '.join(heads)} |", f"|{' - |' * (len(heads) - 2)} -: | -: |"]
    for runner, cell in cells[:rows]:
        reason = escape(give_reason(cell, _differences_of(cell)))
        row = (
            _unbroken(write_verdict(cell.verdict)) + (" (accepted)" if cell.accepted else ""),
            _unbroken(write_change(cell)),
            escape(name_cell(cell)) + (f"<br><sub>{reason}</sub>" if reason else ""),
            *([escape(runner)] if names_runner else []),
            _unbroken(write_baseline(cell)),
            _unbroken(units.format_interval(cell.interval)),
        )
        lines.append(f"| {' | '.join(row)} |")
    return "\n".join([*lines, *count_cut(len(cells) - rows)])


def _unbroken(figure: str) -> str:
    """A figure that is not broken between number and unit."""
    return figure.replace(" ", "\u00a0")


def _differences_of(cell: JudgedCell) -> Differences:
    return {cell.key: cell.differences}


def _write_details(ruling: Ruling, rows: int) -> Iterator[tuple[str, str]]:
    """What stands below the table: titles and texts."""
    commands = _find_commands(ruling)
    if commands:
        cut = count_cut(len(commands) - rows)
        yield "To see it again", "\n".join(["```", *commands[:rows], "```", *cut])
    yield HEADING_OF_SIDES, write_list("", [*_find_far(ruling)], rows)
    yield (
        "Geometric means, of the cells timed on both sides",
        write_list("", [*_find_means(ruling)], rows),
    )
    yield "Errors and memory that changed besides", write_list("", [*_find_figures(ruling)], rows)
    past = [*_write_past(ruling, rows)]
    yield (
        "Over time: decides nothing here",
        "\n\n".join([*past[:rows], *count_cut(len(past) - rows)]),
    )


def _find_commands(ruling: Ruling) -> list[str]:
    """The command that repeats each red cell, with the runner that it was red on."""
    commands: dict[str, None] = {}
    bases = {
        each.runner: units.shorten_sha(each.parcel.base or "")
        for each in ruling.reports
        if each.parcel is not None
    }
    for runner, cell in ruling.cells:
        if cell.verdict in RED and not cell.accepted:
            key, head = cell.key, units.shorten_sha(ruling.head or "")
            words = ["perfci", "gate", "--base", bases[runner], "--head", head]
            words += ["--kernel", key.kernel, "--variant", key.variant, "--case", key.case]
            # It is there to be copied into a shell, and a name may come from a fork.
            commands[f"{shlex.join(_as_code(each) for each in words)}  # {runner}"] = None
    return [*commands]


def _as_code(text: str) -> str:
    """A word from outside within a block of code, which it cannot end."""
    return one_line(text).replace("`", "'")


def _find_far(ruling: Ruling) -> Iterator[str]:
    for runner, cell in ruling.cells:
        yield from describe_far(cell, f"{name_cell(cell)} on {runner}")


def _find_means(ruling: Ruling) -> Iterator[str]:
    for runner, gate in _gates_with_runners(ruling):
        for each in gate.means:
            if each.count == 1:
                continue  # it is in the table
            yield (
                f"{each.kernel} {each.contract} on {runner}: {units.format_change(each.ratio)} "
                f"over {units.count_things(each.count, 'cell')}"
            )


def _find_figures(ruling: Ruling) -> Iterator[str]:
    for runner, cell in ruling.cells:
        for each, figures in find_others([cell], _differences_of(cell)):
            yield f"{name_cell(each)} on {runner}: {figures}"


def _write_past(ruling: Ruling, rows: int) -> Iterator[str]:
    for runner, gate in _gates_with_runners(ruling):
        for since in gate.since:
            title = f"{runner}, {describe_since(since)}"
            slower = [_write_drift(each) for each in find_drift(since)]
            yield write_list(title, slower, rows) or escape(title)


def _write_drift(comparison: Comparison) -> str:
    return f"{name_cell(comparison)}: {units.format_change(comparison.ratio)}"


def _gates(ruling: Ruling) -> Iterator[Judgement]:
    return (gate for _, gate in _gates_with_runners(ruling))


def _gates_with_runners(ruling: Ruling) -> Iterator[tuple[str, Judgement]]:
    for report in ruling.reports:
        if report.parcel is not None and not report.problem:
            for gate in report.parcel.gates:
                yield report.runner, gate
