from dataclasses import replace

import click

from perfci.history.model import Comparison, SeriesKey, Verdict
from perfci.reports.columns import WIDTH, measure
from perfci.reports.comparison import comparison_table


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

the noise is assumed, not measured: perfci noise studies it

6 cells: 1 incorrect, 1 slower, 1 missing, 1 inconclusive, 1 faster, 1 unchanged"""
    )


def test_what_would_show_only_tenfold_would_not_show() -> None:
    noisy = _comparison(Verdict.INCONCLUSIVE, "noisy", 1.04, "why")
    text = _render(comparison_table([replace(noisy, smallest_visible_change=7.1e77)]))
    assert "    why; nothing would have shown\n" in text


def test_of_a_suspected_change_it_is_not_said_what_would_have_shown() -> None:
    reason = "suspected, not confirmed: 6 more passes decide"
    suspected = _comparison(Verdict.INCONCLUSIVE, "slow", 1.1, reason)
    text = _render(comparison_table([replace(suspected, smallest_visible_change=None)]))
    assert f"? inconclusive · rope/slow/headline cpu/1\n    {reason}\n\n" in text


def test_every_kernel_contract_and_testbed_has_its_table() -> None:
    here = _comparison(Verdict.UNCHANGED, "same", 1.0)
    there = replace(here, key=replace(here.key, testbed="other", contract="cuda_cold/1"))
    text = _render(comparison_table([here, there]))
    assert "rope · cpu/1 · bench · Some CPU\n" in text
    assert "rope · cuda_cold/1 · other · Some CPU\n" in text
    assert text.endswith("\n\n2 unchanged")


def test_passes_that_held_both_sides_are_named() -> None:
    paired = replace(_comparison(Verdict.UNCHANGED, "same", 1.0), paired_passes=12, is_studied=True)
    text = _render(comparison_table([paired]))
    assert text.startswith("rope · cpu/1 · bench · Some CPU · paired, 12 passes\n")
    assert "assumed" not in text


def test_of_some_cells_the_noise_is_assumed() -> None:
    here = _comparison(Verdict.UNCHANGED, "same", 1.0)
    studied = replace(here, key=replace(here.key, variant="other"), is_studied=True)
    missing = _comparison(Verdict.MISSING, "gone", None, "no contender")
    text = _render(comparison_table([here, studied, missing]))
    assert "\nthe noise of 1 of 2 cells is assumed, not measured: perfci noise studies it\n" in text


def test_comparison_of_nothing_says_so() -> None:
    assert _render(comparison_table([])) == "  (none)\n\nnothing compared"


def test_anchors_stand_apart_and_are_not_counted() -> None:
    def anchor(kernel: str, ratio: float, verdict: Verdict) -> Comparison:
        one = _comparison(verdict, "torch", ratio)
        return replace(one, key=replace(one.key, kernel=kernel, case="memory"))

    anchors = [
        anchor("perfci_copy", 1.082, Verdict.REGRESSION),
        anchor("perfci_product", 1.001, Verdict.UNCHANGED),
        anchor("perfci_empty", 0.8, Verdict.IMPROVEMENT),
    ]
    same = _comparison(Verdict.UNCHANGED, "same", 1.0)
    text = _render(comparison_table([same], anchors))
    assert text.partition("= unchanged\n\n")[2] == (
        """\
this machine: anchors · bench · Some CPU
  anchor   case    timer  baseline   change          interval
  copy     memory  cpu/1   12.3 µs   +8.2 %   [+6.0, +10.4] %
  product  memory  cpu/1   12.3 µs   +0.1 %    [−1.9, +2.1] %
  empty    memory  cpu/1   12.3 µs  −20.0 %  [−21.6, −18.4] %

the machine itself moved: perfci_empty/memory cpu/1 −20.0 %, and 1 more

the noise is assumed, not measured: perfci noise studies it

1 unchanged"""
    )
    assert "moved" not in _render(comparison_table([same], anchors[1:2]))
