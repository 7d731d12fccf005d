"""Two sides in the same passes on a real GPU: a study of noise, and a side that faults."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import scratch

from perfci.config import load_config
from perfci.device import find_targets, has_gpu_driver
from perfci.history.codec import read_run_file
from perfci.history.model import Measurement, Run, Status
from perfci.kernel import discover
from perfci.progress import LineObserver
from perfci.run import measure_pair
from perfci.selection import Selection, select
from perfci.workers.passes import PassServer

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.long,
    pytest.mark.skipif(not has_gpu_driver(), reason="needs a CUDA device"),
]

_TIMERS = ["cold", "hot", "host"]
_CUDA = """\
#include <perfci_cuda.h>

__global__ void axpb(const float *x, float *y, float a, float b, int64_t count) {
  const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) y[i] = a * x[i] + b;
  BODY
}

extern "C" int perfci_run(const perfci_call *call) {
  const perfci_tensor *x = &call->inputs[0];
  const int64_t count = x->shape[0];
  return perfci_launch(call, {(count + 255) / 256, 256, 0}, axpb, (const float *)x->data,
                       (float *)call->outputs[0].data, (float)call->scalars[0].real,
                       (float)call->scalars[1].real, count);
}
"""
_PLAIN = _CUDA.replace("BODY", "")
_SLOW = _CUDA.replace("BODY", "for (long long end = clock64() + 40000; clock64() < end;) {}")
_FAULTS = _CUDA.replace("BODY", "*(volatile float *)8 = 1.0f;")


def _timed(rows: tuple[Measurement, ...]) -> dict[str, Measurement]:
    return {row.contract.timer: row for row in rows if row.contract is not None}


def _measured(folder: Path, *sides: Mapping[str, str]) -> list[dict[str, Measurement]]:
    """The timed rows of each of two sides by timer."""
    chosen = []
    for number, files in enumerate(sides):
        root = scratch.quick(folder / str(number), timeout_s=30)
        scratch.write_kernel(root, **files)
        chosen.append(select(discover(root / "kernels"), Selection(cases=("large",)), "cuda"))
    config = load_config(folder / "0", environment={}, cache=str(folder / "cache"))
    server = PassServer({})
    target = find_targets("0", server.probe_gpus)[0]
    first, second = measure_pair(
        *chosen,
        config,
        target=target,
        server=server,
        passes=2,
        observer=LineObserver(),
    )
    return [_timed(first.measurements), _timed(second.measurements)]


def test_a_slower_side_is_slower_by_every_timer(tmp_path: Path) -> None:
    quick, slow = _measured(tmp_path, {"axpb__cu": _PLAIN}, {"axpb__cu": _SLOW})
    assert list(quick) == list(slow) == _TIMERS
    for timer in _TIMERS:
        before, after = quick[timer], slow[timer]
        assert before.status is after.status is Status.PASSED, (before.message, after.message)
        assert [each.index for each in before.passes] == [each.index for each in after.passes]
        for a, b in zip(before.passes, after.passes, strict=True):
            assert min(b.samples_ns) > min(a.samples_ns) + 5000  # 40,000 cycles are 20 µs
    assert quick["cold"].launches
    assert slow["cold"].launches


def test_beside_a_side_that_faults_the_other_is_not_timed(tmp_path: Path) -> None:
    bad, good = _measured(tmp_path, {"axpb__cu": _FAULTS}, {"axpb__cu": _PLAIN})
    assert {row.status for row in bad.values()} == {Status.RUNTIME_ERROR}
    assert {row.status for row in good.values()} == {Status.MISSING}


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Run], Any]:
    """The two runs of a study of CUDA, Triton and eager variants, and what it said as JSON."""
    root = scratch.quick(tmp_path_factory.mktemp("noise") / "root", timeout_s=30)
    scratch.write_kernel(root, axpb__cu=_PLAIN, eager__py=scratch.EAGER)
    scratch.git(root, "init", "-q")
    scratch.commit_all(root, "first")
    ended = scratch.perfci(
        root, "noise", "--device", "0", "--passes", "4", "--out", "files", "--json"
    )
    assert ended.returncode == 0, ended.stderr
    runs = [read_run_file(path) for path in sorted((root / "files").glob("*.json.gz"))]
    return runs, json.loads(ended.stdout)


def test_a_study_has_both_sides_of_every_cell_and_timer(study: tuple[list[Run], Any]) -> None:
    (first, second), said = study
    assert first.pair == second.pair != ""
    for run in (first, second):
        rows = [row for row in run.measurements if row.contract is not None]
        assert {(row.variant, row.contract.timer) for row in rows if row.contract} == {
            (variant, timer) for variant in ("axpb", "eager") for timer in _TIMERS
        }
        assert {row.status for row in rows} == {Status.PASSED}
        assert {len(row.passes) for row in rows} == {4}
    assert len(said["cells"]) == 6


def test_what_is_timed_in_turns_is_as_long_as_what_is_timed_alone(
    study: tuple[list[Run], Any], tmp_path: Path
) -> None:
    (first, _), _ = study
    root = scratch.quick(tmp_path / "root", timeout_s=30)
    scratch.write_kernel(root, axpb__cu=_PLAIN)
    arguments = ("run", "--device", "0", "--passes", "2", "--commit", "abcdef1")
    ended = scratch.perfci(root, *arguments, "--out", root / "alone.json.gz")
    assert ended.returncode == 0, ended.stderr
    alone = _timed(read_run_file(root / "alone.json.gz").measurements)
    paired = _timed(tuple(row for row in first.measurements if row.variant == "axpb"))
    for timer in ("cold", "hot"):
        fastest = [
            min(min(each.samples_ns) for each in row.passes)
            for row in (alone[timer], paired[timer])
        ]
        assert fastest[1] == pytest.approx(fastest[0], rel=0.1)
