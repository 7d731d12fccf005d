"""Comparisons as lines for a terminal, at most 80 wide: the worst first, the machine's apart."""

from collections import Counter
from collections.abc import Iterable, Sequence

from perfci import units
from perfci.decision.verdict import WORST_FIRST, sort_worst_first
from perfci.history.model import Comparison, Verdict
from perfci.reports.columns import Column, lay_out, wrap
from perfci.reports.differences import SAME_CODE, Differences, is_choice
from perfci.reports.moves import moves_table
from perfci.reports.passes import (
    describe_left_out,
    far_table_of_sides,
    write_baseline,
    write_change,
)
from perfci.reports.text import Reason, head, list_shared_reasons, note, paint

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
_MEASURED_APART = "measured apart: it may be the environment, or the machine"
_FARTHEST = 9.0  # ten times as slow: what shows no less than that shows nothing
_COMPARISON_COLUMNS = (
    Column("variant", names=True),
    Column("case", shrinks=True),
    Column("baseline", align="right"),
    Column("change", align="right"),
    Column("interval", align="right"),
    Column("verdict"),
)


def comparison_table(
    comparisons: Sequence[Comparison],
    anchors: Sequence[Comparison] = (),
    differences: Differences | None = None,
    load: str = "",
    *,
    besides: Sequence[Comparison] = (),
    checked: int = 0,
) -> list[str]:
    """Write comparisons, the worst first, a table a kernel, contract and testbed, and the reasons.

    The baseline's latency is a trimmed mean over its passes and a mean over its runs; change and
    interval are the contender's against it. A mark says that passes of a side lie far from its
    latency, and a table below says where. Of a cell that got slower or faster it is said what
    differs in its code.
    Those of the anchors stand apart at the end and are not counted. ``load`` is the sentence that
    says how busy the machine was, where it was. What is counted at the end are all cells: also
    those of ``besides``, of which nothing else is written, and ``checked`` that are right and not
    timed.
    """
    ordered = sort_worst_first(comparisons)
    groups: dict[str, list[Comparison]] = {}
    for each in ordered:
        key = each.key
        contract = key.contract or "checked, not timed"
        passes = units.count_things(each.paired_passes, "pass", "passes")
        paired = f"paired, {passes}" if each.paired_passes else ""
        heading = head(key.kernel, contract, key.testbed, key.device_model, paired)
        groups.setdefault(heading, []).append(each)
    lines: list[str] = []
    for heading, group in groups.items():
        rows = [_write_comparison(each) for each in group]
        colours = [_VERDICTS[each.verdict][2] for each in group]
        table = paint(lay_out(_COMPARISON_COLUMNS, rows), rows, colours)
        lines += [heading, *table, ""]
    if not ordered:
        lines += [*lay_out(_COMPARISON_COLUMNS, []), ""]
    reasons = [(each, give_reason(each, differences or {})) for each in ordered]
    told = [
        Reason(*_part_name(each), write_verdict(each.verdict), reason)
        for each, reason in reasons
        if reason
    ]
    lines += list_shared_reasons(told, "cell")
    lines += moves_table(anchors)
    lines += far_table_of_sides([*ordered, *anchors])
    lines += note(describe_left_out(ordered))
    lines += note(load)
    lines += _name_assumption(ordered)
    return [*lines, *wrap(_count_cells([*ordered, *besides], checked), indent=0)]


def _count_cells(comparisons: Sequence[Comparison], checked: int) -> str:
    """Write how many cells have which verdict or are right, and where these differ of how many."""
    said = count_verdicts(comparisons)
    if checked:
        said += f", {units.format_count(checked)} right (checked only)"
    total = len(comparisons) + checked
    return f"{units.count_things(total, 'cell')}: {said}" if ", " in said else said


def _write_comparison(comparison: Comparison) -> tuple[str, ...]:
    return (
        comparison.key.variant,
        comparison.key.case,
        write_baseline(comparison),
        write_change(comparison),
        units.format_interval(comparison.interval),
        write_verdict(comparison.verdict),
    )


def give_reason(comparison: Comparison, differences: Differences) -> str:
    """Say why a verdict is what it is, and of a change what differs; empty where that is plain."""
    parts = (_explain(comparison), _tell(comparison, differences))
    return "; ".join(part for part in parts if part)


def _explain(comparison: Comparison) -> str:
    visible = comparison.smallest_visible_change
    if comparison.verdict is not Verdict.INCONCLUSIVE or visible is None:
        return comparison.reason
    shown = "nothing" if visible > _FARTHEST else units.format_change(1.0 + visible)
    return f"{comparison.reason}; {shown} would have shown"


def _tell(comparison: Comparison, differences: Differences) -> str:
    """What differs in the code of a cell that got slower or faster; of others what was chosen."""
    told = differences.get(comparison.key, ())
    is_moved = comparison.verdict in (Verdict.REGRESSION, Verdict.IMPROVEMENT)
    said = [each for each in told if is_moved or is_choice(each)]
    if any(each.startswith(SAME_CODE) for each in said) and not comparison.paired_passes:
        said.append(_MEASURED_APART)
    return "; ".join(said)


def _name_assumption(comparisons: Sequence[Comparison]) -> list[str]:
    """Say of how many cells the noise is assumed; nothing where all of them were studied."""
    compared = [each for each in comparisons if each.ratio is not None]
    assumed = sum(not each.is_studied for each in compared)
    if not assumed:
        return []
    counts = f"{units.format_count(assumed)} of {units.count_things(len(compared), 'cell')}"
    of = "" if assumed == len(compared) else f" of {counts}"
    return [f"the noise{of} is assumed, not measured: perfci noise studies it", ""]


def count_verdicts(comparisons: Iterable[Comparison]) -> str:
    """Write how many cells have which verdict, the worst first."""
    counts = Counter(each.verdict for each in comparisons)
    said = [
        f"{units.format_count(counts[each])} {_VERDICTS[each][1]}"
        for each in WORST_FIRST
        if counts[each]
    ]
    return ", ".join(said) or "nothing compared"


def write_verdict(verdict: Verdict) -> str:
    """Write a verdict as its symbol and its word."""
    symbol, word, _ = _VERDICTS[verdict]
    return f"{symbol} {word}"


def name_cell(comparison: Comparison) -> str:
    """Write a cell as ``kernel/variant/case timer/1``."""
    return "/".join(_part_name(comparison))


def _part_name(comparison: Comparison) -> tuple[str, str]:
    key = comparison.key
    return f"{key.kernel}/{key.variant}", f"{key.case} {key.contract}".strip()
