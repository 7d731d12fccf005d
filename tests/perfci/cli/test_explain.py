"""perfci explain: the speed-of-light table of a recorded run, wherever it was measured."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import scratch
from records import (
    beside_others,
    cpu_anchors,
    gpu_anchors,
    gpu_cells,
    gpu_run,
    launch,
    measurement,
    run,
)

from perfci.history.codec import write_run_file
from perfci.history.model import Measurement, Metric, Run, Status
from perfci.kernel import discover
from perfci.quarantine import OTHERS, QUARANTINED
from perfci.reports.columns import WIDTH, measure
from perfci.timers import NOT_IN_L2, OVERLAPPING, TIMERS

Call = Callable[..., Any]

_FUSED = launch(
    function="void fused<4, 16>(float const*, float*, long)",
    grid=(50, 8, 1),
    registers=40,
    shared_bytes=49152,
    blocks_per_sm=2,
    occupancy=0.25,
)
_PLAIN = replace(
    _FUSED,
    function="plain(float const*, float*)",
    grid=(1000, 1, 1),
    registers=96,
    local_bytes=64,
    shared_bytes=0,
    blocks_per_sm=5,
    occupancy=0.625,
    spill_bytes=16,
)


def _cells(
    variant: str, *latencies_ns: float, error: float = 1e-4, **more: Any
) -> list[Measurement]:
    """A variant of axpb at its large case by all timers of a GPU."""
    case = {"kernel": "axpb", "case": "large", "bytes_moved": 8e6, "flops": 2e9, **more}
    errors = (
        Metric(name="max_abs_error", value=error, unit=""),
        Metric(name="yardstick_max_abs_error", value=1e-4, unit=""),
    )
    return [
        replace(each, metrics=(*each.metrics, *errors))
        for each in gpu_cells(*latencies_ns, variant=variant, **case)
    ]


_MEASURED = (
    *_cells("plain", 160e3, 80e3, 90e3, launches=(_PLAIN,)),
    *_cells("fused", 50e3, 44e3, 60e3, error=2e-4, launches=(_FUSED,)),
    *_cells("library", 100e3, 100e3, 120e3, launches=(_FUSED, _PLAIN, _PLAIN)),
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with the kernel axpb, outside of any repository."""
    root = scratch.quick(tmp_path / "root")
    scratch.write_kernel(root)
    return root


@pytest.fixture
def explained(root: Path, call: Call) -> Call:
    """Import a run file and explain its kernel axpb."""

    def ended(recorded: Run, *arguments: str) -> Any:
        write_run_file(root / "run.json.gz", recorded)
        imported = call(root, "history", "import", "run.json.gz")
        assert imported.code == 0, imported.err
        return call(root, "explain", "axpb", *arguments)

    return ended


def _of_the_kernel_at_hand(root: Path, cells: tuple[Measurement, ...]) -> list[Measurement]:
    (kernel,) = discover(root / "kernels")
    digests = {case.name: kernel.workload_digest(case) for case in kernel.cases}
    return [replace(each, workload_digest=digests[each.case]) for each in cells]


def test_each_case_has_its_floor_and_each_variant_a_line(root: Path, explained: Call) -> None:
    cells = _of_the_kernel_at_hand(root, _MEASURED)
    ended = explained(gpu_run(*cells, *gpu_anchors()))
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == (
        """\
explain axpb · run 20260301T140500-4f1c
commit 0123456789 · Unroll the inner loop
testbed bench · Some GPU · 100 SMs

this device reaches, measured in this run
  timer     memory         L2       float32     bfloat16   launch
  cold   4.00 TB/s          –  50.0 Tflop/s  800 Tflop/s  2.00 µs
  hot    4.00 TB/s  8.00 TB/s  50.0 Tflop/s  800 Tflop/s   500 ns
  host   3.64 TB/s          –  47.6 Tflop/s  727 Tflop/s  7.00 µs

large · float32
  count=65536
  7.63 MiB, 2.00 Gflop, 250 flop/B, stays in the L2
  floor: cold 40.0 µs (compute), hot 40.0 µs (compute)
  variant     cold  of floor      hot  of floor  error ÷ lib
  fused    50.0 µs      80 %  44.0 µs      91 %         2.00
  library   100 µs      40 %   100 µs      40 %         1.00
  plain     160 µs      25 %  80.0 µs      50 %         1.00

  variant      launch  registers  spills    shared  occupancy  waves
  fused    50·8 × 256         40     0 B  48.0 KiB       25 %   2.00
  library   3 kernels         96    16 B  48.0 KiB       25 %      –
  plain    1000 × 256         96    16 B       0 B       62 %   2.00
"""
    )


