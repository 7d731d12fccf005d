"""The steps of a job, carried out as GitHub's runner does: scripts, and the actions it knows."""

import fnmatch
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import scratch
from expressions import Missing, evaluate, fill_in, find_expressions, is_true, show

_SHELLS = {
    "": ["bash", "-e"],
    "bash": ["bash", "--noprofile", "--norc", "-eo", "pipefail"],
}
"""What GitHub runs a script with, where no shell is named and where bash is."""

_STEP_KEYS = {"name", "id", "if", "uses", "with", "run", "env", "shell", "continue-on-error"}


class UnknownError(Exception):
    """Something in a workflow that this driver does not know: it would not be what GitHub does."""


@dataclass
class Machine:
    """What a job runs on: its folders, its variables, and what is on its PATH."""

    folder: Path
    remote: Path
    variables: dict[str, str]
    artefacts: Path
    make_python: Callable[[Path], None]
    paths: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for each in (self.workspace, self.temp):
            each.mkdir(parents=True)

    @property
    def workspace(self) -> Path:
        return self.folder / "workspace"

    @property
    def temp(self) -> Path:
        return self.folder / "temp"


@dataclass
class Done:
    """A step: skipped, success or failure, and what it printed."""

    name: str
    outcome: str
    printed: str = ""


@dataclass
class Steps:
    """The steps of one job, in order; ``contexts`` are those of the job."""

    machine: Machine
    contexts: dict[str, Any]
    variables: dict[str, str]
    shell: str = ""
    done: list[Done] = field(default_factory=list)
    summary: str = ""

    def __post_init__(self) -> None:
        self.contexts = {**self.contexts, "steps": Missing()}
        self._local: dict[str, Path] = {}

    @property
    def has_failed(self) -> bool:
        return any(each.outcome == "failure" for each in self.done)

    def run(self, steps: list[dict[str, Any]]) -> None:
        """Carry out all of them; after one has failed those alone that ask for it."""
        for each in steps:
            require_known(each, _STEP_KEYS, "a step")
            if "id" in each:
                self.contexts["steps"][each["id"]] = {"outputs": {}, "outcome": "skipped"}
        for each in steps:
            self._take(each)

    def _take(self, step: dict[str, Any]) -> None:
        name = step.get("name") or step.get("uses") or step["run"]
        if not self._is_wanted(step.get("if", "success()")):
            self.done.append(Done(name, "skipped"))
            return
        outputs: dict[str, str] = {}
        ended = self._use(step) if "uses" in step else self._script(step, outputs)
        outcome = "success" if ended.returncode == 0 else "failure"
        if "id" in step:
            self.contexts["steps"][step["id"]] = {"outputs": outputs, "outcome": outcome}
        if outcome == "failure" and self.fill(step.get("continue-on-error", False)):
            outcome = "forgiven"
        self.done.append(Done(name, outcome, ended.stdout))

    def _is_wanted(self, condition: Any) -> bool:
        text = str(condition).strip()
        text = text.removeprefix("${{").removesuffix("}}") if text.startswith("${{") else text
        value = is_true(evaluate(text, self.contexts, self._functions))
        asks = any(f"{each}(" in text for each in self._functions)
        return value and (asks or not self.has_failed)

    @property
    def _functions(self) -> dict[str, Callable[[], bool]]:
        return {
            "always": lambda: True,
            "cancelled": lambda: False,
            "failure": lambda: self.has_failed,
            "success": lambda: not self.has_failed,
        }

    def fill(self, value: Any) -> Any:
        """A value with its expressions filled in."""
        return fill_in(value, self.contexts, {}) if isinstance(value, str) else value

    def _environment(self, step: dict[str, Any]) -> dict[str, str]:
        own = {name: show(self.fill(value)) for name, value in step.get("env", {}).items()}
        path = os.pathsep.join([*reversed(self.machine.paths), self.machine.variables["PATH"]])
        return {**self.machine.variables, "PATH": path, **self.variables, **own}

    def _script(
        self, step: dict[str, Any], outputs: dict[str, str]
    ) -> subprocess.CompletedProcess[str]:
        """Run a script, in which nothing is pasted, and read what it says in GitHub's files."""
        if list(find_expressions(step["run"])):
            raise UnknownError(f"an expression is pasted into a script: {step['run']}")
        shell = step.get("shell", self.shell)
        if shell not in _SHELLS:
            raise UnknownError(f"shell: {shell}")
        names = ("GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STEP_SUMMARY")
        files = {name: self.machine.folder / name.lower() for name in names}
        for each in files.values():
            each.write_text("")
        script = self.machine.folder / "script.sh"
        script.write_text(step["run"])
        said = {name: str(path) for name, path in files.items()}
        ended = subprocess.run(
            [*_SHELLS[shell], str(script)],
            cwd=self.machine.workspace,
            env={**self._environment(step), **said},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        outputs.update(read_values(files["GITHUB_OUTPUT"].read_text()))
        self.variables.update(read_values(files["GITHUB_ENV"].read_text()))
        self.machine.paths += files["GITHUB_PATH"].read_text().split()
        self.summary += files["GITHUB_STEP_SUMMARY"].read_text()
        return ended

    def _use(self, step: dict[str, Any]) -> subprocess.CompletedProcess[str]:
        name = step["uses"].partition("@")[0]
        inputs = {key: self.fill(value) for key, value in step.get("with", {}).items()}
        if name not in _ACTIONS:
            raise UnknownError(f"uses: {step['uses']}")
        try:
            _ACTIONS[name](self, inputs)
        except (OSError, subprocess.CalledProcessError) as error:
            said = f"{error} {getattr(error, 'stderr', '')}"
            return subprocess.CompletedProcess(name, 1, said)
        return subprocess.CompletedProcess(name, 0, "")


def run_action(
    action: dict[str, Any], folder: Path, job: Steps, inputs: Mapping[str, Any]
) -> tuple[subprocess.CompletedProcess[str], dict[str, str]]:
    """A composite action that lies in a folder: how it ended, and its outputs."""
    require_known(
        action, {"name", "description", "author", "branding", "inputs", "outputs", "runs"}, "action"
    )
    require_known(action["runs"], {"using", "steps"}, "runs")
    assert action["runs"]["using"] == "composite"
    unknown = set(inputs) - set(action["inputs"])
    if unknown:
        raise UnknownError(f"the action has no inputs {unknown}")
    lacking = [
        name
        for name, each in action["inputs"].items()
        if each.get("required") and not inputs.get(name)
    ]
    assert not lacking, f"required: {lacking}"
    given = {
        name: show(inputs.get(name, fill_in(str(each.get("default", "")), job.contexts, {})))
        for name, each in action["inputs"].items()
    }
    contexts = {**job.contexts, "inputs": Missing(given)}
    contexts["github"] = {**contexts["github"], "action_path": str(folder)}
    variables = {**job.variables, "GITHUB_ACTION_PATH": str(folder)}
    inner = Steps(job.machine, contexts, variables)
    inner.run(action["runs"]["steps"])
    job.summary += inner.summary
    outputs = {
        name: show(inner.fill(each["value"])) for name, each in action.get("outputs", {}).items()
    }
    printed = "".join(f"--- {each.name}: {each.outcome}\n{each.printed}" for each in inner.done)
    return subprocess.CompletedProcess("action", int(inner.has_failed), printed), outputs


def require_known(part: Mapping[Any, Any], known: set[str], where: str) -> None:
    """Raise UnknownError of a key that this driver does not know."""
    if unknown := {str(each) for each in part if each is not True} - known:
        raise UnknownError(f"{where}: {', '.join(sorted(unknown))}")


def read_values(text: str) -> dict[str, str]:
    """What a script has written into GITHUB_OUTPUT or GITHUB_ENV."""
    found, lines = {}, iter(text.splitlines())
    for line in lines:
        name, sign, mark = line.partition("<<")
        if sign and "=" not in name:
            block = []
            for each in lines:
                if each == mark:
                    break
                block.append(each)
            else:
                raise UnknownError(f"{name} does not end")
            found[name] = "\n".join(block)
        else:
            name, sign, value = line.partition("=")
            if not sign:
                raise UnknownError(f"no value: {line}")
            found[name] = value
    return found


def _check_out(job: Steps, inputs: Mapping[str, Any]) -> None:
    """What actions/checkout leaves: a clone of that depth, at the event's commit or another."""
    require_known(inputs, {"ref", "fetch-depth", "persist-credentials"}, "checkout")
    assert inputs["persist-credentials"] is False
    github, folder, depth = job.contexts["github"], job.machine.workspace, inputs["fetch-depth"]
    ref, sha = inputs.get("ref") or github["ref"], inputs.get("ref") or github["sha"]
    branch = ref.removeprefix("refs/heads/") if ref.startswith("refs/heads/") else ""
    scratch.git(folder, "init", "-q")
    scratch.git(folder, "remote", "add", "origin", f"file://{job.machine.remote}")
    place = f"refs/remotes/origin/{branch}" if branch else "refs/remotes/fetched"
    if depth == 0:
        all_of_it = ("+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*")
        scratch.git(folder, "fetch", "-q", "--no-tags", "origin", *all_of_it)
        scratch.git(folder, "fetch", "-q", "--no-tags", "origin", f"+{sha}:{place}")
    else:
        scratch.git(
            folder, "fetch", "-q", "--no-tags", f"--depth={depth}", "origin", f"+{sha}:{place}"
        )
    if branch:
        scratch.git(folder, "checkout", "-q", "--force", "-B", branch, place)
    else:
        scratch.git(folder, "checkout", "-q", "--force", "--detach", place)


def _set_up_python(job: Steps, inputs: Mapping[str, Any]) -> None:
    """A Python of the job's own."""
    require_known(inputs, {"python-version"}, "setup-python")
    assert isinstance(inputs["python-version"], str)
    job.machine.make_python(job.machine.folder / "python")
    job.machine.paths.append(str(job.machine.folder / "python/bin"))


def _upload(job: Steps, inputs: Mapping[str, Any]) -> None:
    """Keep what a folder holds, but for hidden files, under a name that is new."""
    require_known(inputs, {"name", "path", "if-no-files-found"}, "upload-artifact")
    source, target = Path(inputs["path"]), job.machine.artefacts / inputs["name"]
    if target.exists():
        raise FileExistsError(f"there is an artefact {inputs['name']} already")
    if not source.is_dir() or not any(source.iterdir()):
        assert inputs["if-no-files-found"] == "warn"
        return
    shutil.copytree(source, target, ignore=shutil.ignore_patterns(".*"))


def _download(job: Steps, inputs: Mapping[str, Any]) -> None:
    """Bring what fits a pattern, each into a folder of its name; one alone into the path."""
    require_known(inputs, {"pattern", "path", "run-id", "github-token"}, "download-artifact")
    source, target = job.machine.artefacts, Path(inputs["path"])
    if "run-id" in inputs:
        assert inputs["github-token"]
        source = source.parent / str(inputs["run-id"])
    names = [] if not source.is_dir() else sorted(each.name for each in source.iterdir())
    found = fnmatch.filter(names, inputs["pattern"])
    for each in found:
        where = target if len(found) == 1 else target / each
        shutil.copytree(source / each, where, dirs_exist_ok=True)


_ACTIONS: Mapping[str, Callable[[Steps, Mapping[str, Any]], None]] = {
    "actions/checkout": lambda job, inputs: _check_out(job, {"fetch-depth": 1, **inputs}),
    "actions/download-artifact": _download,
    "actions/setup-python": _set_up_python,
    "actions/upload-artifact": _upload,
}
