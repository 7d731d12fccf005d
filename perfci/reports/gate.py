"""A gate as lines for a terminal, at most 80 wide: the worst first, and how to see it again."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import click

from perfci import units
from perfci.gate import SAME_CODE, Gate
from perfci.history.model import Comparison, Verdict
from perfci.reports.columns import WIDTH, Column, lay_out, wrap
from perfci.reports.comparison import comparison_table
from perfci.reports.differences import find_differences
from perfci.reports.text import head, name_commit
from perfci.rungs import Ending
from perfci.verdict import sort_worst_first

_RED = (Verdict.INCORRECT, Verdict.REGRESSION, Verdict.MISSING, Verdict.INCOMPARABLE)
_MOST_COMMANDS = 5
_MEAN_COLUMNS = (
    Column("kernel", shrinks=True),
    Column("timer"),
    Column("mean change", align="right"),
    Column("cells", align="right"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """The geometric mean of the ratios of a kernel's cells that both sides have, by contract."""

    kernel: str
    contract: str
    ratio: float
    count: int


def gate_text(gate: Gate) -> list[str]:
    """Write a gate."""
    measured = [each for each in gate.comparisons if each.reason != SAME_CODE]
    same = len(gate.comparisons) - len(measured)
    lines = [*_write_head(gate), "", *_write_changes(gate)]
    if same:
        lines += [*wrap(describe_same(same), indent=0), ""]
    if measured:
        differences = find_differences(gate.before, gate.after)
        lines += [*comparison_table(measured, gate.anchors, differences), ""]
    lines += [*_write_means(find_means(gate.comparisons)), *_write_commands(gate)]
    return [*lines, *wrap(describe_ending(gate), indent=0)]


def _write_head(gate: Gate) -> list[str]:
    ends = gate.ends
    return [
        head("base", name_commit(gate.base), ends.found, gate.base.subject),
        head("head", name_commit(gate.head), gate.head.subject),
        head("testbed", gate.environment.testbed, gate.environment.device.model),
    ]


def _write_changes(gate: Gate) -> list[str]:
    if not gate.changes:
        return []
    lines = [click.style("The head changes the rules. Nothing of it counts here:", fg="yellow")]
    for each in gate.changes:
        lines += wrap(f"· {each}", indent=2)
    return [*lines, ""]


def describe_same(count: int) -> str:
    """Say how many cells were not measured, and why."""
    cells = "cell runs" if count == 1 else "cells run"
    return (
        f"{units.format_count(count)} {cells} the same code on both sides (machine code, host "
        "object, launches, sources, environment): unchanged without being measured"
    )


def find_means(comparisons: Iterable[Comparison]) -> list[Mean]:
    """The mean change of each kernel by contract, over the cells that were timed on both sides."""
    logarithms: dict[tuple[str, str], list[float]] = {}
    for each in comparisons:
        if each.ratio is not None:
            key = each.key.kernel, each.key.contract
            logarithms.setdefault(key, []).append(math.log(each.ratio))
    return [
        Mean(
            kernel=kernel,
            contract=contract,
            ratio=math.exp(math.fsum(each) / len(each)),
            count=len(each),
        )
        for (kernel, contract), each in sorted(logarithms.items())
    ]


def _write_means(means: Sequence[Mean]) -> list[str]:
    if not means:
        return []
    rows = [
        (
            each.kernel,
            each.contract,
            units.format_change(each.ratio),
            units.format_count(each.count),
        )
        for each in means
    ]
    return ["geometric means, of the cells timed on both sides", *lay_out(_MEAN_COLUMNS, rows), ""]


def find_commands(gate: Gate) -> list[list[str]]:
    """The command that repeats each red cell, as words, the same cell once."""
    cells = {
        (each.key.kernel, each.key.variant, each.key.case): None
        for each in sort_worst_first(gate.comparisons)
        if each.verdict in _RED and each.key not in gate.accepted
    }
    return [[*_command(gate), "--kernel", k, "--variant", v, "--case", c] for k, v, c in cells]


def _write_commands(gate: Gate) -> list[str]:
    commands = find_commands(gate)
    if not commands:
        return []
    lines = ["to see it again"]
    for words in commands[:_MOST_COMMANDS]:
        lines += _broken(words)
    more = len(commands) - _MOST_COMMANDS
    return [*lines, *([f"  and {units.format_count(more)} more cells"] if more > 0 else []), ""]


def _command(gate: Gate) -> list[str]:
    words = ["perfci", "gate", "--base", units.shorten_sha(gate.base.sha)]
    if gate.head.dirty is None:
        words += ["--head", units.shorten_sha(gate.head.sha)]
    return words


def _broken(words: Sequence[str]) -> list[str]:
    """A command on as many lines as it takes, so that it can still be copied."""
    lines, line = [], " "
    for word in words:
        if len(line) + len(word) + 3 > WIDTH:
            lines.append(f"{line} \\")
            line = "   "
        line += f" {word}"
    return [*lines, line]


def describe_ending(gate: Gate) -> str:
    """Say how long it took, and why no more was measured."""
    spent = units.format_duration(gate.spent_s)
    if gate.ending is None:
        return f"{spent}; nothing had to be timed in turns"
    passes = f"{units.format_count(gate.passes)} pass{'' if gate.passes == 1 else 'es'} in {spent}"
    if gate.ending is Ending.DECIDED:
        open_ones = any(each.verdict is Verdict.INCONCLUSIVE for each in gate.comparisons)
        return f"{passes}: {'more decide no more' if open_ones else 'every cell is decided'}"
    if gate.ending is Ending.OUT_OF_PASSES:
        return f"{passes}: as many as there may be"
    budget, needed = (units.format_duration(each) for each in (gate.budget_s, gate.needed_s))
    return f"{passes}: the budget of {budget} ended; the next look needs some {needed}"
