from dataclasses import replace

import click
from records import CPU, summary, timed_cell

from perfci.history.latency import latency_of
from perfci.history.model import Cell, Metric, Status
from perfci.reports.columns import WIDTH, measure
from perfci.reports.run import run_table

_RUN = summary()
_PASSED = timed_cell()


def _failed(variant: str, status: Status, message: str) -> Cell:
    return replace(
        _PASSED, variant=variant, status=status, message=message, latency=None, metrics=()
    )


def _render(lines: list[str]) -> str:
    assert all(measure(click.unstyle(line)) <= WIDTH for line in lines)
    return click.unstyle("\n".join(lines))


def test_a_timed_case_is_a_line_and_checks_are_counted() -> None:
    cells = [
        _PASSED,
        _failed("naive", Status.WRONG_VALUES, "error 3.1 above the bound 4.4e-04\nat [0, 1]"),
        _failed("big", Status.SKIPPED, "width = 9 is above the declared maximum 8"),
        replace(_PASSED, case="one_token", contract=None, latency=None),
        replace(_PASSED, kernel="attention"),
        replace(_PASSED, kernel="attention", case="long"),
    ]
    assert _render(run_table(_RUN, cells)) == (
        """\
run 20260301T140500-4f1c · 2026-03-01 14:05Z · 1 m 12 s
commit 0123456789 · Unroll the inner loop
testbed bench · Some CPU

rope · headline
  variant      cpu    95 %    error  yardstick  checks  status
  tiled    12.3 µs  ±2.4 %  9.3e-05    1.1e-04     2/2  ✓ passed
  naive          –       –        –          –     0/1  ✗ wrong values
  big            –       –        –          –     0/0  · skipped

attention
  variant  case          cpu    95 %    error  yardstick  checks  status
  tiled    headline  12.3 µs  ±2.4 %  9.3e-05    1.1e-04     2/2  ✓ passed
  tiled    long      12.3 µs  ±2.4 %  9.3e-05    1.1e-04     2/2  ✓ passed

✗ wrong values · rope/naive/headline
    error 3.1 above the bound 4.4e-04

· skipped 1 · rope
    width = 9 is above the declared maximum 8

4 passed, 1 failed, 1 skipped"""
    )


def test_a_variant_that_fails_everywhere_alike_says_it_once() -> None:
    broken = _failed("broken", Status.BUILD_FAILED, "broken.cpp:1: error: expected ';'")
    checked = [replace(broken, case=f"case_{number}", contract=None) for number in range(9)]
    others = [replace(broken, variant="other"), replace(broken, case="odd", message="another")]
    text = _render(run_table(_RUN, [broken, replace(broken), *checked, *others]))
    assert (
        """
✗ build failed · rope/broken · 10 cases: headline, case_0, case_1 and 7 more
    broken.cpp:1: error: expected ';'
✗ build failed · rope/other/headline
    broken.cpp:1: error: expected ';'
✗ build failed · rope/broken/odd
    another
"""
        in text
    )


def test_what_the_gpus_state_has_spoilt_is_marked_with_how_much_of_it() -> None:
    def marked(variant: str, metric: str, message: str) -> Cell:
        marks = (*_PASSED.metrics, Metric(name=metric, value=2.0, unit=""))
        return replace(_PASSED, variant=variant, message=message, metrics=marks)

    low = "2 of 10 passes in quarantine: the SM clock was at 900 MHz, 1,980 MHz in most passes"
    shared = "measured while 2 other processes were on the GPU: not compared"
    cells = [
        _PASSED,
        marked("slow", "quarantined_passes", low),
        marked("shared", "other_processes", shared),
        replace(_PASSED, variant="noted", message="launches overlap"),
    ]
    text = _render(run_table(_RUN, cells))
    assert text.endswith(
        """
! marked · rope/slow/headline cpu/1
    2 of 10 passes in quarantine: the SM clock was at 900 MHz, 1,980 MHz in most
    passes
! marked · rope/shared/headline cpu/1
    measured while 2 other processes were on the GPU: not compared

4 passed, 0 failed, 0 skipped"""
    )


def test_a_latency_that_passes_lie_far_from_is_marked_also_of_an_anchor() -> None:
    torn = latency_of((100.0, 101.0, 99.0, 100.0, 40_000.0), sample_count=5)
    lines = _render(
        run_table(
            _RUN,
            [
                replace(_PASSED, variant="calm"),
                replace(_PASSED, variant="torn", latency=torn),
                replace(_PASSED, kernel="perfci_copy", variant="torch_add", latency=torn),
            ],
        )
    )
    assert "  torn     ! 100 ns  ±1.9 %  " in lines
    assert (
        """
this machine: anchors
  anchor  case           cpu  reaches
  copy    headline  ! 100 ns        –

! passes far from the latency that is shown
  cell                            timer     far   lowest  highest
  rope/torn/headline              cpu/1  1 of 5  99.0 ns  40.0 µs
  perfci_copy/torch_add/headline  cpu/1  1 of 5  99.0 ns  40.0 µs

2 passed,"""
        in lines
    )


