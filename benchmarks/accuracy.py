"""How exact the variants of a kernel are: against float64, and against the library.

The library is the reference in the case's dtype, with TF32 off. For it, for itself in TF32, and for
every variant that the device and the case allow, over a few fixed seeds:

- the largest absolute difference from the reference in float64, also over the standard deviation
  of that exact output: within its scatter what it is for weights that are scaled to unit variance;
- the largest absolute difference from the library;
- whether all elements of x pass |x − y| ≤ 1e-4 + 1e-4 |y|, with y one of the two.

Nothing is timed, so that one process does it all.

    python benchmarks/accuracy.py mla_kv_projection --case headline --seeds 3 --out accuracy.json
"""

import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache, partial
from typing import TextIO

import click
import torch
from torch import Tensor

from perfci import units
from perfci.build import Build
from perfci.checking.check import is_sound
from perfci.checking.inputs import (
    Arguments,
    Reference,
    as_float64,
    as_tuple,
    describe,
    draw_inputs,
    load_reference,
)
from perfci.checking.numerics import pinned_precision
from perfci.checking.outputs import GuardedOutputs
from perfci.config import apply_environment, child_environment, load_config
from perfci.device import find_target
from perfci.entry import KernelError, load_entry
from perfci.errors import DeviceError, PerfciError, UsageError
from perfci.kernel import Case, Kernel, discover, skip_reason
from perfci.lock import lock_device
from perfci.prepare import architectures_for, build_all
from perfci.progress import Observer, progress
from perfci.reports.columns import Column, lay_out, wrap
from perfci.reports.text import head
from perfci.selection import Selection, select
from perfci.workers.passes import PassServer

TOLERANCE = 1e-4
LIBRARY, LIBRARY_TF32 = "library", "library in TF32"
_NUMBERS = ("from float64", "÷ deviation", "passes", "from library", "passes")
_COLUMNS = (
    Column("variant", shrinks=True),
    *(Column(heading, align="right") for heading in _NUMBERS),
)
_LEGEND = (
    "from: the largest absolute difference, its range over the seeds; ÷ deviation: the same over "
    "the standard deviation of the exact output; passes: the seeds for which every element is "
    f"within {TOLERANCE:g} + {TOLERANCE:g} |y| of y, which is float64 or the library"
)

Outputs = tuple[Tensor, ...]
Returned = Tensor | Sequence[Tensor]
Call = Callable[[Arguments, Outputs], Returned]
"""A way to compute: it returns its outputs, which may be those that it is given to fill."""

_load = cache(load_entry)


@dataclass(frozen=True, slots=True, kw_only=True)
class Distance:
    """How far the outputs for one seed are from the right ones: the largest of all elements."""

    from_float64: float
    over_deviation: float
    from_library: float
    passes_float64: bool
    passes_library: bool


@dataclass(slots=True, kw_only=True)
class Row:
    """The distances of one way to compute, by seed, or why it has none."""

    name: str
    distances: list[Distance] = field(default_factory=list)
    failure: str = ""


@dataclass(slots=True, kw_only=True)
class Table:
    """The rows of a kernel at a case, and by seed how large the exact outputs are."""

    seeds: list[int]
    rows: list[Row]
    largest: list[float] = field(default_factory=list)
    deviation: list[float] = field(default_factory=list)


