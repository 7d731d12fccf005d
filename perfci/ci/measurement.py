"""Does on this machine what a plan asks for, and leaves a parcel of it, whatever happens."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from perfci import __version__
from perfci.ci import clone
from perfci.ci.act import Act
from perfci.ci.child import Ended, call, find_error
from perfci.ci.entries import is_plain_file
from perfci.ci.event import Event
from perfci.ci.judgement import Judgement
from perfci.ci.parcel import FILE, LARGEST_PARCEL_BYTES, Parcel, Step, is_file_name, write_parcel
from perfci.ci.plan import Plan, make_plan
from perfci.config import Config
from perfci.device import has_gpu_driver
from perfci.errors import ExitCode, PerfciError, UsageError
from perfci.history import commits
from perfci.history.codec import read_run_file, write_run_file
from perfci.history.errors import CommitError, HistoryError, RunFileError
from perfci.history.git import ask_git
from perfci.history.model import NOISE_TRIGGER, Run
from perfci.history.plain import PlainError, record
from perfci.history.strict import JsonError, read_json
from perfci.history.text import one_line
from perfci.reports.gate_json import VALUES_FILE

_RUN_FILE = ".json.gz"
_LARGEST_EXIT_CODE = 255
_UNPLANNED = Plan(act=Act.NOTHING, reason="nothing was planned", head=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """An event, its plan, and the runner to deal with it: with an empty name the one that is asked.

    ``root`` is the top of the repository, ``folder`` the project in it; ``out`` is where the parcel
    goes. ``device`` and ``kernels`` are as in other commands; ``store`` has the studies of noise
    that gates go by, and is only read.
    """

    event: Event
    runner: str
    root: Path
    folder: Path
    out: Path
    device: str | None = None
    kernels: Path | None = None
    store: str | None = None
    plan: Plan = _UNPLANNED


@dataclass(frozen=True, slots=True, kw_only=True)
class _Command:
    """A command of perfci and what its step is called.

    ``is_gate`` where it leaves the verdicts of one, ``takes_out`` where it writes files.
    """

    name: str
    arguments: tuple[str, ...]
    is_gate: bool = False
    takes_out: bool = True


def open_parcel(out: Path) -> None:
    """Make the folder of a parcel. Raises UsageError where it cannot be, or something is in it."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        is_empty = not any(out.iterdir())
        if is_empty:
            # A working tree is not dirty because what was measured is kept in it.
            (out / ".gitignore").write_text("*\n", encoding="ascii")
    except OSError as error:
        reason = (error.strerror or "").lower()
        raise UsageError(f"{out}: cannot be made ({reason}); give --out another") from None
    if not is_empty:
        raise UsageError(f"{out}: is not empty; what it holds would pass for this run's")


def measure_event(task: Task, config: Config, *, say: Callable[[str], None]) -> Parcel:
    """Plan a task, do it and leave a parcel of it; ``say`` hears what goes on.

    Whatever fails or gets in the way is in the parcel, an interruption too, which is raised again
    once it has been left. Raises UsageError of an event without a commit.
    """
    if task.event.head is None:
        raise UsageError("a branch or tag was deleted: there is no commit to measure")
    name = task.runner
    task = replace(task, runner=name or config.ci.runners[0])
    try:
        plan = make_plan(task.event, task.root, config)
        task = replace(task, plan=plan, runner=name or next(iter(plan.runners), task.runner))
        say(f"{task.plan.act}: {task.plan.reason}")
        problem = _why_not_here(task)
        if problem:
            return _leave(task, exit_code=int(ExitCode.USAGE), error=problem)
        return _measure(task, say)
    except (PerfciError, HistoryError) as error:
        return _leave(task, exit_code=int(error.exit_code), error=one_line(str(error)))
    except KeyboardInterrupt:
        _leave_if_none(task, ExitCode.INTERRUPTED, "interrupted")
        raise
    except Exception as error:
        _leave_if_none(task, ExitCode.UNCAUGHT, f"a fault of perfci's own: {error!r}")
        raise


