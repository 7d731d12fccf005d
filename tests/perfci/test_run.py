"""Rows of a run: what is in them, and that one that cannot be recorded does not cost the run."""

import json
import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

import nvml_double
import pytest
import scratch
from records import launch

from perfci.anchors import anchor_cells
from perfci.cli.record import say_unwatched
from perfci.config import load_config
from perfci.decision.precision import Precision
from perfci.device import cpu
from perfci.history.model import Device, Measurement, Metric, Status, Stop, is_anchor
from perfci.history.plain import plain
from perfci.kernel import discover
from perfci.outcome import Outcome, Timing
from perfci.plan import Target, Task
from perfci.progress import LineObserver
from perfci.run import Measured, measure
from perfci.selection import Selection, select
from perfci.timers import TIMERS

_LAUNCH = launch(
    function="axpb<float>",
    registers=12,
    shared_bytes=3072,
)
_COPY = replace(_LAUNCH, function="copy", grid=(1, 1, 1))
_FORGES = """\
import json
import os
import stat


CLAIMS = {}


def run(x, a, b):
    said = {"status": "passed", "message": "", "timings": [], "invalid": [], "metrics": []}
    line = json.dumps(["done", 0, {**said, "launches": [], "identity": [], **CLAIMS}]) + "\\n"
    for fd in range(3, 100):
        try:
            if stat.S_ISFIFO(os.fstat(fd).st_mode):
                os.write(fd, line.encode())
        except OSError:
            pass
    os._exit(0)
"""


def _forged(root: Path, **claims: Any) -> tuple[int, Any]:
    """The exit code and the only row of a run whose kernel speaks in its worker's place."""
    source = _FORGES.replace("CLAIMS = {}", f"CLAIMS = json.loads({json.dumps(claims)!r})")
    scratch.write_kernel(scratch.quick(root), forges__py=source)
    ended = scratch.call(root, "run", "--commit", "abcdef1", "--case", "one", "--json")
    (row,) = json.loads(ended.stdout)["measurements"]
    return ended.returncode, row


def test_what_no_store_takes_costs_its_own_row(tmp_path: Path) -> None:
    code, row = _forged(tmp_path / "root", metrics=[["two words", 1.0, "", "lower"]])
    assert (code, row["status"], row["metrics"]) == (1, "runtime_error", [])
    assert row["message"].startswith("cannot be recorded: metrics[0].name: 'two words' is no name")


def test_what_is_told_of_launches_on_a_cpu_is_not_believed(tmp_path: Path) -> None:
    code, row = _forged(tmp_path / "root", launches=[plain(_LAUNCH)])
    assert (code, row["status"], row["launches"]) == (1, "runtime_error", [])
    assert row["message"] == "the worker's pipe was written to: other figures"


class _Server:
    """Says of every task that it passed, and of its launches where it is asked for them."""

    def __init__(self, after_a_pass: Callable[[], object] = lambda: None) -> None:
        self.asked: list[tuple[str, bool]] = []
        self._after_a_pass = after_a_pass

    def run(self, tasks: Sequence[Task], **_: object) -> Iterator[tuple[int, tuple[Outcome]]]:
        for index, task in enumerate(tasks):
            self.asked.append((task.case.name, task.footprint))
            timings = tuple(
                Timing(
                    contract=TIMERS[name].contract,
                    samples_ns=(1000.0 if is_anchor(task.kernel.name) else 5.0,),
                    loops=1,
                    stop=Stop.CONVERGED,
                    span_s=(monotonic(), monotonic()),
                )
                for name in task.timers
            )
            told = (_LAUNCH, _COPY) if task.footprint and task.timers else ()
            yield index, (Outcome(status=Status.PASSED, timings=timings, launches=told),)
        if tasks:
            self._after_a_pass()


def _measured(root: Path, device: Device, server: Any, **options: Any) -> Sequence[Measurement]:
    return _run(root, device, server, **options).measurements


def _run(
    root: Path, device: Device, server: Any, *, anchors: bool = False, **options: Any
) -> Measured:
    scratch.write_kernel(scratch.quick(root), eager__py=scratch.EAGER)
    config = load_config(root, environment={}, cache=str(root.parent / "cache"))
    cells = select(discover(root / "kernels"), Selection(cases=("large", "one")), device.kind)
    cells += anchor_cells(device.kind) if anchors else []
    return measure(
        cells,
        config,
        target=Target(name="cuda:0", device=device),
        server=server,
        observer=LineObserver(),
        **{"passes": 2, **options},
    )


_NONE = Metric(name="none", value=0.0, unit="")
_GPU = Device(kind="cuda", model="a GPU", compute_capability="9.0")


def test_the_first_pass_on_a_gpu_says_what_a_call_launches(tmp_path: Path) -> None:
    server = _Server()
    rows = _measured(tmp_path / "root", _GPU, server)
    assert {row.contract.timer for row in rows if row.contract is not None} == {
        "cold",
        "hot",
        "host",
    }
    for row in rows:
        assert row.launches == ((_LAUNCH, _COPY) if row.contract else ())
    assert sorted(server.asked) == [("large", False), ("large", True), ("one", True)]


