"""Rows of the self-test that are no kernel by themselves: each is played for real, and judged."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from perfci.config import Config, inherited_environment
from perfci.decision.compare import Side, compare
from perfci.device import cpu, environment
from perfci.history.model import Commit, Measurement, Run, Status, Verdict
from perfci.history.summary import cell, run_summary, summarise
from perfci.kernel import Kernel, read_kernels
from perfci.plan import Target
from perfci.progress import Observer
from perfci.run import measure
from perfci.selection import Cell, Selection, select
from perfci.selftest import KERNELS
from perfci.selftest.trial import Fate, Trial
from perfci.workers.passes import PassServer

_SLACK = 0.10
"""How far two latencies may lie apart that should be one."""
_HOST_WASTE_NS = 30_000.0
_IDLE_S = 10.0
_POLL_S = 0.01
_BUILD_TIMEOUT_S = 60.0
_MODES = "fsfsfssfssfs"
"""Fast or slow, by process: six of one run, then six of another with one slow process more."""
_BIMODAL = """\
from pathlib import Path

import torch

counter = Path({counter!r})
count = int(counter.read_text())
counter.write_text(str(count + 1))
repeats = 3 if {modes!r}[count % {length}] == "s" else 1


def run(x, w):
    for _ in range(repeats):
        out = torch.tanh(x @ w)
    return out
"""
_ONE_CASE = """\
[[bench]]
name = "timed"
tier = "smoke"
rows = 256
depth = 96
columns = 64
"""
_VERSION = (
    '#include "product.h"\n\nextern "C" int perfci_run(const perfci_call *call) {{ {body} }}\n'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Where scenarios are played."""

    config: Config
    target: Target
    server: PassServer
    observer: Observer

    def measure(
        self, kernels: Sequence[Kernel], selection: Selection, *, passes: int = 1
    ) -> tuple[Measurement, ...]:
        """The rows of a run of the kernels' cells that are selected."""
        return self.rows(select(kernels, selection, self.target.device.kind), passes=passes)

    def rows(
        self, cells: Sequence[Cell], *, passes: int = 1, config: Config | None = None
    ) -> tuple[Measurement, ...]:
        """The rows of a run of cells; KeyboardInterrupt where it was interrupted."""
        measured = measure(
            cells,
            config or self.config,
            target=self.target,
            server=self.server,
            passes=passes,
            observer=self.observer,
        )
        if measured.interrupted:
            raise KeyboardInterrupt
        return measured.measurements


def play(stage: Stage) -> Iterator[Trial]:
    """Play all scenarios; those that need a GPU are skipped on a CPU."""
    on_gpu = stage.target.device.kind == "cuda"
    for number, title, scenario, needs_gpu in _SCENARIOS:
        if needs_gpu and not on_gpu:
            yield Trial(number=number, title=title, fate=Fate.SKIPPED, reason="needs a GPU")
            continue
        with tempfile.TemporaryDirectory(prefix="perfci-") as folder:
            wrong, seen = scenario(stage, Path(folder))
        fate = Fate.NOT_CAUGHT if wrong else Fate.CAUGHT
        yield Trial(number=number, title=title, fate=fate, reason=wrong or seen)


def _pins_input(stage: Stage, _: Path) -> tuple[str, str]:
    """The flush must drive out what a kernel asked the L2 to keep."""
    rows = stage.measure(_with_planted("negation"), _only("plain", "pins_input"))
    plain, pinned = _latency(rows, "plain", "cold"), _latency(rows, "pins_input", "cold")
    if pinned is None or plain is None:
        return _failure(rows), ""
    told = f"cold takes {pinned / plain:.2f} times as long as without"
    return (told, "") if pinned < (1.0 - _SLACK) * plain else ("", told)


def _slow_host(stage: Stage, _: Path) -> tuple[str, str]:
    """What only the host pays must show under ``host`` and nowhere else."""
    rows = stage.measure(_with_planted("negation"), _only("eager", "slow_host"))
    told = []
    for timer in ("cold", "hot", "host"):
        fast, slow = _latency(rows, "eager", timer), _latency(rows, "slow_host", timer)
        if fast is None or slow is None:
            return _failure(rows), ""
        told.append(f"{timer} {(slow - fast) / 1000:+.1f} µs")
        is_moved = slow - fast > _HOST_WASTE_NS if timer == "host" else slow > (1 + _SLACK) * fast
        if is_moved != (timer == "host"):
            return ", ".join(told), ""
    return "", ", ".join(told)


def _idle_clock(stage: Stage, _: Path) -> tuple[str, str]:
    """A GPU that has been idle must be warm before it is read."""
    kernels = read_kernels(KERNELS)
    chosen = Selection(kernels=("product_tanh",), variants=("plain_cuda",), cases=("timed",))
    stage.measure(kernels, chosen)
    time.sleep(_IDLE_S)
    idle = stage.measure(kernels, chosen)
    steady = stage.measure(kernels, chosen)
    first, second = _latency(idle, "plain_cuda", "cold"), _latency(steady, "plain_cuda", "cold")
    if first is None or second is None:
        return _failure([*idle, *steady]), ""
    told = f"cold after {_IDLE_S:g} s of idleness: {first / second:.3f} of what it is at once after"
    return (told, "") if abs(first / second - 1.0) > _SLACK else ("", told)


def _other_architecture(stage: Stage, _: Path) -> tuple[str, str]:
    """A binary that has no code for the device must not pass for a kernel that ran."""
    other = replace(stage, config=replace(stage.config, architectures=("sm_80",)))
    rows = other.measure(read_kernels(KERNELS), _only("plain_cuda", kernel="product_tanh"))
    told = rows[0].message
    caught = rows[0].status is Status.RUNTIME_ERROR and "compute capability" in told
    return ("", told) if caught else (f"{rows[0].status}: {told}", "")