def _measure(task: Task, say: Callable[[str], None]) -> Parcel:
    _fetch_history(task, say)
    steps: list[Step] = []
    gates: list[Judgement] = []
    interrupted = False
    for command in _COMMANDS[task.plan.act](task):
        say(f"perfci {' '.join(command.arguments)}")
        ended, step, found = _take(command, task)
        steps.append(step)
        gates += found
        interrupted = ended.is_interrupted
        if interrupted:
            break
    parcel = _leave(task, steps=steps, gates=gates)
    if interrupted:
        raise KeyboardInterrupt
    return parcel


def _why_not_here(task: Task) -> str:
    plan = task.plan
    if not plan.is_admitted:
        return f"not admitted: {plan.reason}"
    if plan.act is Act.NOTHING:
        return ""
    if task.runner not in plan.runners:
        return f"{task.runner} is none of the runners that are asked: {', '.join(plan.runners)}"
    if plan.act in _IN_TREE and commits.resolve(task.root, "HEAD") != plan.head:
        return f"{plan.act} measures what is checked out: check out {(plan.head or '')[:10]} first"
    return ""


def _fetch_history(task: Task, say: Callable[[str], None]) -> None:
    """Bring in what the place of a recorded commit on its branch is counted by."""
    if task.plan.act not in RECORDED:
        return
    try:
        clone.complete(task.root)
    except CommitError as error:
        say(f"the commits' places on their branch are not known: {error}")


def _take(command: _Command, task: Task) -> tuple[Ended, Step, list[Judgement]]:
    """Run a command, and read the verdicts that it leaves."""
    log = task.out / f"{command.name}.log"
    ended = call(
        [*command.arguments, *_options(command, task)],
        folder=task.folder,
        log=log,
        trigger=str(task.event.kind),
    )
    code, error = min(ended.code, _LARGEST_EXIT_CODE), find_error(log, ended)
    gates: list[Judgement] = []
    if command.is_gate:
        gates, problem = _read_gates(task.out / VALUES_FILE)
        if not gates and code in _VERDICTS:  # no verdict was read: whatever it says, it is none
            code, error = int(ExitCode.MISSING_CELLS), error or problem
    step = Step(
        name=command.name,
        exit_code=code,
        duration_s=ended.duration_s,
        error=error,
        log=log.name,
    )
    return ended, step, gates


def _options(command: _Command, task: Task) -> list[str]:
    """The options that every command, or every one of its kind, is given."""
    values = {
        "--device": task.device,
        "--kernels": task.kernels,
        "--store": task.store if command.is_gate else None,
        "--out": task.out if command.takes_out else None,
    }
    return [word for name, value in values.items() if value for word in (name, str(value))]


def _run(task: Task) -> list[_Command]:
    return [_run_at(task, "smoke")]


def _run_at(task: Task, tier: str) -> _Command:
    head = task.plan.head or ""
    arguments = ("run", "--commit", head, "--cases-from", "commit", "--tier", tier)
    return _Command(name="run", arguments=arguments)


def _gate(task: Task) -> list[_Command]:
    base, head = task.plan.base or "", task.plan.head or ""
    arguments = ("gate", "--base", base, "--head", head)
    return [_Command(name="gate", arguments=arguments, is_gate=True)]


def _nightly(task: Task) -> list[_Command]:
    """All cases, the noise, and on a GPU what compute-sanitizer says."""
    found = [_run_at(task, "full"), _Command(name="noise", arguments=("noise",))]
    if has_gpu_driver() and task.device != "cpu":
        sanitize = _Command(name="sanitize", arguments=("check", "--sanitize"), takes_out=False)
        found.append(sanitize)
    return found


def _backfill(task: Task) -> list[_Command]:
    span = f"{task.plan.base}..{task.plan.head}"
    return [_Command(name="run", arguments=("run", "--range", span))]


def _bisect(task: Task) -> list[_Command]:
    cell = [word for name, value in task.plan.options for word in (f"--{name}", value)]
    arguments = ("bisect", task.plan.base or "", task.plan.head or "", *cell)
    return [_Command(name="bisect", arguments=arguments)]


def _selftest(task: Task) -> list[_Command]:  # noqa: ARG001
    return [_Command(name="selftest", arguments=("selftest",), takes_out=False)]


