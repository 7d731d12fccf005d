"""What a head changes of the rules by which it is judged. Torch-free.

Nothing of it counts while the head is judged: it is told, so that whoever merges it knows. Only its
environment is its own, and is judged with it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields

from perfci.config import Config
from perfci.declaration import GENERAL_RULE
from perfci.gate.matching import is_same_reference
from perfci.gate.sides import Sides
from perfci.history.text import one_line
from perfci.kernel import Case, Kernel, Variant

_PLACES = {"root", "kernels", "store", "cache"}
_LISTS = {"thresholds", "accepted"}
_ITS_OWN = {"environment"}
_DECLARED = ("devices", "dtypes", "maxima", "peer", "tf32", "nondeterministic")


def find_changes(sides: Sides) -> list[str]:
    """Every change that the head makes to settings, workloads and declarations, in a line each."""
    return [
        one_line(each, limit=300)
        for each in (
            *_settings(sides.config, sides.proposed_config),
            *_kernels(sides.baseline, sides.proposed),
        )
    ]


def _settings(before: Config, after: Config) -> Iterator[str]:
    for name in sorted({each.name for each in fields(Config)} - _PLACES - _LISTS - _ITS_OWN):
        one, other = getattr(before, name), getattr(after, name)
        if one != other:
            yield f"[tool.perfci] {name}: {_write(one)} → {_write(other)}"
    known, proposed = dict(before.thresholds), dict(after.thresholds)
    for name in sorted(known.keys() | proposed.keys()):
        if known.get(name) != proposed.get(name):
            values = (_write(each.get(name)) for each in (known, proposed))
            yield f"threshold of {name}: {' → '.join(values)}"
    yield from (f"accepts: {each}" for each in after.accepted if each not in before.accepted)
    yield from (f"no more accepts: {e}" for e in before.accepted if e not in after.accepted)


def _kernels(before: Sequence[Kernel], after: Sequence[Kernel]) -> Iterator[str]:
    known, proposed = _by_name(before), _by_name(after)
    for name in sorted(known.keys() | proposed.keys()):
        if name not in proposed:
            yield f"{name}: the kernel is removed"
        elif name not in known:
            yield f"{name}: a new kernel, judged by its own reference"
        else:
            yield from _one_kernel(known[name], proposed[name])


def _one_kernel(before: Kernel, after: Kernel) -> Iterator[str]:
    name = before.name
    if not is_same_reference(before, after):
        yield f"{name}: the reference is changed"
    for dtype in sorted({*before.tolerances, *after.tolerances}):
        one, other = before.tolerance(dtype), after.tolerance(dtype)
        if one != other:
            yield f"{name}: tolerance of {dtype}: {_write_fields(one, other)}"
    yield from (f"{name}: bounds of {each}" for each in _bounds(before, after))
    for text in (_cases(before.cases, after.cases), _variants(before.variants, after.variants)):
        yield from (f"{name}: {each}" for each in text)


def _bounds(before: Kernel, after: Kernel) -> Iterator[str]:
    places = {*before.frozen, *before.stale, *after.frozen, *after.stale}
    for kind, case in sorted(places):
        one, other = (each.judged_by((kind, case), GENERAL_RULE) for each in (before, after))
        if one != other:
            yield f"{case} on {kind}: {one} → {other}"


def _cases(before: Sequence[Case], after: Sequence[Case]) -> Iterator[str]:
    known, proposed = ({each.name: each for each in cases} for cases in (before, after))
    for name in _in_order(known, proposed):
        if name not in proposed:
            yield f"case {name} is removed"
        elif name not in known:
            yield f"case {name} is new"
        elif known[name] != proposed[name]:
            yield f"case {name}: {_write_fields(known[name], proposed[name])}"


def _variants(before: Sequence[Variant], after: Sequence[Variant]) -> Iterator[str]:
    known, proposed = ({each.name: each for each in variants} for variants in (before, after))
    for name in _in_order(known, proposed):
        if name not in proposed:
            yield f"variant {name} is removed"
            continue
        if name not in known:
            yield f"variant {name} is new"
            continue
        one, other = known[name].declaration, proposed[name].declaration
        changed = [each for each in _DECLARED if getattr(one, each) != getattr(other, each)]
        for each in changed:
            values = (_write(getattr(declared, each)) for declared in (one, other))
            yield f"variant {name}: {each} {' → '.join(values)}"
        if one.tolerance != other.tolerance:
            yield f"variant {name}: tolerance {_write_fields(one.tolerance, other.tolerance)}"


def _in_order(known: Mapping[str, object], proposed: Mapping[str, object]) -> list[str]:
    return [*known, *(each for each in proposed if each not in known)]


def _by_name(kernels: Sequence[Kernel]) -> dict[str, Kernel]:
    return {each.name: each for each in kernels}


def _write_fields(before: object, after: object) -> str:
    names = [each.name for each in fields(before)]  # type: ignore[arg-type]
    changed = [name for name in names if getattr(before, name) != getattr(after, name)]
    return ", ".join(
        f"{name} {_write(getattr(before, name))} → {_write(getattr(after, name))}"
        for name in changed
    )


def _write(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(_write_pair(each) for each in value) or "none"
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    return str(value)


def _write_pair(value: object) -> str:
    return " = ".join(map(str, value)) if isinstance(value, tuple) else str(value)
