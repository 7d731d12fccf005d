"""A gate as lines for a terminal, at most 80 wide: the worst first, and how to see it again."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import click

from perfci import units
from perfci.decision.compare import find_compared
from perfci.decision.verdict import sort_worst_first
from perfci.gate.past import Best, Failed, Since
from perfci.gate.rungs import Ending
from perfci.gate.verdicts import SAME_CODE, Gate, find_same
from perfci.history.model import Comparison, Verdict
from perfci.load import say_load
from perfci.reports.columns import WIDTH, Column, lay_out, wrap
from perfci.reports.comparison import comparison_table, name_cell
from perfci.reports.differences import (
    FIGURE_WORDS,
    Differences,
    describe_figures,
    find_differences,
)
from perfci.reports.text import head, name_commit

_RED = (Verdict.INCORRECT, Verdict.REGRESSION, Verdict.MISSING, Verdict.INCOMPARABLE)
_MOST_COMMANDS = 5
_MOST_OTHERS = 10
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
    same = find_same(gate.comparisons)
    differences = find_all_differences(gate)
    lines = [*_write_head(gate), "", *_write_changes(gate)]
    if same:
        lines += [*wrap(describe_same(len(same)), indent=0), ""]
        lines += _write_failed(gate.past.failed_at_base, len(same))
    if measured or gate.checked:
        load = describe_load(gate)
        lines += comparison_table(
            measured, gate.anchors, differences, load, besides=same, checked=gate.checked
        )
        lines += [""]
    lines += _write_others(measured, differences)
    lines += [*_write_means(find_means(gate.comparisons)), *_write_past(gate)]
    return [*lines, *_write_commands(gate), *wrap(describe_ending(gate), indent=0)]


def find_all_differences(gate: Gate) -> Differences:
    """What differs in the code, launches, errors and memory of each cell that was measured."""
    before, after = (
        {key: cells[0] for key, cells in side.cells_by_key().items()}
        for side in (gate.before, gate.after)
    )
    differences = find_differences(gate.before, gate.after)
    return {
        key: (*differences.get(key, ()), *describe_figures(before[key], after[key]))
        for key in before.keys() & after
    }


def find_others(
    comparisons: Sequence[Comparison], differences: Differences
) -> list[tuple[Comparison, str]]:
    """The cells that were not called slower or faster, and whose errors or memory changed."""
    told = (Verdict.REGRESSION, Verdict.IMPROVEMENT)
    return [
        (each, "; ".join(figures))
        for each in comparisons
        if each.verdict not in told
        and (figures := [d for d in differences.get(each.key, ()) if _is_figure(d)])
    ]


def _is_figure(difference: str) -> bool:
    return difference.startswith(FIGURE_WORDS)


def _write_others(comparisons: Sequence[Comparison], differences: Differences) -> list[str]:
    others = find_others(comparisons, differences)
    if not others:
        return []
    lines = ["errors and memory that changed besides"]
    for each, figures in others[:_MOST_OTHERS]:
        lines += wrap(f"{name_cell(each)}: {figures}", indent=2)
    more = len(others) - _MOST_OTHERS
    return [*lines, *([f"  and {units.format_count(more)} more"] if more > 0 else []), ""]


def _write_head(gate: Gate) -> list[str]:
    ends = gate.ends
    return [
        head("base", name_commit(gate.base), ends.found, gate.base.subject),
        head("head", name_commit(gate.head), gate.head.subject),
        head("testbed", gate.environment.testbed, gate.environment.device.model),
    ]


def _write_changes(gate: Gate) -> list[str]:
    lines = []
    if gate.environment_change:
        lines += [*wrap(describe_environment(gate.environment_change), indent=0), ""]
    if not gate.changes:
        return lines
    lines += [click.style("The head changes the rules. Nothing of it counts here:", fg="yellow")]
    for each in gate.changes:
        lines += wrap(f"· {each}", indent=2)
    return [*lines, ""]


def describe_environment(change: str) -> str:
    """Say in what the environments of the sides differ, which is of what is judged."""
    return f"environment: {change}; each side ran in its own, in processes that took turns"


def describe_same(count: int) -> str:
    """Say how many cells were not measured, and why."""
    cells = units.count_things(count, "cell runs", "cells run")
    return (
        f"{cells} the same code on both sides (machine code, host "
        "object, launches, sources, environment): unchanged without being measured"
    )


def describe_failed(failed: Sequence[Failed], same_count: int) -> str:
    """Say how many of the cells of the same code are known to fail."""
    cells = f"{units.format_count(len(failed))} of {units.count_things(same_count, 'cell')}"
    return (
        f"{cells} of the same code failed when the base was last measured, and the head changes "
        "nothing of that"
    )


def list_failed(failed: Sequence[Failed]) -> list[str]:
    """Write those cells, one entry for all timers of a cell: how it failed, and in which run."""
    timers: dict[tuple[str, str], list[str]] = {}
    for each in failed:
        key = each.key
        name = f"{key.kernel}/{key.variant}/{key.case}"
        entry = name, f"{each.reason}; run {each.run_id}"
        timers.setdefault(entry, []).append(key.contract)
    return [
        f"{name}{' ' if any(used) else ''}{', '.join(used)}: {reason}"
        for (name, reason), used in timers.items()
    ]


def _write_failed(failed: Sequence[Failed], same_count: int) -> list[str]:
    if not failed:
        return []
    entries = list_failed(failed)
    lines = wrap(f"{describe_failed(failed, same_count)}:", indent=0)
    for each in entries[:_MOST_OTHERS]:
        lines += wrap(each, indent=2)
    more = len(entries) - _MOST_OTHERS
    return [*lines, *([f"  and {units.format_count(more)} more"] if more > 0 else []), ""]


def describe_checked(count: int) -> str:
    """Say how many cells are right of which there is nothing to compare."""
    return f"{units.count_things(count, 'cell is', 'cells are')} only checked, and right"


def describe_load(gate: Gate) -> str:
    """Say how busy others kept a CPU while the sides were measured; empty where it was not much."""
    compared = find_compared(gate.before, gate.after)
    return say_load(dict(zip(("the base", "the head"), compared, strict=True)))


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


def find_drift(since: Since) -> list[Comparison]:
    """The cells that are slower than at a commit long ago, the worst first."""
    slower = [each for each in since.comparisons if each.verdict is Verdict.REGRESSION]
    return sort_worst_first(slower)


def find_off_best(gate: Gate) -> list[Best]:
    """The cells that are further from their best than a change that matters, the furthest first."""
    far = [each for each in gate.past.best if each.ratio > 1.0 + gate.threshold]
    return sorted(far, key=lambda each: -each.ratio)


def describe_since(since: Since) -> str:
    """Say how many cells were compared with a commit long ago, and how many are slower."""
    slower, count = len(find_drift(since)), len(since.comparisons)
    return (
        f"since {since.name} ({units.shorten_sha(since.commit.sha)}): "
        f"{units.format_count(slower)} of {units.count_things(count, 'cell')} slower"
    )


def describe_best(gate: Gate) -> str:
    """Say how many cells were compared with their best, and how many are off it."""
    off, count = len(find_off_best(gate)), len(gate.past.best)
    return (
        f"off the best ever recorded by more than {units.format_change(1.0 + gate.threshold)}: "
        f"{units.format_count(off)} of {units.count_things(count, 'cell')}"
    )


def _write_past(gate: Gate) -> list[str]:
    if not (gate.past.since or gate.past.best):
        return []
    lines = ["over time, of what was measured in other hours: decides nothing here"]
    for since in gate.past.since:
        lines += wrap(describe_since(since), indent=2)
        for each in find_drift(since)[:_MOST_OTHERS]:
            change = f"{units.format_change(each.ratio)} {units.format_interval(each.interval)}"
            lines += wrap(f"{name_cell(each)}: {change}", indent=4)
    if gate.past.best:
        lines += wrap(describe_best(gate), indent=2)
    for best in find_off_best(gate)[:_MOST_OTHERS]:
        lines += wrap(write_best(best), indent=4)
    return [*lines, ""]


def write_best(best: Best) -> str:
    """Write a cell, how far it is from its best, and where that was."""
    key = best.key
    return (
        f"{key.kernel}/{key.variant}/{key.case} {key.contract}: "
        f"{units.format_change(best.ratio)} from {units.format_latency(best.latency_ns)} "
        f"at {units.shorten_sha(best.commit.sha)}"
    )


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
        lines += break_command(words)
    more = len(commands) - _MOST_COMMANDS
    return [*lines, *([f"  and {units.format_count(more)} more"] if more > 0 else []), ""]


def _command(gate: Gate) -> list[str]:
    words = ["perfci", "gate", "--base", units.shorten_sha(gate.base.sha)]
    if gate.head.dirty is None:
        words += ["--head", units.shorten_sha(gate.head.sha)]
    return words


def break_command(words: Sequence[str]) -> list[str]:
    """A command on as many lines as it takes, so that it can still be copied."""
    lines, line = [], " "
    for word in words:
        if len(line) + len(word) + 3 > WIDTH:
            lines.append(f"{line} \\")
            line = "   "
        line += f" {word}"
    return [*lines, line]


class Spent(Protocol):
    """What is known of how a gate ended; ``perfci.gate.verdicts.Gate`` explains it."""

    @property
    def comparisons(self) -> Sequence[Comparison]: ...  # noqa: D102
    @property
    def passes(self) -> int: ...  # noqa: D102
    @property
    def ending(self) -> Ending | None: ...  # noqa: D102
    @property
    def budget_s(self) -> float: ...  # noqa: D102
    @property
    def spent_s(self) -> float: ...  # noqa: D102
    @property
    def needed_s(self) -> float | None: ...  # noqa: D102


def describe_ending(gate: Spent) -> str:
    """Say how long it took, and why no more was measured."""
    spent = units.format_duration(gate.spent_s)
    if gate.ending is None:
        return f"{spent}; nothing had to be timed in turns"
    count = units.count_things(gate.passes, "pass", "passes")
    if gate.ending is Ending.OUT_OF_TIME:
        return f"{count}, stopped at {spent}: {_describe_need(gate)}"
    passes = f"{count} in {spent}"
    if gate.ending is Ending.DECIDED:
        open_ones = any(each.verdict is Verdict.INCONCLUSIVE for each in gate.comparisons)
        return f"{passes}: {'more decide no more' if open_ones else 'every cell is decided'}"
    if gate.ending is Ending.NOTHING_LEFT:
        besides = "" if gate.comparisons else ", and nothing was compared"
        return f"{passes}: nothing is left that could be timed on both sides{besides}"
    return f"{passes}: as many as there may be"


def _describe_need(gate: Spent) -> str:
    budget, needed = (units.format_duration(each) for each in (gate.budget_s, gate.needed_s))
    more = "" if gate.needed_s is None else f"; give --budget {math.ceil(gate.needed_s / 60)}"
    return f"the next look would end at some {needed}, beyond the budget of {budget}{more}"