_COMMANDS: Mapping[Act, Callable[[Task], Sequence[_Command]]] = {
    Act.RUN: _run,
    Act.GATE: _gate,
    Act.NIGHTLY: _nightly,
    Act.BACKFILL: _backfill,
    Act.BISECT: _bisect,
    Act.SELFTEST: _selftest,
    Act.NOTHING: lambda task: [],  # noqa: ARG005
}
RECORDED = (Act.RUN, Act.NIGHTLY, Act.BACKFILL)
"""What is of a branch's history, and not of a head that may never be merged."""

_IN_TREE = (Act.NIGHTLY, Act.BACKFILL, Act.SELFTEST)
"""What measures, or takes its cases from, the working tree."""


def _read_gates(path: Path) -> tuple[list[Judgement], str]:
    """The gates in a file, else the line that says what is wrong with them."""
    if not is_plain_file(path):
        return [], "the gate gave no verdict"
    try:
        with path.open("rb") as file:
            text = file.read(LARGEST_PARCEL_BYTES)
        gates = [record(Judgement, each) for each in read_json(text)["gates"]]
    except (JsonError, PlainError, KeyError, TypeError) as error:
        return [], f"the gate's verdicts cannot be read: {one_line(str(error))}"
    return gates, "" if gates else "the gate gave no verdict"


def _leave(
    task: Task,
    *,
    steps: Sequence[Step] = (),
    gates: Sequence[Judgement] = (),
    exit_code: int = 0,
    error: str = "",
) -> Parcel:
    """Write the parcel of what there is."""
    runs, unreadable = _collect(task)
    if unreadable and not error:
        exit_code, error = max(exit_code, int(ExitCode.STORE)), unreadable
    parcel = Parcel(
        runner=task.runner,
        act=task.plan.act,
        base=task.plan.base,
        head=task.plan.head or task.event.head or "",
        run_id=task.event.run_id,
        attempt=task.event.attempt,
        exit_code=_worst([exit_code, *(each.exit_code for each in steps)]),
        error=error or next((each.error for each in steps if each.error), ""),
        perfci_version=__version__,
        steps=tuple(steps),
        gates=tuple(gates),
        runs=runs,
    )
    write_parcel(task.out, parcel)
    return parcel


def _leave_if_none(task: Task, code: ExitCode, error: str) -> None:
    """Leave a parcel of what got in the way, but for one that tells more."""
    if not (task.out / FILE).exists():
        _leave(task, exit_code=int(code), error=one_line(error))


def _worst(codes: Sequence[int]) -> int:
    """What several steps amount to: a failure before a regression, that before what is less."""
    failures = [each for each in codes if each not in _VERDICTS]
    if failures:
        return max(failures)
    regression = int(ExitCode.REGRESSION_OR_INCORRECT)
    return regression if regression in codes else max(codes)


_VERDICTS = (
    ExitCode.FINE,
    ExitCode.REGRESSION_OR_INCORRECT,
    ExitCode.INCONCLUSIVE,
    ExitCode.MISSING_CELLS,
)


def _collect(task: Task) -> tuple[tuple[str, ...], str]:
    """The run files that were written, each with what the event knows of it; and what is wrong.

    The code that was measured may have left there what it likes.
    """
    names, problem = [], ""
    for path in sorted(task.out.glob(f"*{_RUN_FILE}")):
        if not (is_file_name(path.name) and is_plain_file(path)):
            problem = f"{one_line(path.name)}: no run file that perfci has written"
            continue
        try:
            write_run_file(path, _completed(read_run_file(path), task))
            names.append(path.name)
        except RunFileError as error:
            problem = str(error)
    return tuple(names), problem


def _completed(run: Run, task: Task) -> Run:
    """The run with the pipeline's attempt, and the branch that a detached checkout has not."""
    commit, event = run.commit, task.event
    if commit.branch is None and event.branch and commit.dirty is None:
        listed = ask_git(task.root, "rev-list", "--first-parent", event.head or "").output
        if commit.sha in listed.split():
            commit = replace(commit, branch=one_line(event.branch))
    # Of a study the attempt tells its sides apart.
    attempt = run.attempt if run.trigger == NOISE_TRIGGER else event.attempt
    return replace(run, commit=commit, attempt=attempt)