def test_several_timers_stand_side_by_side_and_one_that_failed_is_named() -> None:
    cold, hot = (replace(CPU, timer=name) for name in ("cold", "hot"))
    captured = replace(
        _failed("tiled", Status.INVALID_TIMING, "cannot be captured in a CUDA graph"), contract=hot
    )
    cells = [replace(_PASSED, contract=cold), replace(captured, metrics=_PASSED.metrics)]
    assert _render(run_table(_RUN, cells)).splitlines()[4:9] == [
        "rope · headline",
        "  variant     cold  hot  error ÷ lib  checks  status",
        "  tiled    12.3 µs    –         0.85     0/1  ✗ invalid timing",
        "",
        "✗ invalid timing · rope/tiled/headline",
    ]


def test_a_case_that_is_only_checked_shows_where_it_fails() -> None:
    cells = [
        replace(_PASSED, contract=None, latency=None),
        replace(
            _failed("tiled", Status.WRONG_SHAPE, "returned shape (1,)"), case="odd", contract=None
        ),
    ]
    assert _render(run_table(_RUN, cells)).splitlines()[4:9] == [
        "rope",
        "  variant  checks  status",
        "  tiled       1/2  ✗ wrong shape",
        "",
        "✗ wrong shape · rope/tiled/odd",
    ]


def test_why_cases_were_skipped_is_said_once_a_kernel_with_how_many() -> None:
    skipped = replace(
        _PASSED,
        contract=None,
        latency=None,
        status=Status.SKIPPED,
        message="declared for float32 only",
    )
    others = [replace(skipped, variant=name, case=name) for name in ("a", "b")]
    kernel = replace(skipped, kernel="norm", message="needs compute capability 9.0")
    assert _render(run_table(_RUN, [_PASSED, skipped, *others, kernel])).splitlines()[-6:] == [
        "· skipped 3 · rope",
        "    declared for float32 only",
        "· skipped 1 · norm",
        "    needs compute capability 9.0",
        "",
        "1 passed, 0 failed, 4 skipped",
    ]


def test_run_without_cells_says_so() -> None:
    run = replace(_RUN, commit=replace(_RUN.commit, dirty="d1"))
    assert _render(run_table(run, [])) == (
        """\
run 20260301T140500-4f1c · 2026-03-01 14:05Z · 1 m 12 s
commit 0123456789+dirty · Unroll the inner loop
testbed bench · Some CPU

  (none)

0 passed, 0 failed, 0 skipped"""
    )


def test_a_long_message_is_wrapped_and_what_git_says_is_made_safe() -> None:
    subject = "\x1b[2Jgone " + "x" * 100
    run = replace(_RUN, commit=replace(_RUN.commit, subject=subject))
    cell = _failed("naive", Status.BUILD_FAILED, "naive.cpp:3: \x07no such header " * 6)
    text = _render(run_table(run, [cell]))
    assert "\x1b" not in text
    assert "\x07" not in text
    assert " ".join(text.split()).count("no such header") == 6


def test_only_the_status_word_is_coloured() -> None:
    line = run_table(_RUN, [_PASSED])[6]
    assert line.endswith("1/1  " + click.style("✓ passed", fg="green"))
    assert line.count("\x1b") == 2


def test_stale_bounds_are_said_once_a_case_and_bounds_that_never_were_are_not() -> None:
    stale = replace(_PASSED, identity=(("bounds", "stale"),))
    cells = [
        stale,
        replace(stale, variant="naive"),
        replace(stale, case="odd"),
        replace(_PASSED, case="never", identity=(("bounds", "not frozen"),)),
        replace(stale, case="none", status=Status.SKIPPED),
    ]
    text = " ".join(_render(run_table(_RUN, cells)).split())
    assert "bounds of cases: 2 are stale (the reference or the case changed since): " in text
    assert "bounds of cases" not in _render(run_table(_RUN, [_PASSED, cells[3]]))


def test_the_name_of_a_variant_is_not_cut_for_blanks() -> None:
    torn = replace(
        _PASSED,
        variant="torch_eager",
        latency=latency_of([2e4, 1.4e5, 3e6], sample_count=30),
    )
    wrong = _failed("naive", Status.WRONG_VALUES, "error 3.1 above the bound 4.4e-04")
    cells = [replace(each, case=case) for each in (torn, wrong) for case in ("small", "large")]
    text = _render(run_table(_RUN, cells))
    assert text.count("\n  torch_eager small ! ") == 1
    assert "✗ wrong values" in text
