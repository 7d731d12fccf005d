from pathlib import Path

import click

from perfci.reports.columns import WIDTH, measure
from perfci.reports.inspections import inspection_table
from perfci.tools.sanitizer import OPTIONS, Inspection, State

_LOGS = Path("cache/sanitizer/20260301T140500-4f1c")


def _row(variant: str, tool: str, case: str, state: State, **more: object) -> Inspection:
    values = {"kernel": "rope", "variant": variant, "tool": tool, "case": case, "state": state}
    return Inspection(**{**values, **more})  # type: ignore[arg-type]


def _clean(variant: str, *tools: str) -> list[Inspection]:
    cases = ("one", "odd")
    return [_row(variant, tool, case, State.CLEAN) for tool in tools for case in cases]


_ROWS = [
    *_clean("tiled", *OPTIONS),
    *_clean("with_a_name_that_leaves_no_room_for_columns", "initcheck", "synccheck"),
    _row(
        "with_a_name_that_leaves_no_room_for_columns",
        "memcheck",
        "odd",
        State.FOUND,
        count=1234,
        message="Invalid __global__ read of size 4 bytes, at rope(float *)+0x100 in rope.cu:39, "
        "by thread (0,0,0) in block (1,0,0), Address 0x7cc43a800400 is out of bounds",
    ),
    _row(
        "with_a_name_that_leaves_no_room_for_columns",
        "racecheck",
        "",
        State.UNPROVED,
        message="Internal Sanitizer Error: it could not follow",
    ),
    _row("broken", "build", "", State.FAILED, message="rope.cu(3): error: no\nand more"),
    _row("tiled", "", "double", State.SKIPPED, message="declared for float32 only"),
]


def test_variants_stand_by_tools_and_what_was_found_below_them() -> None:
    lines = inspection_table(_ROWS, _LOGS)
    assert all(measure(click.unstyle(line)) <= WIDTH for line in lines)
    assert click.unstyle("\n".join(lines)) == (
        """\
rope
  variant                       cases  memcheck  initcheck  synccheck  racecheck
  tiled                             2  ✓         ✓          ✓          ✓
  with_a_name_th…m_for_columns      2  ✗ 1,234   ✓          ✓          ?
  broken                            0  –         –          –          –

✗ memcheck found 1,234 · rope/with_a_name_that_leaves_no_room_for_columns/odd
    Invalid __global__ read of size 4 bytes, at rope(float *)+0x100 in
    rope.cu:39, by thread (0,0,0) in block (1,0,0), Address 0x7cc43a800400 is
    out of bounds
? racecheck unproved · rope/with_a_name_that_leaves_no_room_for_columns
    Internal Sanitizer Error: it could not follow
✗ build failed · rope/broken
    rope.cu(3): error: no

variants by tools: 6 clean, 1 with findings, 1 unproved, 4 not run
logs: cache/sanitizer/20260301T140500-4f1c"""
    )


def test_symbols_have_a_colour_each_and_words_have_none() -> None:
    lines = inspection_table(_ROWS, _LOGS)
    assert lines[2].count(click.style("✓", fg="green")) == 4
    assert click.style("✗ 1,234", fg="red") in lines[3]
    assert lines[3].endswith(click.style("?", fg="magenta"))
    assert lines[4].count(click.style("–", fg="yellow")) == 4
    assert lines[4].startswith("  broken  ")


def test_a_clean_table_has_no_reasons() -> None:
    lines = inspection_table(_clean("tiled", *OPTIONS), _LOGS)
    assert lines[3:] == ["", "variants by tools: 4 clean", f"logs: {_LOGS}"]
