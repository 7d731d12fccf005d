"""Which cells two sides have: what can be timed in turns, and what is to be said of the others.

Cells are the base's. What the head does not declare any more is missing; what only it declares is
new; where it declares another workload, nothing can be compared.
"""

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from perfci.history.model import Device, Verdict
from perfci.kernel import Case, Kernel
from perfci.selection import Cell, Selection, choose, why_skipped

_T = TypeVar("_T")

Name = tuple[str, str, str]
"""Kernel, variant and case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpaired:
    """A cell of the base that is not compared, with what is said of it instead."""

    cell: Cell
    verdict: Verdict
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Matching:
    """Pairs in the base's order, the base's other cells, and those that only the head has."""

    pairs: tuple[tuple[Cell, Cell], ...]
    unpaired: tuple[Unpaired, ...]
    new: tuple[Cell, ...]


def match_cells(
    baseline: Sequence[Kernel],
    contender: Sequence[Kernel],
    proposed: Sequence[Kernel],
    selection: Selection,
    device: Device,
) -> Matching:
    """Match the chosen cells of a base with those of a head.

    ``contender`` are the head's variants with the base's workloads, ``proposed`` with its own.
    Cells that neither side takes are left out.
    """
    everything = replace(selection, tier="full")

    def chosen(kernels: Sequence[Kernel], selection: Selection) -> dict[Name, Cell]:
        cells = choose(kernels, selection, device.kind)
        return {_name(each): each for each in cells if not why_skipped(each, device)}

    before, after = chosen(baseline, selection), chosen(contender, everything)
    declared_before, declared_after = chosen(baseline, everything), chosen(proposed, everything)
    pairs: list[tuple[Cell, Cell]] = []
    unpaired: list[Unpaired] = []
    for name, cell in before.items():
        other = after.get(name)
        if other is None or name not in declared_after:
            reason = _why_gone(cell, contender, proposed, device)
            unpaired.append(Unpaired(cell=cell, verdict=Verdict.MISSING, reason=reason))
        elif changed := find_workload_change(cell, declared_after[name]):
            reason = f"the head changes {changed}, and with it what is measured"
            unpaired.append(Unpaired(cell=cell, verdict=Verdict.INCOMPARABLE, reason=reason))
        else:
            pairs.append((cell, other))
    return Matching(
        pairs=tuple(pairs),
        unpaired=tuple(unpaired),
        new=tuple(
            cell
            for name, cell in chosen(proposed, selection).items()
            if name not in declared_before
        ),
    )


def find_workload_change(before: Cell, after: Cell) -> str:
    """What of a cell's workload differs: the reference or the case; empty where neither does.

    Comments of a reference are no difference.
    """
    if not is_same_reference(before.kernel, after.kernel):
        return "the reference"
    return "the case" if _measured(before.case) != _measured(after.case) else ""


def is_same_reference(before: Kernel, after: Kernel) -> bool:
    """Whether two kernels have the same reference, comments aside."""
    one, other = ((each.workload_folder / "reference.py").read_bytes() for each in (before, after))
    return one == other or ast.dump(ast.parse(one)) == ast.dump(ast.parse(other))


def _measured(case: Case) -> tuple[object, ...]:
    """What of a case decides what is measured."""
    return (case.timed, case.dtype, case.distribution, case.layout, sorted(case.arguments))


def _why_gone(
    cell: Cell, contender: Sequence[Kernel], proposed: Sequence[Kernel], device: Device
) -> str:
    kernel = _find(proposed, lambda each: each.name == cell.kernel.name)
    if kernel is None:
        return "the head has no such kernel"
    variant = _find(kernel.variants, lambda each: each.name == cell.variant.name)
    if variant is None:
        return "the head has no such variant"
    if not any(each.name == cell.case.name for each in kernel.cases):
        return "the head has no such case"
    judged = _find(contender, lambda each: each.name == kernel.name) or kernel
    case = next(each for each in kernel.cases if each.name == cell.case.name)
    for each in (cell.case, case):
        reason = why_skipped(Cell(kernel=judged, variant=variant, case=each), device)
        if reason:
            return f"the head's variant does not take it: {reason}"
    return "the head declares it no more"


def _find(entries: Iterable[_T], is_wanted: Callable[[_T], bool]) -> _T | None:
    return next((each for each in entries if is_wanted(each)), None)


def _name(cell: Cell) -> Name:
    return cell.kernel.name, cell.variant.name, cell.case.name
