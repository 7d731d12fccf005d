"""Frozen bounds as lines for a terminal, at most 80 wide: what changed, what is without them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from perfci import units
from perfci.error_bounds import NOT_FROZEN, STALE, Bounds, Freeze
from perfci.history.model import Cell, Device, Measurement, Status
from perfci.reports.columns import Column, lay_out, wrap
from perfci.reports.text import head, list_reasons

_COLUMNS = (
    Column("case", shrinks=True),
    Column("largest", align="right"),
    Column("before", align="right"),
    Column("rms", align="right"),
    Column("before", align="right"),
    Column("change"),
)
_NEW, _WIDER, _NARROWER, _SAME = "+ new", "▲ looser", "▼ tighter", "= same"
_LEFT, _FAILED = "· left as it was", "✗ failed"
_WORDS = (_NEW, _WIDER, _NARROWER, _SAME, _LEFT, _FAILED)
_BOUNDS = "bounds"


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundChange:
    """A case whose results are judged by other bounds on the contender's side."""

    kernel: str
    case: str
    baseline: str
    contender: str
    is_looser: bool


def freeze_table(made: Sequence[Freeze], device: Device) -> list[str]:
    """Write what a freeze changed, a table a kernel, what could not be frozen, and the counts."""
    lines: list[str] = []
    for kernel in dict.fromkeys(each.kernel for each in made):
        rows = [
            row
            for each in made
            if each.kernel == kernel and _judge(each) not in (_SAME, _LEFT, _FAILED)
            for row in _rows(each)
        ]
        if rows:
            heading = head(kernel, device.kind, device.model)
            lines += [heading, *lay_out(_COLUMNS, rows), ""]
    lines += list_reasons(
        (f"{each.kernel}/{each.case}", _judge(each), each.reason) for each in made if each.reason
    )
    counts = Counter(_judge(each) for each in made)
    said = [f"{units.format_count(counts[each])} {each[2:]}" for each in _WORDS if counts[each]]
    lines += [", ".join(said)]
    if any(_judge(each) in (_NEW, _WIDER, _NARROWER) for each in made):
        lines += ["written to bounds.toml beside the cases: review and commit it"]
    return lines


def unfrozen_note(rows: Iterable[Measurement | Cell], *, stale_only: bool = False) -> list[str]:
    """Say of how many cases the bounds are not frozen, or are stale; nothing where all are."""
    told = {
        (row.kernel, row.case): dict(row.identity).get(_BOUNDS, "")
        for row in rows
        if row.status is not Status.SKIPPED and _BOUNDS in dict(row.identity)
    }
    counts = Counter(told.values())
    said = [
        f"{units.format_count(counts[each])} {'are' if counts[each] > 1 else 'is'} {words}"
        for each, words in (
            (STALE, "stale (the reference or the case changed since)"),
            (NOT_FROZEN, "not frozen for this kind of device"),
        )
        if counts[each] and not (stale_only and each == NOT_FROZEN)
    ]
    if not said:
        return []
    text = (
        f"bounds of cases: {', '.join(said)}: judged by the library's errors at the same inputs; "
        "perfci check --freeze freezes them"
    )
    return [*wrap(text, indent=0), ""]


def find_bound_changes(baseline: Iterable[Cell], contender: Iterable[Cell]) -> list[BoundChange]:
    """The cases of which two sides say by what bounds they were judged, and not the same."""
    before, after = (_bounds_by_case(cells) for cells in (baseline, contender))
    changes = [
        BoundChange(
            kernel=kernel,
            case=case,
            baseline=one,
            contender=other,
            is_looser=_is_looser(one, other),
        )
        for kernel, case, variant in sorted(before.keys() & after.keys())
        if (one := before[kernel, case, variant]) != (other := after[kernel, case, variant])
    ]
    return sorted(dict.fromkeys(changes), key=lambda each: not each.is_looser)


def changes_table(changes: Sequence[BoundChange]) -> list[str]:
    """Write which bounds changed between two commits, the looser ones first."""
    if not changes:
        return []
    lines = ["bounds changed: what is right here may not have been right there"]
    for each in changes:
        word = "▲ looser" if each.is_looser else "▼ tighter"
        text = f"{word} · {each.kernel}/{each.case}: {each.baseline} → {each.contender}"
        lines += wrap(text, indent=2)
    return [*lines, ""]


def _judge(made: Freeze) -> str:
    if made.failed:
        return _FAILED
    if made.reason:
        return _LEFT
    if made.before is None or made.after is None:
        return _NEW
    if made.before == made.after:
        return _SAME
    return _WIDER if _is_wider(made.before, made.after) else _NARROWER


def _is_wider(before: Bounds, after: Bounds) -> bool:
    pairs = list(zip(before.outputs, after.outputs, strict=False))
    return any(new.largest > old.largest or new.rms > old.rms for old, new in pairs)


def _rows(made: Freeze) -> Iterator[tuple[str, ...]]:
    outputs = made.after.outputs if made.after else ()
    known = made.before.outputs if made.before else ()
    for index, output in enumerate(outputs):
        old = known[index] if index < len(known) else None
        yield (
            made.case if len(outputs) == 1 else f"{made.case} [{index}]",
            f"{output.largest:g}",
            f"{old.largest:g}" if old else units.ABSENT,
            f"{output.rms:g}",
            f"{old.rms:g}" if old else units.ABSENT,
            _judge(made),
        )


def _bounds_by_case(cells: Iterable[Cell]) -> dict[tuple[str, str, str], str]:
    """By what bounds each variant was judged at each case, in the newest run that says so."""
    return {
        (cell.kernel, cell.case, cell.variant): said
        for cell in cells
        if (said := dict(cell.identity).get(_BOUNDS))
    }


def _is_looser(before: str, after: str) -> bool:
    """Whether any figure is larger; without frozen ones nobody has reviewed what is allowed."""
    if after in (NOT_FROZEN, STALE):
        return True
    if before in (NOT_FROZEN, STALE):
        return False
    old, new = _figures(before), _figures(after)
    return old.keys() != new.keys() or any(new[name] > old[name] for name in new)


def _figures(said: str) -> Mapping[str, float]:
    named = (each.rpartition(" ") for each in said.split(", "))
    return {name: float(value) for name, _, value in named}
