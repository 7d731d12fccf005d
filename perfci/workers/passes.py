"""Passes seen from outside: fresh processes from a fork server, watched, and ended if need be.

The server has imported torch and run nothing. A worker that dies or hangs costs the task it was
at; what was left goes on in another. This module must not import torch.
"""

import multiprocessing
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext

from perfci.config import apply_environment
from perfci.environments.installation import Installation
from perfci.errors import ConfigurationError, DeviceError
from perfci.history.model import Device, Status
from perfci.history.text import one_line
from perfci.outcome import Outcome, require_pair
from perfci.plan import Gauge, Limits, Target, Task
from perfci.workers.crew import Crew
from perfci.workers.inside import Errand
from perfci.workers.process import (
    EXIT_GRACE_S,
    MESSAGE_LIMIT,
    START_TIMEOUT_S,
    Worker,
    cause_of_death,
)
from perfci.workers.starting import launch_from, launch_in, start

_LONGEST_TEMPORARY_FOLDER = 70

Ended = Iterator[tuple[int, tuple[Outcome, ...]]]
"""Tasks by their index, with an outcome for each side."""


class PassServer:
    """The fork server that starts passes; it ends with this process.

    With ``compiling`` it has imported torch's compiler too, which every pass with a
    ``torch.compile`` in it would otherwise do for seconds.
    """

    def __init__(self, environment: Mapping[str, str], *, compiling: bool = False) -> None:
        apply_environment(environment)
        _check_temporary_folder()
        self._context: ForkServerContext = multiprocessing.get_context("forkserver")
        compilers = ["torch._dynamo", "torch._inductor.compile_fx"] if compiling else []
        first, last = "perfci.workers.preloading", "perfci.workers.preloaded"
        self._context.set_forkserver_preload([first, "perfci.workers.worker", *compilers, last])

    def probe_gpus(self) -> tuple[Device, ...]:
        """The GPUs as torch sees them. Raises DeviceError where asking fails."""
        received, sent = self._context.Pipe(duplex=False)
        process = self._context.Process(target=_enter_probe, args=(sent,))
        start(process)
        sent.close()
        try:
            if not received.poll(START_TIMEOUT_S):
                raise DeviceError("the GPU does not answer; see nvidia-smi")
            devices: tuple[Device, ...] = received.recv()
        except EOFError:
            process.join(EXIT_GRACE_S)
            cause = cause_of_death(process.exitcode)
            raise DeviceError(f"asking torch for the GPUs failed: {cause}") from None
        finally:
            process.kill()
            process.join()
        return devices

    def run(
        self, tasks: Sequence[Task | Gauge], *, target: Target, limits: Limits
    ) -> Iterator[tuple[int, tuple[Outcome, ...]]]:
        """Run tasks in a fresh process, or several where one does not survive.

        Each environment has a process of its own, and tasks whose sides have different ones take
        turns in two. Yields (index of the task, an outcome for each of its sides) as they end.
        """
        places: dict[tuple[Installation | None, ...], list[int]] = {}
        for index, task in enumerate(tasks):
            places.setdefault(tuple(dict.fromkeys(task.installations)), []).append(index)
        for place, indices in places.items():
            chosen = [tasks[index] for index in indices]
            errand = Errand(tasks=chosen, first=0, target=target, limits=limits)
            run = self._run_apart if len(place) > 1 else self._run_together
            for number, outcomes in run(errand, place):
                yield indices[number], outcomes

    def _run_together(self, errand: Errand, place: Sequence[Installation | None]) -> Ended:
        """Run all sides of each task in one process of one environment."""
        (installation,) = place
        launch = launch_in(installation) if installation else launch_from(self._context)
        next_task, tasks = 0, errand.tasks
        while next_task < len(tasks):
            ended: Outcome | None = None
            with Worker(launch, replace(errand, first=next_task)) as worker:
                for index, outcomes in worker.outcomes():
                    next_task = index + 1
                    if len(outcomes) < len(tasks[index].sides):
                        (ended,) = outcomes
                        break
                    yield index, outcomes
            if ended is not None:
                yield next_task - 1, self._by_themselves(tasks[next_task - 1], ended, errand)

    def _run_apart(self, errand: Errand, place: Sequence[Installation | None]) -> Ended:
        """Run each side of each task in a process of its own environment, in turns."""
        launches = [launch_in(each) for each in place]
        with Crew(launches, errand) as crew:
            yield from crew.outcomes()

    def _by_themselves(
        self, task: Task | Gauge, ended: Outcome, errand: Errand
    ) -> tuple[Outcome, ...]:
        """What becomes of two sides of which one has ended their process: each by itself."""
        alone = self.run(task.apart(), target=errand.target, limits=errand.limits)
        outcomes = [outcome for _, (outcome,) in alone]
        if any(each.status is not Status.PASSED for each in outcomes):
            return require_pair(outcomes)
        message = one_line(f"only beside the other side: {ended.message}", limit=MESSAGE_LIMIT)
        return (replace(ended, message=message),) * len(outcomes)


def _check_temporary_folder() -> None:
    """ConfigurationError where the fork server's socket, in TMPDIR, would have too long a name."""
    folder = tempfile.gettempdir()
    if len(os.fsencode(folder)) > _LONGEST_TEMPORARY_FOLDER:
        raise ConfigurationError(
            f"TMPDIR={folder}: too long for a socket in it; set it to a folder whose path has "
            f"{_LONGEST_TEMPORARY_FOLDER} characters at most"
        )


def _enter_probe(answer: Connection) -> None:
    from perfci.workers.probe import probe_gpus  # noqa: PLC0415 — imports torch, which the parent must not

    answer.send(probe_gpus())
