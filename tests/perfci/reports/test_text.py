from dataclasses import replace
from pathlib import Path

import click
from records import summary, timed_cell

from perfci.history.model import Comparison, SeriesKey, Verdict
from perfci.kernel import discover
from perfci.reports.columns import WIDTH, measure
from perfci.reports.text import comparison_table, kernel_list, run_list

_RUN = summary()
_PASSED = timed_cell()


def _render(lines: list[str]) -> str:
    assert all(measure(click.unstyle(line)) <= WIDTH for line in lines)
    return click.unstyle("\n".join(lines))


_KEY = SeriesKey(
    testbed="bench", device_model="Some CPU", kernel="rope", case="headline", variant="tiled",
    contract="cpu/1",
)  # fmt: skip


def _comparison(
    verdict: Verdict, variant: str, ratio: float | None, reason: str = ""
) -> Comparison:
    return Comparison(
        key=replace(_KEY, variant=variant),
        verdict=verdict,
        reason=reason,
        baseline_ns=12_345.0,
        contender_ns=None if ratio is None else 12_345.0 * ratio,
        ratio=ratio,
        interval=None if ratio is None else (ratio * 0.98, ratio * 1.02),
        smallest_visible_change=None if ratio is None else 0.114,
    )


def test_comparison_table_is_worst_first() -> None:
    comparisons = [
        _comparison(Verdict.UNCHANGED, "same", 1.001),
        _comparison(Verdict.IMPROVEMENT, "quick", 0.5),
        _comparison(
            Verdict.INCONCLUSIVE, "noisy", 1.04, "the interval reaches across the threshold"
        ),
        _comparison(Verdict.MISSING, "gone", None, "no contender"),
        _comparison(Verdict.REGRESSION, "slow", 2.0),
        _comparison(Verdict.INCORRECT, "wrong", None, "wrong values: off by 3"),
    ]
    assert _render(comparison_table(comparisons)) == (
        """\
rope · cpu/1 · bench · Some CPU
  variant  case      baseline   change          interval  verdict
  wrong    headline   12.3 µs        –                 –  ✗ incorrect
  slow     headline   12.3 µs   +100 %   [+96.0, +104] %  ▲ slower
  gone     headline   12.3 µs        –                 –  – missing
  noisy    headline   12.3 µs   +4.0 %    [+1.9, +6.1] %  ? inconclusive
  quick    headline   12.3 µs  −50.0 %  [−51.0, −49.0] %  ▼ faster
  same     headline   12.3 µs   +0.1 %    [−1.9, +2.1] %  = unchanged

✗ incorrect · rope/wrong/headline cpu/1
    wrong values: off by 3
– missing · rope/gone/headline cpu/1
    no contender
? inconclusive · rope/noisy/headline cpu/1
    the interval reaches across the threshold; +11.4 % would have shown

1 incorrect, 1 slower, 1 missing, 1 inconclusive, 1 faster, 1 unchanged"""
    )


def test_every_kernel_contract_and_testbed_has_its_table() -> None:
    here = _comparison(Verdict.UNCHANGED, "same", 1.0)
    there = replace(here, key=replace(here.key, testbed="other", contract="cuda_cold/1"))
    text = _render(comparison_table([here, there]))
    assert "rope · cpu/1 · bench · Some CPU\n" in text
    assert "rope · cuda_cold/1 · other · Some CPU\n" in text
    assert text.endswith("\n\n2 unchanged")


def test_comparison_of_nothing_says_so() -> None:
    assert _render(comparison_table([])) == "  (none)\n\nnothing compared"


def test_run_list() -> None:
    dirty = replace(
        _RUN, run_id="20260301T150000-9a2b", commit=replace(_RUN.commit, dirty="d1"),
        status_counts=(),
    )  # fmt: skip
    assert _render(run_list([_RUN, dirty])) == (
        """\
  run          started            commit            testbed  passed  failed
  20260301T14  2026-03-01 14:05Z  0123456789        bench     1,200       3
  20260301T15  2026-03-01 14:05Z  0123456789+dirty  bench         0       0"""
    )


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
