"""What compute-sanitizer prints, and what is made of it. The tool is a double: see doubles.py."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import doubles
import pytest
import scratch

from perfci.errors import BuildEnvironmentError, DeviceError
from perfci.tools.sanitizer import OPTIONS, Inspection, State, inspect, read_report
from perfci.tools.watcher import require_program

_CASES = """\
[[check]]
name = "odd"
count = 9

[[check]]
name = "strided"
layout = "strided"
count = 9

[[check]]
name = "double"
dtype = "float64"
count = 3
"""
_MEMCHECK = """\
========= COMPUTE-SANITIZER
Mallocing memory
========= Invalid __global__ write of size 4 bytes
=========     at unaligned_kernel()+0x100 in memcheck_demo.cu:34
=========     by thread (0,0,0) in block (0,0,0)
=========     Address 0x7cc43aa00001 is misaligned
=========     and is inside the nearest allocation at 0x7cc43aa00000 of size 4 bytes
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: run_unaligned() [0xacd4] in memcheck_demo
=========         Host Frame: main [0xae61] in memcheck_demo
=========
Running unaligned_kernel: no error
========= Invalid __global__ write of size 4 bytes
=========     at out_of_bounds_function()+0xb0 in memcheck_demo.cu:39
=========     by thread (0,0,0) in block (0,0,0)
=========     Address 0x87654320 is out of bounds
=========
========= ERROR SUMMARY: 1,259 errors
========= ERROR SUMMARY: 1,159 errors were not printed. Use --print-limit option to adjust the \
number of printed errors
"""
_RACECHECK = """\
========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at sumKernel(int *, int *)+0x90 in race.cu:41
=========     and Read access at sumKernel(int *, int *)+0x100 in race.cu:51 [508 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
_INITCHECK = """\
========= COMPUTE-SANITIZER
========= Uninitialized __global__ memory read of size 4 bytes
=========     at vectorAdd(int *)+0x70 in memset_error.cu:41
=========     by thread (31,0,0) in block (1,0,0)
=========     Address 0x7f3c7ec000fc
=========
========= ERROR SUMMARY: 1 error
"""
_SYNCCHECK = """\
========= COMPUTE-SANITIZER
========= Barrier error detected. Divergent thread(s) in block.
=========     at [clone myKernel(int *, int *)] outlineSync()+0x11f0 in test.cu:42
=========     by thread (32,0,0) in block (0,0,0)
=========         Device Frame: myKernel(int *, int *)+0xe40 in test.cu:60
=========
========= Target application returned an error
========= ERROR SUMMARY: 32 errors
"""


_NOT_FOLLOWED = (
    "Internal Sanitizer Error: The Sanitizer encountered an error while launching axpb and "
    "didn't track the launch. Errors might go undetected."
)
_OVERFLOW = (
    "Detected overflow of tracked cuda::barrier structures. Results might be incorrect. Try "
    "using --num-cuda-barriers to fix the issue"
)


@pytest.mark.parametrize(
    ("text", "count", "first"),
    [
        (
            _MEMCHECK,
            1259,
            (
                "Invalid __global__ write of size 4 bytes, at unaligned_kernel()+0x100 in "
                "memcheck_demo.cu:34, by thread (0,0,0) in block (0,0,0), Address 0x7cc43aa00001 "
                "is misaligned, and is inside the nearest allocation at 0x7cc43aa00000 of size 4 "
                "bytes"
            ),
        ),
        (
            _RACECHECK,
            1,
            (
                "Error: Race reported between Write access at sumKernel(int *, int *)+0x90 in "
                "race.cu:41, and Read access at sumKernel(int *, int *)+0x100 in race.cu:51 "
                "[508 hazards]"
            ),
        ),
        (
            _INITCHECK,
            1,
            (
                "Uninitialized __global__ memory read of size 4 bytes, at vectorAdd(int *)+0x70 in "
                "memset_error.cu:41, by thread (31,0,0) in block (1,0,0), Address 0x7f3c7ec000fc"
            ),
        ),
        (
            _SYNCCHECK,
            32,
            (
                "Barrier error detected. Divergent thread(s) in block, at [clone myKernel(int *, "
                "int *)] outlineSync()+0x11f0 in test.cu:42, by thread (32,0,0) in block (0,0,0)"
            ),
        ),
        ("========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n", 0, ""),
        (
            (
                "========= COMPUTE-SANITIZER\n"
                "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n"
            ),
            0,
            "",
        ),
        ("========= COMPUTE-SANITIZER\nKilled\n", None, ""),
    ],
)
def test_errors_are_counted_by_the_tools_own_sum(text: str, count: int | None, first: str) -> None:
    report = read_report(text)
    assert (report.count, report.first) == (count, first)
    assert (report.fault, report.unusable) == ("", "")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (f"========= Error: {doubles.NOT_SUPPORTED}", doubles.NOT_SUPPORTED),
        (
            "========= Error: Target application terminated before first instrumented API call",
            "Target application terminated before first instrumented API call",
        ),
        (
            "========= Unable to find injection library libsanitizer-collection.so",
            "Unable to find injection library libsanitizer-collection.so",
        ),
        ("unrecognised option '--padding'", "unrecognised option '--padding'"),
    ],
)
def test_a_tool_that_does_not_work_says_so(line: str, words: str) -> None:
    assert read_report(f"========= COMPUTE-SANITIZER\n{line}\n").unusable == words