def _bimodal(stage: Stage, folder: Path) -> tuple[str, str]:
    """A kernel that is fast in some processes and slow in others has not become slower."""
    counter = folder / "counter"
    source = _BIMODAL.format(counter=str(counter), modes=_MODES, length=len(_MODES))
    kernels = _write_kernel(folder, {"bimodal.py": source})
    told = ""
    for _ in range(2):  # an alarm is a suspicion until it is confirmed
        counter.write_text("0", encoding="utf-8")
        sides = []
        for _ in range(2):
            rows = stage.measure(kernels, Selection(), passes=len(_MODES) // 2)
            if any(row.status.is_failure for row in rows):
                return _failure(rows), ""
            sides.append(_side(stage, rows))
        verdicts = [each.verdict for each in compare(*sides)]
        told = f"an A/A comparison of {len(_MODES) // 2} passes says {verdicts[0]}"
        if not {Verdict.REGRESSION, Verdict.IMPROVEMENT} & set(verdicts):
            return "", told
    return f"{told}, twice", ""


def _killed_build(_: Stage, folder: Path) -> tuple[str, str]:
    """A build that was killed must not stop the next one."""
    _write_kernel(folder, {"plain.cpp": _VERSION.format(body="return multiply(call);")})
    cache = folder / "cache"
    # For the CPU, since this process has the lock of a GPU.
    command = [sys.executable, "-m", "perfci", "build", "--device", "cpu"]
    command += ["--kernels", str(folder / "kernels")]
    variables = inherited_environment(
        PERFCI_CACHE=str(cache), PYTHONPATH=os.pathsep.join(each for each in sys.path if each)
    )
    killed = subprocess.Popen(
        command,
        cwd=folder,
        env=variables,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    while killed.poll() is None and not list(cache.glob("build/tmp-*/lock")):
        time.sleep(_POLL_S)
    if killed.poll() is None:
        os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    left = len(list(cache.glob("build/tmp-*/lock")))
    try:
        again = subprocess.run(
            command,
            cwd=folder,
            env=variables,
            capture_output=True,
            text=True,
            timeout=_BUILD_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "the next build does not end", ""
    if not left:
        return "the build ended before it could be killed", ""
    told = f"the next build ends with {again.returncode}"
    return ("", told) if again.returncode == 0 else (f"{told}: {again.stderr.strip()}", "")


def _stale_object(stage: Stage, folder: Path) -> tuple[str, str]:
    """After a change back and forth it is the source's own object that is loaded."""
    on_cpu = replace(stage, target=Target(name="cpu", device=cpu()))
    told = []
    for body, wanted in (
        ("return multiply(call);", Status.PASSED),
        ("return 0;", Status.WRONG_VALUES),
        ("return multiply(call);", Status.PASSED),
    ):
        kernels = _write_kernel(folder, {"changing.cpp": _VERSION.format(body=body)})
        (row,) = on_cpu.measure(kernels, Selection())
        told.append(row.status.value.replace("_", " "))
        if row.status is not wanted:
            return f"{', then '.join(told)}: {row.message}", ""
    return "", ", then ".join(told)


def _write_kernel(folder: Path, sources: dict[str, str]) -> list[Kernel]:
    """The product in a folder of its own, with one case and other variants."""
    kernel = folder / "kernels" / "product_tanh"
    kernel.mkdir(parents=True, exist_ok=True)
    for name in ("reference.py", "product.h"):
        shutil.copyfile(KERNELS / "product_tanh" / name, kernel / name)
    (kernel / "cases.toml").write_text(_ONE_CASE, encoding="utf-8")
    for name, text in sources.items():
        (kernel / name).write_text(text, encoding="utf-8")
    return read_kernels(folder / "kernels")


def _with_planted(name: str) -> list[Kernel]:
    """A kernel whose planted variants stand beside the honest ones."""
    return [
        replace(each, variants=(*each.variants, *each.controls), controls=())
        for each in read_kernels(KERNELS)
        if each.name == name
    ]


def _only(*variants: str, kernel: str = "negation") -> Selection:
    return Selection(kernels=(kernel,), variants=variants, cases=("timed",))


def _latency(rows: Sequence[Measurement], variant: str, timer: str) -> float | None:
    """The latency of a variant under a timer, in nanoseconds; None where it has none."""
    for row in rows:
        if row.variant == variant and row.passes and row.contract and row.contract.timer == timer:
            return summarise(row.passes).typical_ns
    return None


def _failure(rows: Sequence[Measurement]) -> str:
    failed = next((row for row in rows if row.status.is_failure), rows[0])
    return f"{failed.variant}: {failed.status}: {failed.message}"


def _side(stage: Stage, rows: Sequence[Measurement]) -> Side:
    now = datetime.now(UTC)
    run = Run(
        run_id=f"selftest-{now:%H%M%S%f}",
        commit=Commit(sha="0" * 40, committed_at=now),
        environment=environment(stage.target.device, stage.config),
        started_at=now,
        duration_s=0.0,
        measurements=tuple(rows),
    )
    return Side([run_summary(run)], [cell(run.run_id, row) for row in rows])


_Scenario = Callable[[Stage, Path], tuple[str, str]]
"""Returns what went wrong, and else what was seen."""

_SCENARIOS: tuple[tuple[int, str, _Scenario, bool], ...] = (
    (10, "pins its input in the L2", _pins_input, True),
    (17, "no code for this architecture", _other_architecture, True),
    (23, "slow on the host alone", _slow_host, True),
    (24, "bimodal between processes", _bimodal, False),
    (25, "idle clock at the start", _idle_clock, True),
    (26, "a killed build", _killed_build, False),
    (27, "a stale shared object", _stale_object, False),
)
