"""Rows of a run: what is in them, and that one that cannot be recorded does not cost the run."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import scratch

from perfci.anchors import anchor_cells
from perfci.config import load_config
from perfci.device import cpu
from perfci.history.model import Clock, Device, Launch, Measurement, Status, Stop, is_anchor
from perfci.history.plain import plain
from perfci.kernel import discover
from perfci.outcome import Outcome, Timing
from perfci.plan import Target, Task
from perfci.progress import LineObserver
from perfci.run import measure
from perfci.selection import Selection, select
from perfci.timers import TIMERS

_LAUNCH = Launch(
    function="axpb<float>",
    grid=(256, 1, 1),
    block=(256, 1, 1),
    registers=12,
    local_bytes=0,
    shared_bytes=3072,
    blocks_per_sm=8,
    occupancy=1.0,
    spill_bytes=0,
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
    ended = scratch.perfci(root, "run", "--commit", "abcdef1", "--case", "one", "--json")
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

    def __init__(self) -> None:
        self.asked: list[tuple[str, bool]] = []

    def run(self, tasks: Sequence[Task], **_: object) -> Iterator[tuple[int, tuple[Outcome]]]:
        for index, task in enumerate(tasks):
            self.asked.append((task.case.name, task.launches))
            timings = tuple(
                Timing(
                    contract=TIMERS[name].contract,
                    samples_ns=(1000.0 if is_anchor(task.kernel.name) else 5.0,),
                    loops=1,
                    stop=Stop.CONVERGED,
                    span_s=(0.0, 1e12),
                )
                for name in task.timers
            )
            told = (_LAUNCH, _COPY) if task.launches and task.timers else ()
            yield index, (Outcome(status=Status.PASSED, timings=timings, launches=told),)


def _measured(
    root: Path, device: Device, server: Any, *, anchors: bool = False, **options: Any
) -> Sequence[Measurement]:
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
        passes=2,
        **options,
    ).measurements


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
    asked: list[str | None] = []

    def read(uuid: str | None) -> Clock:
        asked.append(uuid)
        return Clock(sm_mhz=1980.0, throttle_reasons=("software power cap",))

    monkeypatch.setattr("perfci.run.read_clock", read)
    rows = _measured(tmp_path / "root", replace(_GPU, uuid="GPU-1"), _Server())
    passes = [each for row in rows for each in row.passes]
    assert len(passes) == 6
    assert all(each.clocks and each.clocks[0].sm_mhz == 1980.0 for each in passes)
    assert set(asked) == {"GPU-1"}


def test_what_is_faster_than_nothing_is_no_latency(tmp_path: Path) -> None:
    rows = _measured(tmp_path / "root", _GPU, _Server(), anchors=True)
    timed = {row.contract.timer: row for row in rows if row.contract and row.kernel == "axpb"}
    assert {name: row.status.value for name, row in timed.items()} == {
        "cold": "invalid_timing",
        "hot": "invalid_timing",
        "host": "passed",
    }
    assert "a kernel that does nothing takes 1.00 µs here" in timed["hot"].message