def test_a_child_process_that_uses_no_gpu_does_not_make_the_tool_useless() -> None:
    child = "========= Target application terminated before first instrumented API call\n"
    assert read_report(f"{child}========= ERROR SUMMARY: 0 errors\n").unusable == ""


@pytest.mark.parametrize(
    ("lines", "count", "fault"),
    [
        (
            f"========= {_NOT_FOLLOWED}\n=========     Saved host backtrace\n",
            0,
            _NOT_FOLLOWED,
        ),
        (f"========= Warning: {_OVERFLOW}\n", 0, f"Warning: {_OVERFLOW}"),
        ("========= Error: something new\n", 3, "the tool counts 3 and names none"),
    ],
)
def test_what_the_tool_does_not_know_is_its_fault(lines: str, count: int, fault: str) -> None:
    report = read_report(f"{lines}========= ERROR SUMMARY: {count} errors\n")
    assert (report.count, report.first, report.fault) == (count, "", fault)


def test_what_is_found_counts_beside_a_fault_of_the_tool() -> None:
    report = read_report(f"========= {_NOT_FOLLOWED}\n=========     Saved\n=========\n{_INITCHECK}")
    assert report.first.startswith("Uninitialized __global__ memory read")
    assert report.fault == _NOT_FOLLOWED


def test_of_several_sums_none_is_the_proof_and_the_worst_counts() -> None:
    clean = "========= ERROR SUMMARY: 0 errors\n"
    assert read_report(2 * clean).fault == "more than one sum was printed"
    for text in (clean + _INITCHECK, _INITCHECK + clean):
        assert read_report(text).count == 1


def test_a_tool_that_prints_nothing_is_at_fault() -> None:
    assert read_report("the variant's words\n").fault == "the tool printed nothing"


def test_a_program_that_is_not_installed_is_said_with_what_to_install() -> None:
    with pytest.raises(BuildEnvironmentError, match="no-such-tool: not installed here; install it"):
        require_program("no-such-tool", "install it")


class _Steps:
    def __init__(self) -> None:
        self.labels: list[str] = []

    def step(self, phase: str, done: int, total: int, label: str) -> None:
        assert (phase, done) == ("sanitize", len(self.labels) + 1)
        self.labels.append(f"{label} {total}")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> doubles.Workplace:
    """Three cases, one of which no variant takes."""
    root = scratch.quick(tmp_path_factory.mktemp("sanitizer") / "root")
    scratch.write_kernel(
        root,
        cases__toml=_CASES,
        eager__py=scratch.EAGER,
        other__py=scratch.EAGER,
        broken__cpp="int perfci_run(\n",
    )
    return doubles.workplace(root, "odd", "strided", "double")