@click.command()
@click.argument("name", metavar="KERNEL")
@click.option("--case", "case_name", metavar="NAME", default="headline", show_default=True)
@click.option("--seeds", "count", type=click.IntRange(min=1), default=3, show_default=True)
@click.option("--variant", "names", multiple=True, metavar="NAME", help="Only this one.")
@click.option("--device", metavar="NAME", help="cpu, or a GPU's number or UUID.")
@click.option("--out", type=click.File("w", "utf-8", lazy=False), help="Write JSON here.")
def main(
    name: str,
    case_name: str,
    count: int,
    names: tuple[str, ...],
    device: str | None,
    out: TextIO | None,
) -> None:
    """Print how far the variants of KERNEL are from float64 and from the library."""
    config = load_config()
    target = find_target(device, PassServer(child_environment(config.cache)).probe_gpus)
    kind = target.device.kind
    kernel, case = choose(discover(config.kernels), name, case_name, names, kind)
    chosen = [each for each in kernel.variants if not names or each.name in names]
    memory_bytes = target.device.memory_bytes
    reasons = {
        each.name: skip_reason(each, case, kind, device_memory_bytes=memory_bytes)
        for each in chosen
    }
    taken = [each for each in chosen if not reasons[each.name]]
    with progress() as observer, lock_device(target.device), torch.no_grad():
        builds = build_all(taken, config, architectures_for(config, target), observer)
        if target.device.uuid is not None:
            apply_environment({"CUDA_VISIBLE_DEVICES": target.device.uuid})
        reference = load_reference(kernel)
        calls: dict[str, Call] = {LIBRARY: partial(refer, reference)}
        if kind == "cuda" and case.dtype == "float32":
            calls[LIBRARY_TF32] = partial(refer, reference, tf32=True)
        else:
            reasons[LIBRARY_TF32] = "only float32 on cuda has it"
        calls |= {each.variant.name: partial(call_variant, each) for each in builds}
        table = measure(calls, reference, case, target.name, seeds=range(count), observer=observer)
    click.echo(head(name, case_name, case.dtype, target.device.model))
    click.echo("\n".join([*write(table), *write_reasons(reasons)]))
    if out is not None:
        about = {"kernel": name, "case": case_name, "device": target.device.model}
        json.dump({**about, "torch": torch.__version__, **asdict(table)}, out, indent=2)


def choose(
    kernels: Sequence[Kernel], name: str, case_name: str, names: Sequence[str], kind: str
) -> tuple[Kernel, Case]:
    """The kernel and the case of those names; UsageError where something is not there."""
    select(kernels, Selection(kernels=(name,), variants=tuple(names), cases=(case_name,)), kind)
    kernel = next(each for each in kernels if each.name == name)
    case = next(each for each in kernel.cases if each.name == case_name)
    if kind not in case.devices:
        raise UsageError(
            f"{name}/{case_name} is declared for {', '.join(case.devices)} only, not for {kind}; "
            "name another --case or --device"
        )
    return kernel, case


def refer(
    reference: Reference, arguments: Arguments, _: Outputs = (), *, tf32: bool = False
) -> Outputs:
    """The reference's outputs, in its arguments' dtype."""
    with pinned_precision(tf32=tf32):
        return as_tuple(reference.reference(*arguments.values()))


def call_variant(build: Build, arguments: Arguments, outputs: Outputs) -> Returned:
    """What a variant returns. Raises KernelError where it does not build, and what it raises."""
    if build.failed:
        raise KernelError(f"does not build: {build.message}")
    returned: Returned = _load(build).bind(arguments, outputs)()
    return returned


def measure(
    calls: Mapping[str, Call],
    reference: Reference,
    case: Case,
    device: str,
    *,
    seeds: Sequence[int],
    observer: Observer,
) -> Table:
    """Call each once a seed, on inputs of its own; one that fails is not called again."""
    table = Table(seeds=[*seeds], rows=[Row(name=name) for name in calls])
    done, steps = 0, len(seeds) * len(calls)
    for seed in seeds:
        draw = partial(draw_inputs, reference, case, device=device, seed=seed)
        library = refer(reference, draw())
        exact = flatten(refer(reference, as_float64(draw())))
        table.largest.append(float(exact.abs().max()))
        table.deviation.append(float(exact.std(correction=0)))
        for row in table.rows:
            if not row.failure:
                _extend(row, calls[row.name], draw(), library, exact)
            done += 1
            observer.step("compare", done, steps, row.name)
    return table


