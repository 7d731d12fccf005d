"""What compute-sanitizer found, as lines for a terminal, at most 80 wide."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from perfci import units
from perfci.reports.columns import Column, lay_out, wrap
from perfci.reports.text import head
from perfci.tools.sanitizer import OPTIONS, Inspection, State

_SYMBOLS = {State.FOUND: "✗", State.FAILED: "✗", State.UNPROVED: "?", State.CLEAN: "✓"}
"""The worst first."""
_COLOURS = {"✗": "red", "?": "magenta", "✓": "green", "–": "yellow"}
_MARK = re.compile(r"(?<=  )(✗(?: [\d,]+)?|[?✓–])(?=  |$)")
_WORDS = {
    State.FOUND: "found",
    State.FAILED: "failed",
    State.UNPROVED: "unproved",
}


def inspection_table(rows: Sequence[Inspection], logs: Path) -> list[str]:
    """Write a table a kernel, variants by tools, then what was found, and where the logs are.

    ✗ stands before the number of errors, ? where the tool itself failed, – where nothing ran.
    Cases counts those that the variant was called at.
    """
    columns = [
        Column("variant", shrinks=True),
        Column("cases", align="right"),
        *(Column(tool) for tool in OPTIONS),
    ]
    lines: list[str] = []
    pairs: dict[tuple[str, str, str], State | None] = {}
    for kernel in dict.fromkeys(row.kernel for row in rows):
        own = [row for row in rows if row.kernel == kernel]
        variants = {
            name: [row for row in own if row.variant == name]
            for name in dict.fromkeys(row.variant for row in own)
        }
        table = lay_out(columns, [_write(name, group) for name, group in variants.items()])
        lines += [kernel, table[0], *(_paint(line) for line in table[1:]), ""]
        for name, group in variants.items():
            pairs |= {(kernel, name, tool): _worst(_of(group, tool)) for tool in OPTIONS}
    reasons = [line for row in rows if row.state in _WORDS for line in _explain(row)]
    lines += [*reasons, ""] if reasons else []
    return [*lines, _sum_up(pairs), *wrap(f"logs: {logs}", indent=0)]


def _write(variant: str, rows: Sequence[Inspection]) -> tuple[str, ...]:
    called = {row.case for row in rows if row.tool and row.state is not State.SKIPPED and row.case}
    return (
        variant,
        units.format_count(len(called)),
        *(_mark(_of(rows, tool)) for tool in OPTIONS),
    )


def _mark(rows: Sequence[Inspection]) -> str:
    worst = _worst(rows)
    if worst is None:
        return units.ABSENT
    count = sum(row.count for row in rows)
    return f"{_SYMBOLS[worst]} {units.format_count(count)}" if count else _SYMBOLS[worst]


def _of(rows: Sequence[Inspection], tool: str) -> list[Inspection]:
    return [row for row in rows if row.tool == tool]


def _worst(rows: Sequence[Inspection]) -> State | None:
    states = {row.state for row in rows}
    return next((each for each in _SYMBOLS if each in states), None)


def _paint(line: str) -> str:
    return _MARK.sub(lambda mark: click.style(mark[0], fg=_COLOURS[mark[0][0]]), line)


def _explain(row: Inspection) -> list[str]:
    symbol = _SYMBOLS[row.state]
    what = f"{symbol} {row.tool} {_WORDS[row.state]}"
    what += f" {units.format_count(row.count)}" if row.count else ""
    where = "/".join(part for part in (row.kernel, row.variant, row.case) if part)
    first_line = next(iter(row.message.strip().splitlines()), "no message")
    return [head(what, where), *wrap(first_line, indent=4)]


def _sum_up(pairs: Mapping[tuple[str, str, str], State | None]) -> str:
    states = list(pairs.values())
    counts = {
        "clean": states.count(State.CLEAN),
        "with findings": states.count(State.FOUND),
        "failed": states.count(State.FAILED),
        "unproved": states.count(State.UNPROVED),
        "not run": states.count(None),
    }
    said = [f"{units.format_count(n)} {words}" for words, n in counts.items() if n]
    return f"variants by tools: {', '.join(said) or 'none'}"
