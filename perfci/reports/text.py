"""Comparisons, kernels and lists of runs as lines for a terminal, at most 80 wide.

Words of state carry a symbol and a colour, and say the same without either; ``click.echo`` strips
the colours where they are not wanted.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

import click

from perfci import units
from perfci.history.model import Commit, Comparison, RunSummary, Status, Verdict
from perfci.history.text import one_line
from perfci.kernel import Kernel
from perfci.reports.columns import WIDTH, Column, lay_out, shorten, wrap
from perfci.verdict import WORST_FIRST, sort_worst_first

_VERDICTS = {
    Verdict.REGRESSION: ("▲", "slower", "red"),
    Verdict.IMPROVEMENT: ("▼", "faster", "cyan"),
    Verdict.UNCHANGED: ("=", "unchanged", "green"),
    Verdict.INCONCLUSIVE: ("?", "inconclusive", "yellow"),
    Verdict.MISSING: ("–", "missing", "magenta"),
    Verdict.NEW: ("+", "new", "cyan"),
    Verdict.INCORRECT: ("✗", "incorrect", "red"),
    Verdict.KNOWN_INCORRECT: ("✗", "known incorrect", "yellow"),
    Verdict.INCOMPARABLE: ("≠", "incomparable", "magenta"),
}
_COMPARISON_COLUMNS = (
    Column("variant", shrinks=True),
    Column("case", shrinks=True),
    Column("baseline", align="right"),
    Column("change", align="right"),
    Column("interval", align="right"),
    Column("verdict"),
)
_RUN_COLUMNS = (
    Column("run"),
    Column("started"),
    Column("commit"),
    Column("testbed", shrinks=True),
    Column("passed", align="right"),
    Column("failed", align="right"),
)
_VARIANT_COLUMNS = (
    Column("variant", shrinks=True),
    Column("kind"),
    Column("devices"),
    Column("dtypes", shrinks=True),
)


def comparison_table(comparisons: Sequence[Comparison]) -> list[str]:
    """Write comparisons, the worst first, a table a kernel, contract and testbed, and the reasons.

    The baseline's latency is a mean over its passes and runs; change and interval are the
    contender's against it.
    """
    ordered = sort_worst_first(comparisons)
    groups: dict[str, list[Comparison]] = {}
    for each in ordered:
        key = each.key
        contract = key.contract or "checked, not timed"
        heading = head(key.kernel, contract, key.testbed, key.device_model)
        groups.setdefault(heading, []).append(each)
    lines: list[str] = []
    for heading, group in groups.items():
        rows = [_write_comparison(each) for each in group]
        colours = [_VERDICTS[each.verdict][2] for each in group]
        table = paint(lay_out(_COMPARISON_COLUMNS, rows), rows, colours)
        lines += [heading, *table, ""]
    if not ordered:
        lines += [*lay_out(_COMPARISON_COLUMNS, []), ""]
    lines += list_reasons(
        (_name_cell(each), _write_verdict(each.verdict), _explain(each))
        for each in ordered
        if each.reason
    )
    return [*lines, _count_verdicts(Counter(each.verdict for each in ordered))]


def run_list(runs: Sequence[RunSummary]) -> list[str]:
    """Write runs, one a line, in the order given; ids are cut to what tells them apart."""
    length = _find_telling_length([run.run_id for run in runs])
    rows = []
    for run in runs:
        counts = Counter(dict(run.status_counts))
        rows.append(
            (
                run.run_id[:length],
                units.format_date(run.started_at),
                name_commit(run.commit),
                run.environment.testbed,
                units.format_count(counts[Status.PASSED]),
                units.format_count(count_failures(counts)),
            )
        )
    return lay_out(_RUN_COLUMNS, rows)


def kernel_list(kernels: Sequence[Kernel]) -> list[str]:
    """Write kernels with their variants and how many cases each is judged by."""
    if not kernels:
        return lay_out(_VARIANT_COLUMNS, [])
    lines: list[str] = []
    for kernel in kernels:
        timed = sum(case.timed for case in kernel.cases)
        checked = len(kernel.cases) - timed
        counts = f"{units.format_count(timed)} timed, {units.format_count(checked)} checked only"
        rows = [
            (
                variant.name,
                variant.kind,
                ", ".join(variant.declaration.devices),
                ", ".join(variant.declaration.dtypes),
            )
            for variant in kernel.variants
        ]
        lines += [head(kernel.name, counts), *lay_out(_VARIANT_COLUMNS, rows), ""]
    return lines[:-1]


def _write_comparison(comparison: Comparison) -> tuple[str, ...]:
    return (
        comparison.key.variant,
        comparison.key.case,
        units.format_latency(comparison.baseline_ns),
        units.format_change(comparison.ratio),
        units.format_interval(comparison.interval),
        _write_verdict(comparison.verdict),
    )


def _explain(comparison: Comparison) -> str:
    visible = comparison.smallest_visible_change
    if comparison.verdict is not Verdict.INCONCLUSIVE or visible is None:
        return comparison.reason
    return f"{comparison.reason}; {units.format_change(1.0 + visible)} would have shown"


def list_reasons(reasons: Iterable[tuple[str, str, str]]) -> list[str]:
    """Write (name, state, message) as paragraphs; of a message only the first line."""
    lines: list[str] = []
    for name, state, message in reasons:
        first_line = next(iter(message.strip().splitlines()), "no message")
        lines += [head(state, name), *wrap(first_line, indent=4)]
    return [*lines, ""] if lines else []


def count_statuses(counts: Counter[Status]) -> str:
    """Write how many cells passed, failed and were skipped."""
    passed = units.format_count(counts[Status.PASSED])
    failed = units.format_count(count_failures(counts))
    return f"{passed} passed, {failed} failed, {units.format_count(counts[Status.SKIPPED])} skipped"


def _count_verdicts(counts: Counter[Verdict]) -> str:
    said = [
        f"{units.format_count(counts[each])} {_VERDICTS[each][1]}"
        for each in WORST_FIRST
        if counts[each]
    ]
    return ", ".join(said) or "nothing compared"


def count_failures(counts: Counter[Status]) -> int:
    """Count the cells in which something that should have worked did not."""
    return sum(count for status, count in counts.items() if status.is_failure)


def write_status(status: Status) -> str:
    """Write a status as its symbol and its words."""
    symbol = {Status.PASSED: "✓", Status.SKIPPED: "·"}.get(status, "✗")
    return f"{symbol} {status.value.replace('_', ' ')}"


def _write_verdict(verdict: Verdict) -> str:
    symbol, word, _ = _VERDICTS[verdict]
    return f"{symbol} {word}"


def choose_colour(status: Status) -> str:
    """Choose the colour that goes with a status's words."""
    return {Status.PASSED: "green", Status.SKIPPED: "yellow"}.get(status, "red")


def paint(table: Sequence[str], rows: Sequence[Sequence[str]], colours: Sequence[str]) -> list[str]:
    """Colour the last word of each line below the heading."""
    painted = [
        line.removesuffix(row[-1]) + click.style(row[-1], fg=colour)
        for line, row, colour in zip(table[1:], rows, colours, strict=True)
    ]
    return [table[0], *painted]


def _name_cell(comparison: Comparison) -> str:
    key = comparison.key
    return f"{key.kernel}/{key.variant}/{key.case} {key.contract}".strip()


def name_commit(commit: Commit) -> str:
    """Write a commit as its short SHA, and whether its tree was dirty."""
    return units.shorten_sha(commit.sha) + ("" if commit.dirty is None else "+dirty")


def _find_telling_length(run_ids: Sequence[str]) -> int:
    lengths = range(8, max(map(len, run_ids), default=8))
    return next(
        (each for each in lengths if len({run_id[:each] for run_id in run_ids}) == len(run_ids)),
        max(map(len, run_ids), default=8),
    )


def head(*parts: str) -> str:
    """Write what a line or table is about: the parts that there are, on one line that fits."""
    return shorten(one_line(" · ".join(part for part in parts if part), limit=2000), WIDTH)
