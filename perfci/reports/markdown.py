"""A gate in Markdown: for a file, or within what a comment or a summary on GitHub may hold."""

import re
from collections.abc import Iterator, Sequence

from perfci import units
from perfci.decision.verdict import sort_worst_first
from perfci.gate.past import Failed
from perfci.gate.verdicts import SAME_CODE, Gate, find_same
from perfci.history.model import Comparison, Verdict
from perfci.history.text import one_line
from perfci.reports.comparison import count_verdicts, give_reason, name_cell, write_verdict
from perfci.reports.differences import Differences
from perfci.reports.gate import (
    describe_best,
    describe_checked,
    describe_ending,
    describe_environment,
    describe_failed,
    describe_load,
    describe_same,
    describe_since,
    find_all_differences,
    find_commands,
    find_drift,
    find_means,
    find_off_best,
    find_others,
    list_failed,
    write_best,
)
from perfci.reports.passes import (
    HEADING_OF_SIDES,
    describe_left_out,
    describe_passes,
    find_far,
    write_baseline,
    write_change,
)
from perfci.reports.text import name_commit

GITHUB_LIMIT = 60_000
"""Characters of a comment: GitHub takes 65,536."""

_ROWS = (10_000, 300, 100, 30, 10, 3)
_SPECIAL = re.compile(
    r"[&<>|`*\\\[\]~!$@#]|(?<!\w)_|_(?!\w)"
    r"|(?<=[a-z]):(?=//)|(?<=www)\.|(?<=\bGH)-(?=\d)",
    re.IGNORECASE,
)
_LINKING = "@#:.-"
"""Of these GitHub makes a mention or a link in the text that is shown, however it was written."""

_NOTHING = "&#8203;"
"""A space of no width."""


def gate_markdown(gate: Gate) -> str:
    """Write a gate as a Markdown document, all of it open."""
    return _write(gate, _ROWS[0], fold=False)


def gate_github(gate: Gate, *, limit: int = GITHUB_LIMIT) -> str:
    """Write a gate as a comment: what is not red is folded away, and what is too long is cut.

    What is cut is counted. The worst cells are kept longest.
    """
    texts = (_write(gate, rows, fold=True) for rows in _ROWS)
    shortest = ""
    for shortest in texts:
        if len(shortest) <= limit:
            return shortest
    return shortest[:limit]


def escape(text: str) -> str:
    """Text from outside on one line, with nothing in it that Markdown or GitHub acts on."""
    return _SPECIAL.sub(_disarm, one_line(text, limit=400))


def _disarm(match: re.Match[str]) -> str:
    apart = _NOTHING if match[0] in _LINKING else ""
    return f"&#{ord(match[0])};{apart}"


def _write(gate: Gate, rows: int, *, fold: bool) -> str:
    differences = find_all_differences(gate)
    ordered = sort_worst_first(each for each in gate.comparisons if each.reason != SAME_CODE)
    loud = [each for each in ordered if each.verdict is not Verdict.UNCHANGED]
    quiet = [each for each in ordered if each.verdict is Verdict.UNCHANGED]
    parts = [
        f"### perfci gate: {_headline(gate)}",
        _write_ends(gate),
        write_environment(gate.environment_change),
        write_list("The head changes the rules. Nothing of it counts here:", gate.changes, rows),
        _write_table(loud, differences, rows),
        folded(
            f"{len(quiet)} unchanged",
            add_left_out(_write_table(quiet, differences, rows), quiet),
            fold=fold,
        ),
        _write_same(gate),
        write_failed(gate.past.failed_at_base, len(find_same(gate.comparisons)), rows),
        f"{describe_checked(gate.checked)}." if gate.checked else "",
        escape(describe_load(gate)),
        *(folded(title, text, fold=fold) for title, text in _details(gate, differences, rows)),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _headline(gate: Gate) -> str:
    return count_verdicts(gate.comparisons)


def _write_ends(gate: Gate) -> str:
    where = gate.environment
    base, head = (name_commit(each) for each in (gate.base, gate.head))
    return (
        f"`{head}` ({escape(gate.head.subject)}) against `{base}` ({escape(gate.ends.found)}) on "
        f"{escape(where.testbed)} ({escape(where.device.model)}), {escape(describe_ending(gate))}."
    )


def write_environment(change: str) -> str:
    """Write in what the environments of the sides differ; nothing where they do not."""
    return f"The head changes the {escape(describe_environment(change))}." if change else ""


def _write_same(gate: Gate) -> str:
    same = len(find_same(gate.comparisons))
    return f"{describe_same(same)}." if same else ""


def write_failed(failed: Sequence[Failed], same_count: int, rows: int, *, where: str = "") -> str:
    """Write which cells of the same code are known to fail; nothing where none is."""
    title = f"{where}{describe_failed(failed, same_count)}:"
    return write_list(title, list_failed(failed), rows)


def _write_table(comparisons: Sequence[Comparison], differences: Differences, rows: int) -> str:
    if not comparisons:
        return ""
    lines = ["| cell | base | change | interval | verdict | |", "| - | -: | -: | -: | - | - |"]
    for each in comparisons[:rows]:
        cells = (
            escape(name_cell(each)),
            write_baseline(each),
            write_change(each),
            units.format_interval(each.interval),
            write_verdict(each.verdict),
            escape(give_reason(each, differences)),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, *count_cut(len(comparisons) - rows)])


