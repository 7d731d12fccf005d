"""Which cells an invocation means: kernels, variants and cases by name, cases by tier."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from perfci.errors import UsageError
from perfci.history.model import Device
from perfci.kernel import Case, Kernel, Tier, Variant, skip_reason
from perfci.suggest import did_you_mean


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What to choose. An empty tuple chooses all; ``smoke`` chooses the smoke cases only.

    A case that is named is chosen whatever its tier.
    """

    kernels: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    tier: Tier = "smoke"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One variant of a kernel at one case."""

    kernel: Kernel
    variant: Variant
    case: Case


def why_skipped(cell: Cell, device: Device) -> str:
    """Why a cell is declared not to run on a device; empty where it is to run."""
    return skip_reason(
        cell.variant, cell.case, device.kind, device_memory_bytes=device.memory_bytes
    )


def select(kernels: Sequence[Kernel], selection: Selection, device_kind: str) -> list[Cell]:
    """The chosen cells for a kind of device. Raises UsageError for a name that nothing has.

    What is declared for other kinds of device is not among them.
    """
    refuse_unknown(kernels, selection)
    return choose(kernels, selection, device_kind)


def refuse_unknown(kernels: Sequence[Kernel], selection: Selection) -> None:
    """Raise UsageError for a name that none of the kernels has."""
    _refuse("kernel", selection.kernels, (each.name for each in kernels))
    chosen = _named(kernels, selection)
    _refuse("variant", selection.variants, (each.name for k in chosen for each in k.variants))
    _refuse("case", selection.cases, (each.name for k in chosen for each in k.cases))


def choose(kernels: Sequence[Kernel], selection: Selection, device_kind: str) -> list[Cell]:
    """The chosen cells, as ``select`` finds them; a name that nothing has chooses nothing."""
    return [
        Cell(kernel=kernel, variant=variant, case=case)
        for kernel in _named(kernels, selection)
        for variant in kernel.variants
        if not selection.variants or variant.name in selection.variants
        if device_kind in variant.declaration.devices
        for case in kernel.cases
        if device_kind in case.devices and _case_chosen(case, selection)
        if case.timed or not variant.declaration.peer
    ]


def chosen_cases(
    kernels: Sequence[Kernel], selection: Selection, device_kind: str
) -> list[tuple[Kernel, Case]]:
    """The chosen cases for a kind of device. Raises UsageError for a name that nothing has."""
    refuse_unknown(kernels, selection)
    return [
        (kernel, case)
        for kernel in _named(kernels, selection)
        for case in kernel.cases
        if device_kind in case.devices and _case_chosen(case, selection)
    ]


def variants_of(cells: Iterable[Cell]) -> list[Variant]:
    """The variants of some cells, each once, in their order."""
    return list({cell.variant.key: cell.variant for cell in cells}.values())


def left_out(kernels: Sequence[Kernel], selection: Selection, device_kind: str) -> list[Variant]:
    """The chosen variants that are declared for other kinds of device only."""
    return [
        variant
        for kernel in kernels
        if not selection.kernels or kernel.name in selection.kernels
        for variant in kernel.variants
        if not selection.variants or variant.name in selection.variants
        if device_kind not in variant.declaration.devices
    ]


def _named(kernels: Sequence[Kernel], selection: Selection) -> list[Kernel]:
    return [each for each in kernels if not selection.kernels or each.name in selection.kernels]


def _case_chosen(case: Case, selection: Selection) -> bool:
    if selection.cases:
        return case.name in selection.cases
    return selection.tier == "full" or case.tier == "smoke"


def _refuse(what: str, asked: Iterable[str], known: Iterable[str]) -> None:
    names = set(known)
    for name in asked:
        if name not in names:
            raise UsageError(f"no {what} '{name}' {did_you_mean(name, names)}")
