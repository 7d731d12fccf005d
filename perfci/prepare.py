"""Variants that compile at their first call (torch.compile, Triton) do it here, before any pass.

Their compilers keep what they make in caches under perfci's own; a marker says which variant has
been through it for which case, so that an unchanged one is not prepared again.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from perfci.build import Build
from perfci.config import Config
from perfci.history.model import Status
from perfci.plan import Limits, Target, Task
from perfci.progress import Observer
from perfci.selection import Cell
from perfci.workers.passes import PassServer


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
