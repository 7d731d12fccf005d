"""A check of variants and negative controls, as lines for a terminal, at most 80 wide."""

from collections import Counter
from collections.abc import Mapping, Sequence

from perfci import units
from perfci.history.model import Measurement, Status
from perfci.reports.bounds import unfrozen_note
from perfci.reports.columns import Column, lay_out, wrap
from perfci.reports.text import count_statuses, list_failures, write_status

_COLUMNS = (
    Column("variant", names=True),
    Column("case", shrinks=True),
    Column("error", align="right"),
    Column("yardstick", align="right"),
    Column("status"),
)
_CONTROL_COLUMNS = (Column("control", shrinks=True), Column("rejected by", shrinks=True))


def check_table(
    rows: Sequence[Measurement],
    controls: Sequence[Measurement],
    rejections: Mapping[str, Sequence[str]],
) -> list[str]:
    """Write checks a kernel at a time, then what each negative control was rejected by."""
    lines: list[str] = []
    for kernel in dict.fromkeys(row.kernel for row in rows):
        group = [row for row in rows if row.kernel == kernel]
        lines += [kernel, *lay_out(_COLUMNS, [_write(row) for row in group]), ""]
    lines += list_failures([*rows, *_one_each(_unbuilt(controls))])
    if rejections:
        table = [(name, ", ".join(cases) or "nothing") for name, cases in rejections.items()]
        lines += ["negative controls", *lay_out(_CONTROL_COLUMNS, table), ""]
    accepted = [name for name, cases in rejections.items() if not cases]
    lines += _explain_accepted(controls, accepted)
    lines += unfrozen_note(rows)
    counts = count_statuses(Counter(row.status for row in rows))
    total = len(rejections)
    controls_count = units.count_things(total, "control")
    rejected = f"{total - len(accepted)} of {controls_count} rejected" if total else ""
    return [*lines, "; ".join(part for part in (counts, rejected) if part)]


def _explain_accepted(controls: Sequence[Measurement], accepted: Sequence[str]) -> list[str]:
    unbuilt = {_name(row) for row in _unbuilt(controls)}
    broken = ", ".join(name for name in accepted if name in unbuilt)
    weak = ", ".join(name for name in accepted if name not in unbuilt)
    lines: list[str] = []
    if broken:
        lines += [*wrap(f"{broken}: does not build, which proves nothing; repair it", indent=0), ""]
    if weak:
        text = f"no case rejects {weak}: the cases are too weak to be trusted"
        lines += [*wrap(text, indent=0), ""]
    return lines


def _unbuilt(controls: Sequence[Measurement]) -> list[Measurement]:
    return [row for row in controls if row.status is Status.BUILD_FAILED]


def _one_each(rows: Sequence[Measurement]) -> list[Measurement]:
    """One row for each control: what a build says is the same for every case."""
    return list({_name(row): row for row in rows}.values())


def _name(row: Measurement) -> str:
    return f"{row.kernel}/{row.variant}"


def _write(row: Measurement) -> tuple[str, ...]:
    errors = [row.metric("max_abs_error"), row.metric("yardstick_max_abs_error")]
    return (
        row.variant,
        row.case,
        *(units.format_error(each.value if each else None) for each in errors),
        write_status(row.status),
    )