def test_one_variant_is_shown_in_full(root: Path, explained: Call) -> None:
    cells = _of_the_kernel_at_hand(root, _MEASURED)
    ended = explained(gpu_run(*cells, *gpu_anchors()), "--variant", "library")
    assert ended.out.partition("(compute)\n\n")[2] == (
        """\
library
  timer  latency  95 %  of floor    floor  bound        moves      computes
  cold    100 µs     –      40 %  40.0 µs  compute  80.0 GB/s  20.0 Tflop/s
  hot     100 µs     –      40 %  40.0 µs  compute  80.0 GB/s  20.0 Tflop/s
  host    120 µs     –      35 %  42.0 µs  compute  66.7 GB/s  16.7 Tflop/s
  error 1.0e-04, the library's 1.0e-04, ratio 1.00
  #      launch  registers  spills    shared  occupancy  waves  local  per SM
  1  50·8 × 256         40     0 B  48.0 KiB       25 %   2.00    0 B       2
  2  1000 × 256         96    16 B       0 B       62 %   2.00   64 B       5
  3  1000 × 256         96    16 B       0 B       62 %   2.00   64 B       5
    1: void fused<4, 16>(float const*, float*, long)
    2: plain(float const*, float*)
    3: plain(float const*, float*)
"""
    )


def test_json_has_the_same_figures(root: Path, explained: Call) -> None:
    cells = _of_the_kernel_at_hand(root, _MEASURED)
    ended = explained(gpu_run(*cells, *gpu_anchors()), "--json")
    document = json.loads(ended.out)
    assert document["peaks"][1]["cache_bytes_per_s"] == pytest.approx(8e12)
    assert document["peaks"][0]["flops_per_s"]["float32"] == pytest.approx(5e13)
    (table,) = document["cases"]
    assert (table["arguments"], table["work"]["dtype"]) == ({"count": 65536}, "float32")
    assert [each["bound"] for each in table["floors"]][:2] == ["compute", "compute"]
    assert [each["variant"] for each in table["variants"]] == ["fused", "library", "plain"]
    assert table["variants"][0]["readings"][0]["share"] == pytest.approx(0.8)
    assert [each["waves"] for each in table["variants"][2]["launches"]] == [2.0]


def test_a_set_that_leaves_the_l2_is_bound_by_memory(root: Path, explained: Call) -> None:
    more = {"message": NOT_IN_L2, "bytes_moved": 4e8}
    cells = _of_the_kernel_at_hand(root, tuple(_cells("plain", 2e5, 2e5, 2e5, **more)))
    out = explained(gpu_run(*cells, *gpu_anchors())).out
    assert "too large to stay in the L2" in out
    assert "floor: cold 100 µs (memory), hot 100 µs (memory)\n" in out


def test_another_workload_has_no_shape_and_no_rate_of_products(explained: Call) -> None:
    out = explained(gpu_run(*_MEASURED, *gpu_anchors())).out
    assert "\nlarge\n  shape and dtype are not known here" in out
    assert "floor: cold 2.00 µs (memory), hot 1.00 µs (cache)\n" in out
    assert "left out of the floor: the operations: their dtype is not known here\n" in out


def test_without_a_folder_of_kernels_the_rest_is_shown(root: Path, explained: Call) -> None:
    recorded = gpu_run(*_MEASURED, *gpu_anchors())
    ended = explained(recorded, "--kernels", str(root / "nowhere"))
    assert ended.code == 0
    assert "shape and dtype are not known here" in ended.out


