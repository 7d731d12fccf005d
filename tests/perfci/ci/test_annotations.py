"""Red cells on the changed lines of their kernels."""

import gates
import pytest
import rulings
from gates import comparison

from perfci.ci.annotations import Lines, annotate, find_lines
from perfci.history.model import Verdict

_PATCH = """@@ -1,4 +1,5 @@ def f(x):
 one
-two
+zwei
+zweieinhalb
 three
@@ -40,2 +41,3 @@
 forty
+later
"""


@pytest.mark.parametrize(
    ("patch", "lines"),
    [
        (_PATCH, (2, 3)),
        ("@@ -0,0 +1,3 @@\n+a\n+b\n+c", (1, 3)),
        ("@@ -1,3 +0,0 @@\n-a\n-b\n-c", None),
        ("@@ -5 +7 @@\n-a\n+b\n\\ No newline at end of file", (7, 7)),
        ("@@ -1,2 +1 @@\n one\n-two\n@@ -9 +8,2 @@\n nine\n+ten", (9, 9)),
        ("@@ -1,2 +1,2 @@\n a\f\n-b\n+c\x85@@ -1 +900 @@", (2, 2)),
        ("", None),
        ("no patch at all", None),
        ("+a line before any hunk", None),
    ],
)
def test_the_first_added_lines_are_found(patch: str, lines: tuple[int, int] | None) -> None:
    found = find_lines("a.py", patch)
    assert found == (None if lines is None else Lines(path="a.py", first=lines[0], last=lines[1]))


def test_a_variant_is_annotated_once_in_its_own_file() -> None:
    slower = [
        comparison(Verdict.REGRESSION, "tiled"),
        comparison(Verdict.INCORRECT, "other", reason="wrong values"),
        comparison(Verdict.UNCHANGED, "fine"),
    ]
    ruling = rulings.ruling(
        *(rulings.gated(each, slower) for each in rulings.RUNNERS), runners=rulings.RUNNERS
    )
    changed = [
        ("README.md", _PATCH),
        ("src/kernels/rope/common.cuh", "@@ -1 +1,2 @@\n a\n+b"),
        ("src/kernels/rope/tiled.cu", _PATCH),
        ("src/kernels/rope/fine.cu", _PATCH),
    ]
    worst, slow = annotate(ruling, changed, kernels="src/kernels")
    assert (worst["path"], worst["start_line"]) == ("src/kernels/rope/common.cuh", 2)
    assert worst["title"] == "rope/other: 2 incorrect"
    assert "✗ incorrect; wrong values" in worst["message"]
    assert (slow["path"], slow["start_line"], slow["end_line"]) == (
        "src/kernels/rope/tiled.cu", 2, 3
    )  # fmt: skip
    assert slow["annotation_level"] == "failure"
    assert slow["message"].splitlines()[0] == (
        "headline cpu/1 on a100: ▲ slower +10.0 % [+8.0, +12.0] %"
    )
    assert len(slow["message"].splitlines()) == 2


def test_a_kernel_that_is_not_changed_has_no_lines_to_annotate() -> None:
    ruling = rulings.ruling(rulings.red("h200"))
    changed = [("kernels/rope2/tiled.py", _PATCH), ("kernels/ropes.py", _PATCH), ("a.py", _PATCH)]
    assert annotate(ruling, changed, kernels="kernels") == []


def test_what_is_accepted_or_green_is_not_annotated() -> None:
    slower = gates.comparison(Verdict.REGRESSION)
    parcel = rulings.gated("h200", [slower], accepted=frozenset({slower.key}))
    ruling = rulings.ruling(parcel, rulings.green("a100"))
    assert annotate(ruling, [("kernels/rope/tiled.py", _PATCH)], kernels="kernels") == []


def test_many_cells_are_told_in_a_few_lines() -> None:
    cells = [comparison(Verdict.REGRESSION, "tiled") for _ in range(50)]
    ruling = rulings.ruling(rulings.gated("h200", cells))
    (note,) = annotate(ruling, [("kernels/rope/tiled.py", _PATCH)], kernels="kernels")
    assert len(note["message"].splitlines()) == 21
    assert note["message"].endswith("and 30 more")
