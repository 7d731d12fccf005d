import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfci.reports.columns import WIDTH, Column, lay_out, measure, shorten, wrap

_COLUMNS = (Column("name", shrinks=True), Column("latency", align="right"), Column("status"))


def test_columns_lean_to_their_side() -> None:
    rows = [("rope", "12.3 µs", "✓ passed"), ("attention", "–", "✗ timeout")]
    assert lay_out(_COLUMNS, rows) == [
        "  name       latency  status",
        "  rope       12.3 µs  ✓ passed",
        "  attention        –  ✗ timeout",
    ]


def test_no_rows_say_so() -> None:
    assert lay_out(_COLUMNS, []) == ["  (none)"]


def test_a_long_name_loses_its_middle_and_nothing_moves() -> None:
    name = "kernel_" + "x" * 90 + "_version_2"
    lines = lay_out(_COLUMNS, [(name, "12.3 µs", "✓ passed"), ("rope", "1.00 s", "✓ passed")])
    assert [measure(line) for line in lines] == [78, 80, 80]
    assert lines[1].startswith("  kernel_xxx")
    assert "…" in lines[1]
    assert "_version_2  12.3 µs" in lines[1]


def test_a_name_is_cut_after_all_else_has_made_room() -> None:
    columns = (Column("variant", names=True), Column("case", shrinks=True), Column("status"))
    name, status = "torch_eager_of_some_length", "✓ passed"
    narrow = lay_out(columns, [(name, "a_case_of_some_length", status)], width=58)
    assert narrow[1] == f"  {name} a_case_of_…me_length {status}"
    (_, narrowest) = lay_out(columns, [(name, "a_case_of_some_length", status)], width=40)
    assert narrowest == "  torch_eager…ome_length a_c…th ✓ passed"


def test_a_column_that_gives_way_is_left_out_where_there_is_no_room() -> None:
    columns = (Column("run"), Column("started", gives_way=True), Column("failed"))
    rows = [("20260301T140500", "2026-03-01 14:05Z", "0 of 1")]
    assert lay_out(columns, rows, width=44)[1] == "  20260301T140500  2026-03-01 14:05Z  0 of 1"
    assert lay_out(columns, rows, width=43)[1] == "  20260301T140500  0 of 1"


def test_wide_and_joining_characters_are_counted_by_the_cells_they_take() -> None:
    assert measure("核函数") == 6
    assert measure("e\u0301\u200b") == 1
    lines = lay_out(_COLUMNS, [("核函数", "1.00 s", "✓ passed"), ("e\u0301", "1.00 s", "✓ passed")])
    assert lines[1] == "  核函数   1.00 s  ✓ passed"
    assert lines[2] == "  e\u0301        1.00 s  ✓ passed"
    assert measure(lines[1]) == measure(lines[2])


def test_control_characters_do_not_reach_the_terminal() -> None:
    lines = lay_out(_COLUMNS, [("a\x1b[31mred\n\u202eb", "1.00 s", "✓ passed")])
    assert lines[1] == "  a\ufffd[31mred \ufffdb   1.00 s  ✓ passed"


def test_shorten() -> None:
    assert shorten("abcdefghij", 10) == "abcdefghij"
    assert shorten("abcdefghijk", 10) == "abcde…hijk"
    assert shorten("核核核核", 6) == "核…核"


def test_wrap_breaks_at_blanks_and_within_long_words() -> None:
    assert wrap("one two three", indent=2, width=9) == ["  one two", "  three"]
    assert wrap("a " + "b" * 12, indent=1, width=6) == [" a", " bbbbb", " bbbbb", " bb"]
    assert wrap("", indent=2) == []


@given(st.text(), st.integers(1, 30))
def test_shorten_never_exceeds_its_width(text: str, width: int) -> None:
    assert measure(shorten(text, width)) <= width


@given(st.text(max_size=300))
def test_wrap_never_exceeds_the_screen(text: str) -> None:
    assert all(measure(line) <= WIDTH for line in wrap(text, indent=4))


@given(st.lists(st.tuples(st.text(), st.just("12.3 µs"), st.just("✓ passed")), min_size=1))
def test_untrusted_names_never_misalign(rows: list[tuple[str, str, str]]) -> None:
    first, *others = (measure(line) for line in lay_out(_COLUMNS, rows)[1:])
    assert first <= WIDTH
    assert all(other == first for other in others)


@pytest.mark.parametrize(
    "amount", ["9 s", "1 m 49 s", "2 h 5 m", "+3.2 %", "12.3 µs", "[+1.0, 2] %"]
)
def test_a_line_does_not_end_between_a_number_and_its_unit(amount: str) -> None:
    kept = amount.rpartition(", ")[2]
    for fill in range(20):
        lines = wrap(f"{'x' * fill} {amount}; and more", indent=0, width=20)
        assert any(kept in line for line in lines)
        assert " ".join(lines) == f"{'x' * fill} {amount}; and more".strip()


def test_a_line_may_end_at_other_blanks_after_a_number() -> None:
    assert wrap("of 12 passes", indent=0, width=8) == ["of 12", "passes"]
    assert wrap("of 12 months", indent=0, width=8) == ["of 12", "months"]
