"""A GitHub that runs workflows: each job in a folder of its own, from the YAML that there is.

It reads the workflow from the commit that GitHub reads it from, and refuses each key, action,
condition and expression that it does not know. Not done here: rights of tokens, and timeouts.
"""

import itertools
import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import scratch
import yaml
from expressions import Missing, evaluate, fill_in, find_expressions, is_true, require_evaluable
from steps import Machine, Steps, UnknownError, require_known

_WORKFLOW_KEYS = {"name", "on", "permissions", "concurrency", "defaults", "jobs"}
_JOB_KEYS = {
    "name", "if", "needs", "runs-on", "timeout-minutes", "permissions", "concurrency", "strategy",
    "outputs", "env", "steps",
}  # fmt: skip
_CONTEXTS = ("env", "github", "inputs", "matrix", "needs", "runner", "steps", "vars")
_STATUS = ("always", "cancelled", "failure", "success")
_HOSTED = ["ubuntu-24.04"]


@dataclass
class Job:
    """One job of a run, or one of its matrix: skipped, success or failure."""

    name: str
    result: str
    steps: Steps | None = None
    outputs: dict[str, str] = field(default_factory=dict)

    @property
    def printed(self) -> str:
        """What all steps have printed."""
        done = self.steps.done if self.steps else []
        return "".join(f"--- {each.name}: {each.outcome}\n{each.printed}" for each in done)


@dataclass
class Finished:
    """A run of a workflow by its jobs; those of a matrix are ``measure (h200)``."""

    jobs: dict[str, Job] = field(default_factory=dict)

    @property
    def results(self) -> dict[str, str]:
        return {name: job.result for name, job in self.jobs.items()}

    @property
    def conclusion(self) -> str:
        return "failure" if "failure" in self.results.values() else "success"

    @property
    def summaries(self) -> str:
        """What its jobs have written into the summary of the run."""
        return "".join(job.steps.summary for job in self.jobs.values() if job.steps)

    @property
    def printed(self) -> str:
        return "".join(f"=== {job.name}: {job.result}\n{job.printed}" for job in self.jobs.values())