def test_without_anchors_there_is_no_floor(root: Path, explained: Call) -> None:
    out = explained(gpu_run(*_of_the_kernel_at_hand(root, _MEASURED))).out
    assert "\nthis run holds no anchors, by which to know what its device can do" in out
    assert "floor:" not in out
    assert "  fused    50.0 µs         –  44.0 µs         –         2.00\n" in out


def test_a_dtype_without_a_product_is_said(root: Path, explained: Call) -> None:
    cases = root / "kernels/axpb/cases.toml"
    cases.write_text(cases.read_text().replace("count = 65536", 'dtype = "float16"\ncount = 9'))
    cells = _of_the_kernel_at_hand(root, _MEASURED)
    out = explained(gpu_run(*cells, *gpu_anchors())).out
    assert "large · float16\n  count=9\n" in out
    assert "left out of the floor: the operations: no product of float16 was measured\n" in out


def test_what_failed_stands_last_with_its_reason(root: Path, explained: Call) -> None:
    captured = "cannot be captured in a CUDA graph: it waits"
    waits = [
        replace(each, status=Status.INVALID_TIMING, passes=(), message=captured)
        if each.contract == TIMERS["cuda_hot"].contract
        else each
        for each in _cells("waits", 70e3, 70e3, 80e3)
    ]
    wrong = [
        measurement(
            kernel="axpb", case="large", variant="aaa", contract=TIMERS[timer].contract,
            status=Status.WRONG_VALUES, message="off by 3",
        )
        for timer in ("cuda_cold", "cuda_hot")
    ]  # fmt: skip
    cells = _of_the_kernel_at_hand(root, (*wrong, *waits, *_MEASURED[:3]))
    out = explained(gpu_run(*cells, *gpu_anchors())).out
    table = out.partition("error ÷ lib\n")[2].splitlines()
    assert [line.split()[0] for line in table[:3]] == ["waits", "plain", "aaa"]
    assert f"launches of waits: {captured}" in " ".join(out.split())
    assert out.count("off by 3") == 1
    assert "✗ wrong values · aaa\n    off by 3\n" in out
    alone = explained(
        replace(gpu_run(*waits, *gpu_anchors()), run_id="another"), "--run", "another"
    ).out
    assert "250 flop/B\n" in alone


def _failed_check(variant: str, case: str, message: str) -> Measurement:
    cell = {"kernel": "axpb", "contract": None, "status": Status.WRONG_VALUES}
    return measurement(**cell, variant=variant, case=case, message=message)


def test_a_variant_that_fails_where_it_is_not_timed_is_not_shown_for_right(
    root: Path, explained: Call
) -> None:
    failed = (
        _failed_check("fused", "odd", "off by 3"),
        _failed_check("fused", "strided", "off by 3"),
        _failed_check("never_timed", "odd", "off by 4"),
    )
    recorded = gpu_run(*_MEASURED, *failed, *gpu_anchors())
    end = (
        "\n\nfailed at cases that are not timed\n"
        "✗ wrong values · fused/odd and 1 more\n    off by 3\n"
    )
    assert explained(recorded).out.endswith(end)
    assert explained(recorded, "--variant", "fused").out.endswith(end)
    assert "failed at" not in explained(recorded, "--variant", "plain").out


def test_what_already_stands_at_a_timed_case_is_not_said_again(explained: Call) -> None:
    failed = [
        measurement(
            kernel="axpb", case=case, variant="broken", contract=contract,
            status=Status.BUILD_FAILED, message="no compiler",
        )
        for case, contract in (("large", TIMERS["cuda_cold"].contract), ("odd", None))
    ]  # fmt: skip
    out = explained(gpu_run(*_MEASURED, *failed, *gpu_anchors())).out
    assert out.count("no compiler") == 1


