"""What comes before passes: builds, what cannot be measured, and what a task may use.

Variants that compile at their first call (torch.compile, Triton) do it here. Their compilers keep
what they make in caches under perfci's own; a marker says which variant has been through it for
which case, so that an unchanged one is not prepared again.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from perfci.build import Build, build
from perfci.config import Config
from perfci.device import memory_bytes
from perfci.history.model import Status
from perfci.kernel import Variant, skip_reason
from perfci.plan import Limits, Target, Task
from perfci.progress import Observer
from perfci.selection import Cell
from perfci.workers.passes import PassServer

_MEMORY_SHARE = 0.8


def architectures_for(config: Config, target: Target | None) -> tuple[str, ...]:
    """The architectures to compile for: those configured, else the device's own if it has one."""
    capability = target.device.compute_capability if target else None
    if config.architectures or capability is None:
        return config.architectures
    return (f"sm_{capability.replace('.', '')}",)


def build_all(
    variants: Sequence[Variant],
    config: Config,
    architectures: Sequence[str],
    observer: Observer,
) -> list[Build]:
    """Build variants, telling the observer."""
    return build(
        variants,
        config,
        architectures=architectures,
        on_step=lambda done, total, name: observer.step("build", done, total, name),
    )


def prepare_all(
    cells: Sequence[Cell],
    builds: Sequence[Build],
    config: Config,
    target: Target,
    server: PassServer,
    observer: Observer,
) -> int:
    """Let the variants that compile at their first call do so; how many cells that were."""
    by_key = {each.variant.key: each for each in builds}
    live = [(by_key[cell.variant.key], cell) for cell in cells if not reason_to_skip(cell, target)]
    limits = limits_of(config, target)
    return Prepared(config).fill(
        live, server=server, target=target, limits=limits, observer=observer
    )


def limits_of(config: Config, target: Target) -> Limits:
    """What a task may use on a device, as configured."""
    memory = None
    if config.memory_limit_gib is not None:
        memory = int(config.memory_limit_gib * 2**30)
    elif target.device.kind == "cpu":
        memory = int(memory_bytes() * _MEMORY_SHARE)
    return Limits(
        timeout_s=config.timeout_s,
        cell_budget_s=config.cell_budget_s,
        memory_bytes=memory,
    )


def reason_to_skip(cell: Cell, target: Target) -> str:
    """Why a cell cannot be measured on a device; empty where it can."""
    device = target.device
    return skip_reason(
        cell.variant, cell.case, device.kind, device_memory_bytes=device.memory_bytes
    )


class Prepared:
    """The markers of what has been prepared, one file each."""

    def __init__(self, config: Config) -> None:
        self._folder = config.cache / "prepared"
        self._timeout_s = config.build_timeout_s

    def fill(
        self,
        live: Sequence[tuple[Build, Cell]],
        *,
        server: PassServer,
        target: Target,
        limits: Limits,
        observer: Observer,
    ) -> int:
        """Prepare the cells that have not been; returns how many that were.

        One that fails is left to the passes, where it becomes a row.
        """
        pending = [
            (build, cell)
            for build, cell in live
            if cell.variant.declaration.compiles and not self._marker(build, cell, target).exists()
        ]
        tasks = [
            Task(kernel=cell.kernel, build=build, case=cell.case, seeds=(0,))
            for build, cell in pending
        ]
        longer = Limits(
            timeout_s=self._timeout_s,
            cell_budget_s=limits.cell_budget_s,
            memory_bytes=limits.memory_bytes,
        )
        for index, (outcome,) in server.run(tasks, target=target, limits=longer):
            observer.step("compile", index + 1, len(tasks), "/".join(tasks[index].cell))
            if outcome.status in (Status.PASSED, Status.SKIPPED):
                marker = self._marker(*pending[index], target)
                marker.parent.mkdir(parents=True, exist_ok=True)
                marker.touch()
        return len(tasks)

    def _marker(self, build: Build, cell: Cell, target: Target) -> Path:
        """Where it is marked that a variant went through its compiler for a case and a model."""
        key = [build.digest, cell.kernel.workload_digest(cell.case), target.device.model]
        return self._folder / hashlib.sha256(json.dumps(key).encode()).hexdigest()[:32]
