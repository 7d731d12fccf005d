"""Which variants are loaded to further places, how often, and what a copy that fails is.

On the CPU, where a pass makes no copies: what makes them is the same.
"""

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
import scratch
import torch
from subjects import build_subject

from perfci.checking.check import draw
from perfci.entry import load_entry
from perfci.workers import copies as made
from perfci.workers import side as sides_made
from perfci.workers.copies import COPIES, Copies
from perfci.workers.isolation import own_modules
from perfci.workers.side import Side

_TELLS_LOADS = (
    "#include <cstdio>\n"
    "static const bool told = [] {\n"
    '  if (FILE *file = fopen("FOLDER/loads", "a")) fputs("NAME", file), fclose(file);\n'
    "  return true;\n"
    "}();\n"
)
_FAILS_THIRD = scratch.body(
    '  FILE *file = fopen("FOLDER/loads", "r");\n'
    "  int loads = 0;\n"
    "  for (int each; file && (each = fgetc(file)) != EOF;) loads += each == 'b';\n"
    "  if (file) fclose(file);\n"
    '  if (loads > 3) return perfci_fail(call, "no more");'
)
_OFFSETS = "from perfci_test_offsets import OFFSET\n\n\ndef run(x, a, b):\n    return OFFSET\n"


def _sides(root: Path, *texts: str) -> list[Side]:
    """A side for each text of a C++ variant, of libraries named a, b and so on."""
    return [
        _side(root / name, (_TELLS_LOADS + text).replace("FOLDER", str(root)).replace("NAME", name))
        for name, text in zip("ab", texts, strict=False)
    ]


def _side(root: Path, text: str, kind: str = "cpp") -> Side:
    scratch.write_kernel(root, **{f"variant__{kind}": text})
    built, subject = build_subject(root)
    side = Side(number=0, build=built, subject=subject)
    side.lay_out([draw(subject, seed) for seed in (1, 2)])
    return side


def _loads(root: Path) -> str:
    return (root / "loads").read_text()


def test_a_library_is_loaded_to_as_many_places_each_with_its_state(tmp_path: Path) -> None:
    counts = scratch.body("static int calls = 0; ++calls;").replace("+ b;", "+ b * 0 + calls;")
    (side,) = _sides(tmp_path, counts.replace("a * ", "0 * "))
    Copies("cpu").add([side], nullcontext)
    assert len(side.places) == COPIES
    seen = []
    for place in side.places:
        place.calls[0]()
        seen.append(place.outputs[0].tensors[0].flatten()[0].item())
    assert seen == [1.0] + [2.0] * (COPIES - 1)  # a copy has been called once where it was loaded
    assert side.build.library is not None
    assert not list(side.build.library.parent.glob(".again*"))


@pytest.mark.parametrize(("small_bytes", "count"), [(10**6, COPIES), (0, 1)])
def test_each_place_writes_elsewhere_where_that_is_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_bytes: int, count: int
) -> None:
    monkeypatch.setattr(sides_made, "_SMALL_BYTES", small_bytes)
    (side,) = _sides(tmp_path, scratch.PLAIN)
    Copies("cpu").add([side], nullcontext)
    written = {place.calls[0]()[0].data_ptr() for place in side.places}
    assert len(written) == count
    assert written == {place.outputs[0].tensors[0].data_ptr() for place in side.places}


def test_sides_take_turns_and_the_next_cell_has_the_same_copies(tmp_path: Path) -> None:
    sides, copies = _sides(tmp_path, scratch.PLAIN, scratch.PLAIN), Copies("cpu")
    for _ in range(2):
        copies.add(sides, nullcontext)
        assert _loads(tmp_path) == "ab" * COPIES
        assert [len(side.places) for side in sides] == [COPIES] * 2
        for side in sides:
            del side.places[1:]


def test_what_cannot_be_had_so_often_is_had_as_often_by_both(tmp_path: Path) -> None:
    sides = _sides(tmp_path, scratch.PLAIN, _FAILS_THIRD)
    Copies("cpu").add(sides, nullcontext)
    assert [len(side.places) for side in sides] == [3, 3]
    assert _loads(tmp_path) == "abababab"


def test_what_takes_long_to_load_has_fewer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(made, "_MOST_S", 0.0)
    (side,) = _sides(tmp_path, scratch.PLAIN)
    Copies("cpu").add([side], nullcontext)
    assert len(side.places) == 2


def test_each_side_is_loaded_again_among_modules_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(made, "is_compiled_as_it_is", lambda _: True)
    sides = []
    for name, offset in (("a", 1.0), ("b", 2.0)):
        folder = tmp_path / name / "beside"
        folder.mkdir(parents=True)
        (folder / "perfci_test_offsets.py").write_text(f"OFFSET = {offset}\n")
        text = f"import sys\n\nsys.path.insert(0, {str(folder)!r})\n" + _OFFSETS
        with own_modules():
            sides.append(_side(tmp_path / name, text, "py"))
    Copies("cpu").add(sides, own_modules)
    for side, offset in zip(sides, (1.0, 2.0), strict=True):
        assert {place.calls[0]() for place in side.places} == {offset}
        assert len(side.places) == COPIES


@pytest.mark.parametrize(
    ("kind", "is_triton", "count"),
    [
        ("python", True, COPIES),
        ("python", False, 1),
        ("extension", True, 1),
        ("function", True, 1),
        ("c", False, COPIES),
    ],
)
def test_what_may_choose_anew_or_be_registered_once_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, is_triton: bool, count: int
) -> None:
    """Triton is not where there is no GPU: tests/perfci/binary/test_jit.py says what has it."""
    monkeypatch.setattr(made, "is_compiled_as_it_is", lambda _: is_triton)
    monkeypatch.setattr(made, "load_again", lambda _: load_entry(built))
    side = _side(tmp_path, scratch.EAGER, "py")
    built = side.build
    side.build = replace(built, variant=replace(built.variant, kind=kind))
    Copies("cpu").add([side], nullcontext)
    assert len(side.places) == count
    assert all(isinstance(place.calls[0](), torch.Tensor) for place in side.places)