def _inspect(
    place: doubles.Workplace, program: str, folder: Path, *variants: str, **more: Any
) -> list[Inspection]:
    cells = more.pop("cells", [each for each in place.cells if each.variant.name in variants])
    names = {each.variant.name for each in cells}
    return inspect(
        cells,
        [each for each in place.builds if each.variant.name in names],
        program=program,
        timeout_s=60.0,
        logs=folder / "logs",
        **{"observer": _Steps(), "target": doubles.CPU, **more},
    )


def _states(rows: list[Inspection], tool: str = "memcheck") -> dict[str, State]:
    return {row.case: row.state for row in rows if row.tool == tool}


def test_a_clean_process_a_tool_is_the_proof_for_all_cases(
    place: doubles.Workplace, tmp_path: Path
) -> None:
    steps = _Steps()
    program = doubles.write_sanitizer(tmp_path, {"eager": {"strided": "refused"}})
    rows = _inspect(place, program, tmp_path, "eager", observer=steps)
    for tool in OPTIONS:
        assert _states(rows, tool) == {"odd": State.CLEAN, "strided": State.SKIPPED}
    skipped = [(row.case, row.state, row.message) for row in rows if not row.tool]
    assert skipped == [("double", State.SKIPPED, "declared for float32 only")]
    logs = sorted(each.name for each in (tmp_path / "logs").glob("*.log"))
    assert logs == sorted(f"axpb.eager.{tool}.all.log" for tool in OPTIONS)
    assert sorted(steps.labels) == sorted(f"axpb/eager {tool} 4" for tool in OPTIONS)


def test_what_is_found_is_laid_to_its_case_and_the_others_are_clean(
    place: doubles.Workplace, tmp_path: Path
) -> None:
    program = doubles.write_sanitizer(tmp_path, {"eager": {"strided": "initcheck"}})
    rows = _inspect(place, program, tmp_path, "eager")
    assert _states(rows, "memcheck") == {"odd": State.CLEAN, "strided": State.CLEAN}
    assert _states(rows, "initcheck") == {"odd": State.CLEAN, "strided": State.FOUND}
    (found,) = [row for row in rows if row.state is State.FOUND]
    assert found.count == 2
    assert found.message.startswith("Invalid __global__ read of size 4 bytes, at axpb(")
    log = Path(found.log).read_text()
    assert log.startswith("$ PYTHONPATH=")
    assert "PYTORCH_NO_CUDA_MEMORY_CACHING=1" in log
    assert "--tool initcheck --error-exitcode 86" in log
    assert doubles.MEMCHECK in log


@pytest.mark.parametrize(("act", "state"), [("called", State.CLEAN), ("refused", State.SKIPPED)])
def test_what_only_all_cases_together_bring_about_is_not_lost(
    place: doubles.Workplace, tmp_path: Path, act: str, state: State
) -> None:
    acts = {"eager": {"odd": "together", "strided": act}}
    rows = _inspect(place, doubles.write_sanitizer(tmp_path, acts), tmp_path, "eager")
    assert _states(rows) == {"odd": State.CLEAN, "strided": state, "": State.FOUND}


@pytest.mark.parametrize(
    ("act", "message"),
    [
        ("raised", "x must be contiguous"),
        ("exits", "the process ended at this case: Target application returned an error"),
        ("hangs", "does not end"),
    ],
)
def test_a_call_that_goes_wrong_by_itself_has_failed_at_its_case_only(
    place: doubles.Workplace, tmp_path: Path, act: str, message: str
) -> None:
    program = doubles.write_sanitizer(tmp_path, {"eager": {"odd": act}})
    rows = _inspect(place, program, tmp_path, "eager")
    assert _states(rows) == {"odd": State.FAILED, "strided": State.CLEAN}
    assert {row.message for row in rows if row.state is State.FAILED} == {message}