@pytest.mark.parametrize("timed", [True, False])
def test_nobody_asks_for_launches_on_a_cpu(tmp_path: Path, timed: bool) -> None:
    server = _Server()
    rows = _measured(tmp_path / "root", cpu(), server, timed=timed)
    assert [row.launches for row in rows] == [()] * len(rows)
    assert {asked for _, asked in server.asked} == {False}


def test_each_pass_keeps_the_clocks_that_were_read_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    double = nvml_double.install(monkeypatch, "GPU-1", sm_mhz=1980, throttle_reasons=4)
    rows = _measured(tmp_path / "root", replace(_GPU, uuid="GPU-1"), _Server())
    passes = [each for row in rows for each in row.passes]
    assert len(passes) == 6
    for each in passes:
        assert each.clocks[0].sm_mhz == each.sm_mhz == 1980.0
        assert each.clocks[0].throttle_reasons == ("software power cap",)
        assert (each.other_processes, each.quarantine) == (None, "")
    assert double.set_calls == []
    assert {(row.metric("sm_mhz") or _NONE).value for row in rows if row.contract} == {1980.0}


def test_a_gpu_of_which_nothing_can_be_read_is_measured_and_why_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    nvml_double.install(monkeypatch, "GPU-1", refuses=nvml_double.NVMLError_NoPermission())
    measured = _run(tmp_path / "root", replace(_GPU, uuid="GPU-1"), _Server())
    passes = [each for row in measured.measurements for each in row.passes]
    assert {(each.clocks, each.sm_mhz, each.other_processes) for each in passes} == {
        ((), None, None)
    }
    capsys.readouterr()
    say_unwatched(measured.unwatched)
    say_unwatched(_run(tmp_path / "root", cpu(), _Server()).unwatched)
    said = [line for line in capsys.readouterr().err.splitlines() if "pass" not in line]
    refusal = "the driver lets this user ask nothing (no permission)"
    assert said == [f"the GPU's state was not read: {refusal}"]


def test_a_gpu_that_another_process_holds_from_the_second_pass_on_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    double = nvml_double.install(monkeypatch, "GPU-1", pids=[os.getpid()])
    server = _Server(after_a_pass=lambda: double.pids.append(1 << 22))
    rows = _measured(tmp_path / "root", replace(_GPU, uuid="GPU-1"), server, passes=3)
    for row in (each for each in rows if each.contract):
        assert [bool(each.quarantine) for each in row.passes] == [False, True, True]
        assert row.message == "2 of 3 passes in quarantine: another process was on the GPU"
        assert (row.metric("quarantined_passes") or _NONE).value == 2


def test_passes_are_added_for_those_that_are_spoilt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    double = nvml_double.install(monkeypatch, "GPU-1", pids=[os.getpid(), 1 << 22])
    server = _Server(after_a_pass=lambda: double.pids.__delitem__(slice(1, None)))
    precision = Precision(target=0.005, budget_s=math.inf)
    gpu = replace(_GPU, uuid="GPU-1")
    rows = _measured(tmp_path / "root", gpu, server, passes=precision)
    for row in (each for each in rows if each.contract):
        assert row.passes[0].quarantine
        assert sum(not each.quarantine for each in row.passes) >= 3
        assert row.stop is Stop.CONVERGED


def test_a_gpu_that_another_process_holds_all_the_time_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvml_double.install(monkeypatch, "GPU-1", pids=[os.getpid(), 1 << 22, (1 << 22) + 1])
    rows = _measured(tmp_path / "root", replace(_GPU, uuid="GPU-1"), _Server())
    for row in (each for each in rows if each.contract):
        assert row.status is Status.PASSED
        assert row.message == "measured while 2 other processes were on the GPU: not compared"
        assert (row.metric("other_processes") or _NONE).value == 2


@pytest.mark.parametrize("sm_mhz", [None, 0, -5, 10**9, math.nan, math.inf, "1980"])
def test_a_clock_that_cannot_be_spoils_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sm_mhz: Any
) -> None:
    nvml_double.install(monkeypatch, "GPU-1", sm_mhz=sm_mhz)
    rows = _measured(tmp_path / "root", replace(_GPU, uuid="GPU-1"), _Server(), passes=4)
    passes = [each for row in rows for each in row.passes]
    assert len(passes) == 12
    assert {(each.sm_mhz, each.quarantine) for each in passes} == {(None, "")}
    assert {clock.sm_mhz for each in passes for clock in each.clocks} == {None}
    assert {row.metric("sm_mhz") for row in rows} == {None}


def test_what_is_faster_than_nothing_is_no_latency(tmp_path: Path) -> None:
    rows = _measured(tmp_path / "root", _GPU, _Server(), anchors=True)
    timed = {row.contract.timer: row for row in rows if row.contract and row.kernel == "axpb"}
    assert {name: row.status.value for name, row in timed.items()} == {
        "cold": "invalid_timing",
        "hot": "invalid_timing",
        "host": "passed",
    }
    assert "a kernel that does nothing takes 1.00 µs here" in timed["hot"].message