def test_what_a_timer_noted_of_a_latency_is_said(explained: Call) -> None:
    noted = _cells("noted", 70e3, 60e3, 80e3, message=OVERLAPPING)
    out = explained(gpu_run(*_MEASURED, *noted, *gpu_anchors())).out
    assert f"noted, hot: {OVERLAPPING}" in " ".join(out.split())
    quiet = _cells("quiet", 70e3, 60e3, 80e3, message=NOT_IN_L2)
    told = gpu_run(*quiet, *gpu_anchors())
    assert "hot:" not in explained(replace(told, run_id="r2"), "--run", "r2").out


_DISTURBED = "the floors are of anchors that were disturbed: "


def _marked(cell: Measurement, mark: str) -> Measurement:
    return replace(cell, metrics=(*cell.metrics, Metric(name=mark, value=2.0, unit="")))


def test_floors_of_anchors_that_the_gpu_has_spoilt_say_so(explained: Call) -> None:
    first, second, third, *others = gpu_anchors()
    anchors = (_marked(first, QUARANTINED), _marked(second, OTHERS), _marked(third, OTHERS))
    ended = explained(gpu_run(*_MEASURED, *anchors, *others))
    said = (
        "others were on the GPU in all passes of 2 of 15 latencies; passes of 1 of 15 latencies "
        "are in quarantine"
    )
    assert ended.code == 0
    assert f" {_DISTURBED}{said} large " in " ".join(ended.out.split())
    assert max(map(measure, ended.out.splitlines())) <= WIDTH


def test_floors_that_were_measured_on_a_busy_machine_say_so(root: Path, explained: Call) -> None:
    case = {"kernel": "axpb", "case": "large", "contract": TIMERS["cpu"].contract}
    cell = measurement((400e3,), **case, variant="plain", bytes_moved=4e6, flops=2e7)
    first, second = cpu_anchors()
    disturbed = run(cell, beside_others(first, 0.31), second)
    said = "others used 31 % of the cores while 1 of 2 latencies was measured"
    assert f" {_DISTURBED}{said} " in " ".join(explained(disturbed).out.split())
    quiet = run(beside_others(cell, 0.9), *cpu_anchors(), run_id="r2")
    assert "disturbed" not in explained(quiet, "--run", "r2").out
    assert json.loads(explained(disturbed, "--run", "2026", "--json").out)["disturbance"] == said


def test_floors_of_anchors_whose_passes_disagree_say_so(explained: Call) -> None:
    first, second = cpu_anchors()
    torn = replace(first, passes=measurement((1e6,) * 6 + (1e8,) * 2).passes)
    case = {"kernel": "axpb", "case": "large", "contract": TIMERS["cpu"].contract}
    cell = measurement((400e3,), **case, variant="plain", bytes_moved=4e6, flops=2e7)
    said = "passes disagree so far that 1 of 2 latencies may be half as much again"
    assert f" {_DISTURBED}{said} " in " ".join(explained(run(cell, torn, second)).out.split())


def _absurd(cell: Measurement, value: float) -> Measurement:
    return replace(cell, metrics=tuple(replace(each, value=value) for each in cell.metrics))


@pytest.mark.parametrize("arguments", [(), ("--variant", "v0"), ("--json",)])
def test_figures_that_cannot_be_break_nothing(explained: Call, arguments: tuple[str, ...]) -> None:
    launch = replace(_FUSED, blocks_per_sm=0, spill_bytes=None)
    cells = [
        _absurd(each, value)
        for index, value in enumerate((-1e300, 0.0, 5e-324, 1e300))
        for each in _cells(f"v{index}", 5e-324, 1e18, 1e-300, launches=(launch, _PLAIN))
    ]
    ended = explained(
        gpu_run(*cells, *(_absurd(each, 1e300) for each in gpu_anchors())), *arguments
    )
    assert (ended.code, ended.err) == (0, "")
    assert max(len(word) for word in ended.out.split()) < 50
    assert arguments != ("--json",) or json.loads(ended.out, parse_constant=pytest.fail)


def test_a_run_of_nothing_but_anchors_explains_nothing(explained: Call) -> None:
    ended = explained(gpu_run(*gpu_anchors()))
    assert (ended.code, ended.out) == (9, "")
    assert "has timed no kernel 'axpb'" in ended.err


