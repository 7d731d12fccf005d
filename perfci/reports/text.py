"""Kernels, lists of runs and what reports share, as lines for a terminal, at most 80 wide.

Words of state carry a symbol and a colour, and say the same without either; ``click.echo`` strips
the colours where they are not wanted.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import click

from perfci import units
from perfci.history.model import Cell, Commit, Launch, Measurement, RunSummary, Status
from perfci.history.text import one_line
from perfci.kernel import Kernel
from perfci.reports.columns import WIDTH, Column, lay_out, measure, shorten, wrap

_RUN_COLUMNS = (
    Column("run"),
    Column("started", gives_way=True),
    Column("commit"),
    Column("by"),
    Column("testbed", names=True),
    Column("failed", align="right"),
)
_LONGEST_TRIGGER = 8
_SHORTEST_ID = 15
"""``20261130T044328``: it says when the run began also where there is no room for more."""
_VARIANT_COLUMNS = (
    Column("variant", names=True),
    Column("kind"),
    Column("devices"),
    Column("dtypes", shrinks=True),
)


def run_list(
    runs: Sequence[RunSummary], *, known: Sequence[RunSummary] = (), width: int = WIDTH
) -> list[str]:
    """Write runs, one a line, in the order given, at most ``width`` wide.

    Ids are cut to what tells them apart, also from the others that are ``known``. Each with what
    started it, and how many of the cells that were not skipped have failed.
    """
    length = _find_telling_length({run.run_id for run in (*runs, *known)})
    rows = []
    for run in runs:
        counts = Counter(dict(run.status_counts))
        passed, failed = counts[Status.PASSED], count_failures(counts)
        rows.append(
            (
                run.run_id[:length],
                units.format_date(run.started_at),
                name_commit(run.commit),
                one_line(run.trigger, limit=_LONGEST_TRIGGER),
                run.environment.testbed,
                f"{units.format_count(failed)} of {units.format_count(failed + passed)}",
            )
        )
    return lay_out(_RUN_COLUMNS, rows, width=width)


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


def list_reasons(reasons: Iterable[tuple[str, str, str]]) -> list[str]:
    """Write (name, state, message) as paragraphs; of a message only the first line."""
    lines: list[str] = []
    for name, state, message in reasons:
        lines += [head(state, name), *wrap(_first_line(message), indent=4)]
    return [*lines, ""] if lines else []


class Reason(NamedTuple):
    """Why something is as it is: of a variant (``kernel/variant``) and a place, such as a case."""

    variant: str
    place: str
    state: str
    message: str


def list_shared_reasons(reasons: Iterable[Reason], place: str) -> list[str]:
    """Write the same, once where several places of a variant have it, with how many and which.

    ``place`` is what one of them is called.
    """
    groups: dict[tuple[str, str, str], list[str]] = {}
    for each in reasons:
        key = (each.variant, each.state, _first_line(each.message))
        groups.setdefault(key, []).append(each.place)
    lines: list[str] = []
    for (variant, state, message), places in groups.items():
        heading = head(state, f"{variant}/{places[0]}")
        if len(places) > 1:
            count = units.count_things(len(places), place)
            heading = _list_places(head(state, variant, count), places)
        lines += [heading, *wrap(message, indent=4)]
    return [*lines, ""] if lines else []


def list_failures(rows: Iterable[Cell | Measurement]) -> list[str]:
    """Write why rows have failed, each reason of a variant once, with the cases that it is of."""
    reasons = [
        Reason(f"{row.kernel}/{row.variant}", row.case, write_status(row.status), row.message)
        for row in rows
        if row.status.is_failure
    ]
    return list_shared_reasons(dict.fromkeys(reasons), "case")


def _first_line(message: str) -> str:
    return next(iter(message.strip().splitlines()), "no message")


def _list_places(heading: str, places: Sequence[str]) -> str:
    """Write as many places behind a heading as fit on its line, and how many more there are."""
    for shown in range(len(places), 0, -1):
        more = len(places) - shown
        others = f" and {units.format_count(more)} more" if more else ""
        line = one_line(f"{heading}: {', '.join(places[:shown])}{others}", limit=2000)
        if measure(line) <= WIDTH:
            return line
    return heading


def count_statuses(counts: Counter[Status]) -> str:
    """Write how many cells passed, failed and were skipped."""
    passed = units.format_count(counts[Status.PASSED])
    failed = units.format_count(count_failures(counts))
    return f"{passed} passed, {failed} failed, {units.format_count(counts[Status.SKIPPED])} skipped"


def count_failures(counts: Counter[Status]) -> int:
    """Count the cells in which something that should have worked did not."""
    return sum(count for status, count in counts.items() if status.is_failure)


def write_status(status: Status) -> str:
    """Write a status as its symbol and its words."""
    symbol = {Status.PASSED: "✓", Status.SKIPPED: "·"}.get(status, "✗")
    return f"{symbol} {status.value.replace('_', ' ')}"


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


def write_extents(launch: Launch) -> str:
    """Write grid and block without the dimensions that are 1 at their ends: ``16·8 × 256``."""
    return " × ".join(_write_extent(each) for each in (launch.grid, launch.block))


def _write_extent(dimensions: tuple[int, int, int]) -> str:
    used = max((index for index, each in enumerate(dimensions) if each != 1), default=0)
    return "·".join(str(each) for each in dimensions[: used + 1])


def name_commit(commit: Commit) -> str:
    """Write a commit as its short SHA, and whether its tree was dirty."""
    return units.shorten_sha(commit.sha) + ("" if commit.dirty is None else "+dirty")


def _find_telling_length(run_ids: Collection[str]) -> int:
    lengths = range(_SHORTEST_ID, max(map(len, run_ids), default=_SHORTEST_ID))
    return next(
        (each for each in lengths if len({run_id[:each] for run_id in run_ids}) == len(run_ids)),
        max(map(len, run_ids), default=_SHORTEST_ID),
    )


def note(sentence: str) -> list[str]:
    """Write a sentence as a paragraph by itself; nothing where there is none."""
    return [*wrap(sentence, indent=0), ""] if sentence else []


def head(*parts: str) -> str:
    """Write what a line or table is about: the parts that there are, on one line that fits."""
    return shorten(one_line(" · ".join(part for part in parts if part), limit=2000), WIDTH)