@dataclass
class Forge:
    """Runs the workflows of a bare repository; ``silent`` are runners that never answer."""

    folder: Path
    remote: Path
    vars: dict[str, str] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    token: str = "token-of-the-workflow"
    silent: Collection[str] = ()

    def __post_init__(self) -> None:
        self._numbers = itertools.count()
        self._programs = self.folder / "programs"
        self._programs.mkdir()
        python = self._programs / "python3"
        # What a machine brings: packages, so that nothing is downloaded.
        python.write_text(
            '#!/bin/sh\nif [ "$1 $2" = "-m venv" ]; then\n'
            f'  {sys.executable} -m venv --without-pip "$3" || exit\n'
            '  for each in "$3"/lib/python3*/site-packages; do\n'
            f'    echo {sysconfig.get_path("purelib")} > "$each/machine.pth"\n'
            "  done\n"
            f'else\n  exec {sys.executable} "$@"\nfi\n'
        )
        python.chmod(0o755)

    def make_python(self, folder: Path) -> None:
        """A Python in a folder of its own that has the packages of the machine."""
        subprocess.run([self._programs / "python3", "-m", "venv", folder], check=True)
        site = next((folder / "lib").glob("python3*/site-packages"))
        assert (site / "machine.pth").exists()

    def run(self, workflow: str, event: Mapping[str, str]) -> Finished | None:
        """Run a workflow about an event, given as a job's variables; None if it is not for it."""
        payload = json.loads(Path(event["GITHUB_EVENT_PATH"]).read_text())
        parsed = self._read(workflow, event)
        require_known(parsed, _WORKFLOW_KEYS, workflow)
        assert parsed["permissions"] == {}
        triggers = parsed.get("on", parsed.get(True))  # without quotes, YAML takes it for true
        if not _is_for(triggers, event, payload):
            return None
        finished = Finished()
        contexts = {"github": self._github(event, payload), "vars": self.vars}
        shell = parsed.get("defaults", {}).get("run", {}).get("shell", "")
        fill_in(str(parsed.get("concurrency", {}).get("group", "")), contexts, {})
        for name, job in parsed["jobs"].items():
            require_known(job, _JOB_KEYS, name)
            for each, matrix in self._of_job(name, job, finished, contexts):
                finished.jobs[each] = self._run_job(each, job, matrix, event, shell)
        return finished

    def _read(self, workflow: str, event: Mapping[str, str]) -> Any:
        """The workflow as GitHub reads it: at the commit of the event."""
        path = f"{event['GITHUB_SHA']}:.github/workflows/{workflow}"
        parsed = yaml.safe_load(scratch.git(self.remote, "show", path))
        for each in find_expressions(parsed):  # also of what this event does not reach
            require_evaluable(each, _CONTEXTS, _STATUS)
        return parsed

    def _github(self, event: Mapping[str, str], payload: Any) -> dict[str, Any]:
        return {
            "event": payload,
            "event_name": event["GITHUB_EVENT_NAME"],
            "ref": event["GITHUB_REF"],
            "repository": event["GITHUB_REPOSITORY"],
            "run_attempt": int(event["GITHUB_RUN_ATTEMPT"]),
            "run_id": event["GITHUB_RUN_ID"],
            "sha": event["GITHUB_SHA"],
            "token": self.token,
        }

    def _of_job(
        self, name: str, job: dict[str, Any], finished: Finished, contexts: dict[str, Any]
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """The jobs that a job of the workflow stands for, with the contexts of each."""
        needs = job.get("needs", [])
        needed = [needs] if isinstance(needs, str) else needs
        known = {each: self._needed(each, finished) for each in needed}
        contexts = {**contexts, "needs": Missing(known)}
        are_fine = all(each["result"] == "success" for each in known.values())
        condition = job.get("if", "success()").strip().removeprefix("${{").removesuffix("}}")
        functions = {
            "always": lambda: True,
            "cancelled": lambda: False,
            "failure": lambda: any(each["result"] == "failure" for each in known.values()),
            "success": lambda: are_fine,
        }
        asks = any(f"{each}(" in condition for each in _STATUS)
        if not (is_true(evaluate(condition, contexts, functions)) and (asks or are_fine)):
            finished.jobs[name] = Job(name, "skipped")
            return
        strategy = job.get("strategy", {"matrix": {}})
        require_known(strategy, {"matrix", "fail-fast"}, f"{name}: strategy")
        matrix = {
            key: fill_in(value, contexts, {}) if isinstance(value, str) else value
            for key, value in strategy["matrix"].items()
        }
        assert strategy.get("fail-fast") is False or not matrix
        for values in itertools.product(*matrix.values()):
            row = dict(zip(matrix, values, strict=True))
            shown = f"{name} ({', '.join(map(str, values))})" if row else name
            yield shown, {**contexts, "matrix": Missing(row)}

    def _needed(self, name: str, finished: Finished) -> dict[str, Any]:
        """A job as those that need it see it: of a matrix, all of its jobs at once."""
        jobs = [job for each, job in finished.jobs.items() if each.partition(" (")[0] == name]
        assert jobs, f"{name} is needed before it has run"
        results = {job.result for job in jobs}
        result = "failure" if "failure" in results else jobs[0].result
        outputs = {key: value for job in jobs for key, value in job.outputs.items()}
        declared = Missing(outputs) if result == "success" else outputs
        return {"result": result, "outputs": declared}

    def _run_job(
        self,
        name: str,
        job: dict[str, Any],
        contexts: dict[str, Any],
        event: Mapping[str, str],
        shell: str,
    ) -> Job:
        labels = job["runs-on"]
        labels = [
            fill_in(each, contexts, {})
            for each in ([labels] if isinstance(labels, str) else labels)
        ]
        fill_in(str(job.get("concurrency", {}).get("group", "")), contexts, {})
        assert isinstance(job["timeout-minutes"], int)
        if labels != _HOSTED and labels[0] != "self-hosted":
            raise UnknownError(f"runs-on: {labels}")
        if set(labels) & set(self.silent):
            return Job(name, "failure")  # as GitHub has it after a day
        machine = self.make_machine(event)
        inside = {
            **contexts,
            "runner": {"temp": str(machine.temp)},
        }
        steps = Steps(machine, inside, dict(self.variables), shell)
        steps.run(job["steps"])
        outputs = {key: str(steps.fill(value)) for key, value in job.get("outputs", {}).items()}
        return Job(name, "failure" if steps.has_failed else "success", steps, outputs)

    def make_machine(self, event: Mapping[str, str]) -> Machine:
        """A new machine for one job, with nothing of the tests' own variables."""
        folder = self.folder / f"job-{next(self._numbers)}"
        kept = ("HOME", "LANG", "LC_ALL", "TMPDIR", "CUDA_VISIBLE_DEVICES")
        variables = {
            **{name: os.environ[name] for name in kept if name in os.environ},
            **event,
            "GITHUB_WORKSPACE": str(folder / "workspace"),
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "PATH": f"{self._programs}:{os.environ['PATH']}",
            "PERFCI_CACHE": str(self.folder / "cache"),
            "PIP_NO_BUILD_ISOLATION": "0",  # what it takes to build is there
            "PIP_NO_INDEX": "1",
            "PIP_ROOT_USER_ACTION": "ignore",
            "RUNNER_TEMP": str(folder / "temp"),
        }
        artefacts = self.folder / "artefacts" / event["GITHUB_RUN_ID"]
        return Machine(folder, self.remote, variables, artefacts, self.make_python)


def _is_for(triggers: dict[str, Any], event: Mapping[str, str], payload: Any) -> bool:
    """Whether a workflow starts at an event."""
    name = event["GITHUB_EVENT_NAME"]
    if name not in triggers:
        return False
    filters = triggers[name] or {}
    if name in ("schedule", "workflow_dispatch"):
        return True
    require_known(filters, {"branches", "types", "workflows"}, f"on: {name}")
    branch = event["GITHUB_REF"].removeprefix("refs/heads/")
    started_by = payload.get("workflow_run", {}).get("name")
    return (
        branch in filters.get("branches", [branch])
        and payload.get("action") in filters.get("types", [payload.get("action")])
        and started_by in filters.get("workflows", [started_by])
    )