def test_a_cpu_has_floors_without_launches(root: Path, explained: Call) -> None:
    case = {"kernel": "axpb", "case": "large", "contract": TIMERS["cpu"].contract}
    cell = measurement((400e3,), **case, variant="plain", bytes_moved=4e6, flops=2e7)
    recorded = run(*_of_the_kernel_at_hand(root, (cell,)), *cpu_anchors())
    out = explained(recorded).out
    assert "floor: cpu 200 µs (compute)\n" in out
    assert "left out of the floor: the bytes: so few may stay in the caches\n" in out
    assert "  plain    400 µs      50 %            –\n" in out
    assert out.endswith("\n  launches: a CPU launches none\n")


@pytest.mark.parametrize("arguments", [(), ("--variant", "a" * 60)])
def test_long_names_fit(root: Path, explained: Call, arguments: tuple[str, ...]) -> None:
    grid, block = (2**31 - 1, 65535, 65535), (1, 1, 64)
    long = replace(_FUSED, function="very<long, " * 40 + ">", grid=grid, block=block)
    cells = _of_the_kernel_at_hand(
        root,
        tuple(_cells("a" * 60, 5e4, 4e4, 6e4, launches=(long,) * 12)),
    )
    cells += _of_the_kernel_at_hand(root, tuple(_cells("b" * 60, 5e4, 4e4, 6e4, launches=(long,))))
    out = explained(gpu_run(*cells, *gpu_anchors()), *arguments).out
    assert max(measure(line) for line in out.splitlines()) <= WIDTH


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("axpp",), 9, "has timed no kernel 'axpp' (did you mean 'axpb'?)"),
        (("axpb", "--variant", "fussed"), 9, "no variant 'fussed' of axpb (did you mean 'fused'?)"),
        (("axpb", "--run", "zzz"), 6, "no run 'zzz' in the store"),
        (("axpb", "--run", "2026", "--testbed", "bench"), 2, "leave out SHA and --testbed"),
        (("axpb", "--testbed", "other"), 9, "holds no runs of testbed 'other' yet"),
        (("axpb", "abcdef0123"), 9, "nothing is recorded at abcdef0123"),
    ],
)
def test_what_is_not_there_is_one_line(
    root: Path, explained: Call, call: Call, arguments: tuple[str, ...], code: int, words: str
) -> None:
    explained(gpu_run(*_MEASURED))
    ended = call(root, "explain", *arguments)
    assert (ended.code, ended.out, ended.err.count("\n")) == (code, "", 1)
    assert words in ended.err


def test_nothing_recorded_is_said(root: Path, call: Call) -> None:
    ended = call(root, "explain", "axpb")
    assert (ended.code, ended.err.count("\n")) == (6, 1)
    assert "nothing is recorded in it" in ended.err


def test_it_needs_no_torch(root: Path, explained: Call) -> None:
    explained(gpu_run(*_MEASURED, *gpu_anchors()))
    program = (
        "import sys; sys.modules['torch'] = None; sys.argv[1:] = ['explain', 'axpb']; "
        "from perfci.__main__ import main; main()"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        cwd=root,
        env=scratch.environment(root),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "floor: cold" in ended.stdout


def test_a_run_made_here_is_explained_by_its_own_anchors(root: Path) -> None:
    scratch.quick(root, anchors=True)
    measured = scratch.call(
        root, "run", "--device", "cpu", "--case", "large", "--commit", "abcdef1"
    )
    assert measured.returncode == 0, measured.stderr
    ended = scratch.call(root, "explain", "axpb")
    assert (ended.returncode, ended.stderr) == (0, "")
    lines = ended.stdout.splitlines()
    assert "this device reaches, measured in this run" in lines
    assert "large · float32" in lines
    assert "  512 KiB, 131 kflop, 0.25 flop/B" in lines
    assert any(line.startswith("  floor: cpu ") and "(compute)" in line for line in lines)
    (row,) = (line for line in lines if line.startswith("  plain "))
    assert row.count("%") == 1