def _extend(row: Row, call: Call, arguments: Arguments, library: Outputs, exact: Tensor) -> None:
    """Add the distance for one more seed to a row, or why there is none."""
    try:
        outputs = as_tuple(call(arguments, GuardedOutputs(library).tensors))
        _check_shapes(outputs, library)
        row.distances.append(compare(flatten(outputs), flatten(library), exact))
    except Exception as error:  # noqa: BLE001 — a variant's call may raise anything
        row.failure = str(error) if isinstance(error, KernelError) else describe(error)
        if not is_sound(str(exact.device)):
            raise DeviceError(
                f"{row.name} broke the GPU for all others ({row.failure}); "
                "name those that shall be compared with --variant"
            ) from None


def _check_shapes(outputs: Outputs, library: Outputs) -> None:
    """KernelError where outputs would be compared only because they broadcast."""
    shapes, right = ([tuple(each.shape) for each in some] for some in (outputs, library))
    if shapes != right:
        raise KernelError(f"returns outputs of shape {shapes}, not {right}")


def flatten(outputs: Outputs) -> Tensor:
    """All elements of all outputs in one row of float64."""
    return torch.cat([each.double().flatten() for each in outputs])


def compare(output: Tensor, library: Tensor, exact: Tensor) -> Distance:
    """The largest distances of a row of float64 from two others."""
    from_float64 = (output - exact).abs().max()
    return Distance(
        from_float64=float(from_float64),
        over_deviation=float(from_float64 / exact.std(correction=0)),
        from_library=float((output - library).abs().max()),
        passes_float64=torch.allclose(output, exact, rtol=TOLERANCE, atol=TOLERANCE),
        passes_library=torch.allclose(output, library, rtol=TOLERANCE, atol=TOLERANCE),
    )


def write(table: Table) -> list[str]:
    """The table, the largest error first, and what its columns mean; at most 80 wide."""
    rows = sorted(table.rows, key=_rank, reverse=True)
    largest, deviation = (units.format_number(max(e)) for e in (table.largest, table.deviation))
    first, last = table.seeds[0], table.seeds[-1]
    seeds = f"seeds {first} to {last}" if last > first else f"seed {first}"
    about = (
        f"{seeds}; the exact output reaches {largest}, its standard deviation is up to {deviation}"
    )
    failures = [f"{row.name} fails: {row.failure}" for row in rows if row.failure]
    return [
        *wrap(about, indent=0),
        "",
        *lay_out(_COLUMNS, [_write_row(row) for row in rows]),
        "",
        *(line for text in (_LEGEND, *failures) for line in wrap(text, indent=0)),
    ]


def write_reasons(reasons: Mapping[str, str]) -> list[str]:
    """Why something has no row, what has the same reason together."""
    names: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        if reason:
            names.setdefault(reason, []).append(name)
    return [
        line
        for reason, left_out in names.items()
        for line in wrap(f"left out ({reason}): {', '.join(left_out)}", indent=0)
    ]


def _rank(row: Row) -> float:
    """The largest error; above all others where it is no number, below where there is none."""
    if row.failure:
        return -1.0
    return max(math.inf if math.isnan(d.from_float64) else d.from_float64 for d in row.distances)


def _write_row(row: Row) -> tuple[str, ...]:
    if row.failure:
        return (row.name, "fails", *(units.ABSENT for _ in _NUMBERS[1:]))
    every = row.distances

    def extremes(values: list[float]) -> str:
        if any(math.isnan(each) for each in values):
            return "nan"
        return units.format_error_range(min(values), max(values))

    def passes(values: list[bool]) -> str:
        return f"{units.format_count(sum(values))} of {units.format_count(len(values))}"

    return (
        row.name,
        extremes([each.from_float64 for each in every]),
        extremes([each.over_deviation for each in every]),
        passes([each.passes_float64 for each in every]),
        extremes([each.from_library for each in every]),
        passes([each.passes_library for each in every]),
    )


if __name__ == "__main__":
    try:
        main()
    except PerfciError as error:
        click.echo(f"accuracy.py: {error}", err=True)
        sys.exit(int(error.exit_code))