def test_a_tool_that_gives_no_sum_is_never_taken_for_clean(
    place: doubles.Workplace, tmp_path: Path
) -> None:
    program = doubles.write_sanitizer(tmp_path, {"eager": {}}, silent=True)
    rows = _inspect(place, program, tmp_path, "eager")
    assert {row.state for row in rows if row.tool} == {State.UNPROVED}
    assert "the tool gave no sum: COMPUTE-SANITIZER" in {row.message for row in rows}


@pytest.mark.parametrize(
    ("act", "message"),
    [
        ("claims", "more than one sum was printed"),
        ("dies", "the tool was ended by signal 9"),
    ],
)
def test_what_a_tool_leaves_open_is_laid_to_the_tool(
    place: doubles.Workplace, tmp_path: Path, act: str, message: str
) -> None:
    program = doubles.write_sanitizer(tmp_path, {"eager": {"odd": act}})
    rows = _inspect(place, program, tmp_path, "eager")
    assert _states(rows) == {"odd": State.UNPROVED, "strided": State.CLEAN}
    assert message in {row.message for row in rows if row.state is State.UNPROVED}


def test_a_tool_that_ends_with_an_error_is_never_taken_for_clean(
    place: doubles.Workplace, tmp_path: Path
) -> None:
    program = doubles.write_sanitizer(tmp_path, {"eager": {}}, code=3)
    rows = [row for row in _inspect(place, program, tmp_path, "eager") if row.tool]
    assert {row.state for row in rows} == {State.UNPROVED}
    assert {row.message for row in rows} == {"the tool finds nothing and ends with status 3"}


def test_a_tool_that_gives_no_sum_for_all_cases_together_is_at_fault_and_no_variant(
    place: doubles.Workplace, tmp_path: Path
) -> None:
    program = doubles.write_sanitizer(tmp_path, {"eager": {"odd": "unsummed"}})
    rows = _inspect(place, program, tmp_path, "eager")
    assert _states(rows) == {"odd": State.CLEAN, "strided": State.CLEAN, "": State.UNPROVED}


def test_a_tool_that_does_not_work_here_stops_everything(
    place: doubles.Workplace, tmp_path: Path
) -> None:
    program = doubles.write_sanitizer(tmp_path, {}, unusable=doubles.NOT_SUPPORTED)
    with pytest.raises(DeviceError, match=r"does not work here: Device not supported\."):
        _inspect(place, program, tmp_path, "eager", "other")


def test_a_case_that_the_device_has_no_memory_for_is_not_run(
    place: doubles.Workplace, tmp_path: Path
) -> None:
    target = replace(doubles.CPU, device=replace(doubles.CPU.device, memory_bytes=0))
    cells = [
        replace(each, case=replace(each.case, memory_gib=1.0))
        for each in place.cells
        if each.variant.name == "eager" and each.case.name == "odd"
    ]
    (row,) = _inspect(
        place, doubles.write_sanitizer(tmp_path, {}), tmp_path, cells=cells, target=target
    )
    assert (row.state, row.message.partition(" of memory")[0]) == (
        State.SKIPPED,
        "the case needs 1 GiB",
    )


def test_what_does_not_build_is_a_row_and_is_not_run(
    place: doubles.Workplace, tmp_path: Path
) -> None:
    program = doubles.write_sanitizer(tmp_path, {})
    (row,) = [each for each in _inspect(place, program, tmp_path, "broken") if each.tool]
    assert (row.tool, row.case, row.state) == ("build", "", State.FAILED)
    assert "error: " in row.message
    assert list((tmp_path / "logs").iterdir()) == []


@pytest.mark.long
def test_the_tool_runs_the_process_that_calls_the_variant(
    place: doubles.Workplace, tmp_path: Path
) -> None:
    rows = _inspect(place, doubles.write_sanitizer(tmp_path), tmp_path, "eager")
    for tool in OPTIONS:
        assert _states(rows, tool) == {"odd": State.CLEAN, "strided": State.CLEAN}
    told = (tmp_path / "logs/axpb.eager.racecheck.all.log").read_text()
    assert told.count('"ending": "called"') == 2
