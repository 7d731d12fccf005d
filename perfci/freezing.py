"""Freezing bounds: how far the library is from float64, over many seeds, written beside the cases.

The seeds are always the same, so that freezing again on the same machine finds the same. They are
no secret: what a variant is judged at is drawn from others.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from perfci.config import Config
from perfci.error_bounds import (
    BOUNDS_FILE,
    FEWEST_SEEDS,
    Bounds,
    Freeze,
    OutputBound,
    outputs_of,
    read_bounds,
    write_bounds,
)
from perfci.history.model import Status
from perfci.kernel import Case, Kernel, lacking_memory
from perfci.outcome import Outcome
from perfci.plan import Gauge, Target
from perfci.prepare import limits_of
from perfci.progress import Observer
from perfci.selection import Selection, chosen_cases
from perfci.toolchain import torch_version
from perfci.workers.passes import PassServer

SEEDS = {"smoke": 5 * FEWEST_SEEDS, "full": FEWEST_SEEDS}
"""By tier: the small cases take no time, and more seeds see more of what is rare."""

_PARTS = 10
"""In how many tasks the seeds of a case are taken, so that long ones show that they go on."""


def freeze(
    kernels: Sequence[Kernel],
    selection: Selection,
    config: Config,
    *,
    target: Target,
    server: PassServer,
    observer: Observer,
) -> list[Freeze]:
    """Measure the library at the chosen cases that some variant takes there, and write its bounds.

    What is frozen of other cases and kinds of device stays. Raises UsageError for a name that
    nothing has, ConfigurationError where a file cannot be written.
    """
    device = target.device
    chosen = [
        (kernel, case)
        for kernel, case in chosen_cases(kernels, selection, device.kind)
        if any(device.kind in each.declaration.devices for each in kernel.variants)
    ]
    lacks = {
        (kernel.name, case.name): lack
        for kernel, case in chosen
        if (lack := lacking_memory(case, device.memory_bytes))
    }
    fitting = [each for each in chosen if (each[0].name, each[1].name) not in lacks]
    gauges = [gauge for each in fitting for gauge in _gauges(*each)]
    limits = replace(limits_of(config, target), timeout_s=config.build_timeout_s)
    outcomes: dict[tuple[str, str], list[Outcome]] = {}
    for index, (outcome,) in server.run(gauges, target=target, limits=limits):
        place = (gauges[index].kernel.name, gauges[index].case.name)
        outcomes.setdefault(place, []).append(outcome)
        observer.step("freeze", index + 1, len(gauges), "/".join(place))
    made = [_frozen(each, outcomes, lacks, target) for each in chosen]
    for kernel in {kernel.name: kernel for kernel, _ in fitting}.values():
        _write(kernel, [each for each in made if each.kernel == kernel.name], device.kind)
    return made


def _gauges(kernel: Kernel, case: Case) -> Iterator[Gauge]:
    count = SEEDS[case.tier]
    size = count // _PARTS
    for first in range(0, count, size):
        yield Gauge(kernel=kernel, case=case, seeds=tuple(range(first, first + size)))


def _frozen(
    chosen: tuple[Kernel, Case],
    outcomes: dict[tuple[str, str], list[Outcome]],
    lacks: dict[tuple[str, str], str],
    target: Target,
) -> Freeze:
    kernel, case = chosen
    place = (kernel.name, case.name)
    before = _known(kernel).get((target.device.kind, case.name))
    same = Freeze(kernel=kernel.name, case=case.name, before=before, after=before)
    if place in lacks:
        return replace(same, reason=lacks[place])
    own = outcomes[place]
    bad = next((each for each in own if each.status is not Status.PASSED), None)
    if bad is not None:
        return replace(same, reason=bad.message, failed=True)
    try:
        outputs = _widest([outputs_of(each.metrics) for each in own])
    except ValueError as error:
        return replace(same, reason=f"its process says {error}", failed=True)
    if excess := next((found for each in outputs if (found := each.excess(case.dtype))), ""):
        reason = f"the library's errors are as large as the values: {excess}"
        return replace(same, reason=reason, failed=True)
    after = Bounds(
        workload=kernel.workload_digest(case),
        seeds=SEEDS[case.tier],
        torch=torch_version() or "",
        device=target.device.model,
        outputs=tuple(each.rounded() for each in outputs),
    )
    return replace(same, after=after)


def _widest(parts: Sequence[tuple[OutputBound, ...]]) -> list[OutputBound]:
    widest = list(parts[0])
    for part in parts[1:]:
        widest = [one.widened(other) for one, other in zip(widest, part, strict=True)]
    return widest


def _known(kernel: Kernel) -> dict[tuple[str, str], Bounds]:
    dtypes = {each.name: each.dtype for each in kernel.cases}
    return read_bounds(kernel.workload_folder / BOUNDS_FILE, dtypes)


def _write(kernel: Kernel, made: Sequence[Freeze], kind: str) -> None:
    fresh = {(kind, each.case): each.after for each in made if each.after is not None}
    known = _known(kernel)
    if known | fresh != known:
        path = kernel.workload_folder / BOUNDS_FILE
        write_bounds(path, known | fresh, [each.name for each in kernel.cases])