def _details(gate: Gate, differences: Differences, rows: int) -> Iterator[tuple[str, str]]:
    """What stands below the table: titles and texts."""
    commands = [" ".join(words) for words in find_commands(gate)]
    if commands:
        cut = count_cut(len(commands) - rows)
        yield "To see it again", "\n".join(["```", *commands[:rows], "```", *cut])
    ordered = sort_worst_first(gate.comparisons)
    far = [said for each in ordered for said in describe_far(each, name_cell(each))]
    yield HEADING_OF_SIDES, write_list("", far, rows)
    means = [
        f"{each.kernel} {each.contract}: {units.format_change(each.ratio)} over "
        f"{units.count_things(each.count, 'cell')}"
        for each in find_means(gate.comparisons)
    ]
    yield "Geometric means, of the cells timed on both sides", write_list("", means, rows)
    others = [
        f"{name_cell(each)}: {figures}" for each, figures in find_others(ordered, differences)
    ]
    yield "Errors and memory that changed besides", write_list("", others, rows)
    yield "Over time: decides nothing here", "\n\n".join(_write_past(gate, rows))


def _write_past(gate: Gate, rows: int) -> Iterator[str]:
    for since in gate.past.since:
        slower = [
            f"{name_cell(each)}: {units.format_change(each.ratio)}" for each in find_drift(since)
        ]
        yield write_list(describe_since(since), slower, rows) or escape(describe_since(since))
    if gate.past.best:
        off = [write_best(each) for each in find_off_best(gate)]
        yield write_list(describe_best(gate), off, rows) or escape(describe_best(gate))


def write_list(title: str, entries: Sequence[str], rows: int) -> str:
    """A list under a title; empty where there is nothing in it."""
    if not entries:
        return ""
    lines = [escape(title), ""] if title else []
    lines += [f"- {escape(each)}" for each in entries[:rows]]
    return "\n".join([*lines, *count_cut(len(entries) - rows)])


def describe_far(comparison: Comparison, name: str) -> Iterator[str]:
    """Say of each side that is marked between what its passes lie; ``name`` is the cell's."""
    for side, passes in find_far(comparison, ("base", "head")):
        yield f"{name}, {side}: {describe_passes(passes)}"


def add_left_out(table: str, comparisons: Sequence[Comparison]) -> str:
    """A table of unchanged cells, and how many are not marked though passes lie far off."""
    said = describe_left_out(comparisons)
    return f"{table}\n\n{said}." if said else table


def count_cut(count: int) -> list[str]:
    """Say how many entries are left out; nothing where none are."""
    return ["", f"and {units.format_count(count)} more"] if count > 0 else []


def folded(title: str, text: str, *, fold: bool) -> str:
    """A text under a title that opens it, or with the title above; empty where there is none."""
    if not text:
        return ""
    if not fold:
        return f"**{title}**\n\n{text}"
    return f"<details><summary>{title}</summary>\n\n{text}\n\n</details>"
