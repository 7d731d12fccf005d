from dataclasses import replace
from pathlib import Path

import click
from records import summary, timed_cell

from perfci.kernel import discover
from perfci.reports.columns import WIDTH, measure
from perfci.reports.text import kernel_list, run_list

_RUN = summary()
_PASSED = timed_cell()


def _render(lines: list[str]) -> str:
    assert all(measure(click.unstyle(line)) <= WIDTH for line in lines)
    return click.unstyle("\n".join(lines))


def test_run_list() -> None:
    dirty = replace(
        _RUN, run_id="20260301T150000-9a2b", commit=replace(_RUN.commit, dirty="d1"),
        status_counts=(), trigger="gate",
    )  # fmt: skip
    assert _render(run_list([_RUN, dirty])) == (
        """\
  run              commit            by     testbed      failed
  20260301T140500  0123456789        local  bench    3 of 1,203
  20260301T150000  0123456789+dirty  gate   bench        0 of 0"""
    )
    assert run_list([_RUN, dirty], width=82) == [
        "  run              started            commit            by     testbed      failed",
        "  20260301T140500  2026-03-01 14:05Z  0123456789        local  bench    3 of 1,203",
        "  20260301T150000  2026-03-01 14:05Z  0123456789+dirty  gate   bench        0 of 0",
    ]


def test_ids_are_told_from_those_of_runs_that_are_not_listed() -> None:
    other = replace(_RUN, run_id=f"{_RUN.run_id[:-2]}00")
    assert run_list([_RUN])[1].split()[0] == "20260301T140500"
    assert run_list([_RUN], known=[_RUN, other])[1].split()[0] == _RUN.run_id[:-1]


def test_a_testbeds_name_is_cut_last() -> None:
    testbed = "intel-xeon-processor-2-cores"
    run = replace(_RUN, environment=replace(_RUN.environment, testbed=testbed))
    assert testbed in _render(run_list([run, replace(run, commit=replace(run.commit, dirty="d"))]))


def test_run_list_without_runs_says_so() -> None:
    assert run_list([]) == ["  (none)"]


def test_kernel_list(tmp_path: Path) -> None:
    folder = tmp_path / "rope"
    folder.mkdir()
    (folder / "reference.py").write_text(
        "def make_inputs(*, dtype, device, generator): ...\n"
        "def reference(x): ...\n"
        "def bytes_moved(*, dtype): ...\n"
        "def flops(*, dtype): ...\n"
    )
    (folder / "cases.toml").write_text(
        '[[bench]]\nname = "headline"\n[[check]]\nname = "odd"\n[[check]]\nname = "one"\n'
    )
    (folder / "naive.cpp").write_text("// nothing\n")
    (folder / "quick.py").write_text('# perfci: dtypes = ["float32", "float16"]\n')
    assert _render(kernel_list(discover(tmp_path))) == (
        """\
rope · 1 timed, 2 checked only
  variant  kind    devices    dtypes
  naive    c       cpu        float32
  quick    python  cpu, cuda  float32, float16"""
    )


def test_kernel_list_without_kernels_says_so() -> None:
    assert kernel_list([]) == ["  (none)"]
