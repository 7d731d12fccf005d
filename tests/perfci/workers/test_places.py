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

from perfci.build import Build
from perfci.checking.check import draw
from perfci.checking.inputs import Arguments
from perfci.entry import Entry, load_entry
from perfci.workers import places as made
from perfci.workers.isolation import own_modules
from perfci.workers.places import PLACES, Places
from perfci.workers.side import Side, SideError

SEEDS = (1, 2)
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
    side.lay_out([draw(subject, seed) for seed in SEEDS])
    return side


def _loads(root: Path) -> str:
    return (root / "loads").read_text()


def test_a_library_is_loaded_to_as_many_places_each_with_its_state(tmp_path: Path) -> None:
    counts = scratch.body("static int calls = 0; ++calls;").replace("+ b;", "+ b * 0 + calls;")
    (side,) = _sides(tmp_path, counts.replace("a * ", "0 * "))
    Places("cpu").add([side], SEEDS, nullcontext)
    assert len(side.places) == PLACES
    seen = []
    for place in side.places:
        place.calls[0]()
        seen.append(place.outputs[0].tensors[0].flatten()[0].item())
    assert seen == [1.0] + [2.0] * (PLACES - 1)  # a copy has been called once where it was loaded
    assert side.build.library is not None
    assert not list(side.build.library.parent.glob(".again*"))


def test_what_is_small_lies_elsewhere_in_each_place_and_for_both_sides_in_the_same(
    tmp_path: Path,
) -> None:
    sides = _sides(tmp_path, scratch.PLAIN, scratch.PLAIN)
    shared = sides[0].places[0].arguments
    sides[1].places[0] = replace(sides[1].places[0], arguments=shared)
    Places("cpu").add(sides, SEEDS, nullcontext)
    inputs, outputs = ([_addresses(side, what) for side in sides] for what in (0, 1))
    assert inputs[0] == inputs[1]
    assert outputs[0][1:] == outputs[1][1:]
    assert outputs[0][0] != outputs[1][0]  # where what is left is judged
    for each in (*inputs, *outputs):
        assert len(set(each)) == PLACES
    for side in sides:
        contents = [place.arguments[1]["x"] for place in side.places]
        assert all(torch.equal(each, contents[0]) for each in contents)


def _addresses(side: Side, what: int) -> list[int]:
    """Where the first set's input lies, or its output, in each place."""
    return [
        (place.arguments[0]["x"], place.outputs[0].tensors[0])[what].data_ptr()
        for place in side.places
    ]


@pytest.mark.parametrize(("kind", "count"), [("c", PLACES), ("function", 1)])
def test_what_is_large_lies_in_one_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, count: int
) -> None:
    monkeypatch.setattr(made, "_SMALL_BYTES", 0)
    (side,) = _sides(tmp_path, scratch.PLAIN)
    side.build = replace(side.build, variant=replace(side.build.variant, kind=kind))
    Places("cpu").add([side], SEEDS, nullcontext)
    assert len(side.places) == count
    assert len(set(_addresses(side, 0))) == len(set(_addresses(side, 1))) == 1


def test_sides_take_turns_and_the_next_cell_has_the_same_copies(tmp_path: Path) -> None:
    sides, places = _sides(tmp_path, scratch.PLAIN, scratch.PLAIN), Places("cpu")
    for _ in range(2):
        places.add(sides, SEEDS, nullcontext)
        assert _loads(tmp_path) == "ab" * PLACES
        assert [len(side.places) for side in sides] == [PLACES] * 2
        for side in sides:
            del side.places[1:]


def test_what_cannot_be_had_so_often_is_had_as_often_by_both(tmp_path: Path) -> None:
    sides = _sides(tmp_path, scratch.PLAIN, _FAILS_THIRD)
    Places("cpu").add(sides, SEEDS, nullcontext)
    assert [len(side.places) for side in sides] == [3, 3]
    assert _loads(tmp_path) == "abababab"


@pytest.mark.parametrize("kind", ["c", "function"])
def test_where_memory_ends_there_are_as_many_places_of_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    sides = _sides(tmp_path, scratch.PLAIN, scratch.PLAIN)
    for side in sides:
        side.build = replace(side.build, variant=replace(side.build.variant, kind=kind))
    drawn: list[int] = []

    def make_inputs(**given: object) -> Arguments:
        drawn.append(0)
        if len(drawn) > 5:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 MiB")
        return sides[1].subject.reference.make_inputs(**given)

    reference = replace(sides[0].subject.reference, make_inputs=make_inputs)
    sides[0].subject = replace(sides[0].subject, reference=reference)
    Places("cpu").add(sides, SEEDS, nullcontext)
    assert [len(side.places) for side in sides] == [3, 3]


def test_inputs_that_cannot_be_made_again_are_no_shortage(tmp_path: Path) -> None:
    (side,) = _sides(tmp_path, scratch.PLAIN)

    def make_inputs(**_: object) -> Arguments:
        raise ValueError("none left")

    reference = replace(side.subject.reference, make_inputs=make_inputs)
    side.subject = replace(side.subject, reference=reference)
    with pytest.raises(SideError, match="none left"):
        Places("cpu").add([side], SEEDS, nullcontext)


def test_what_takes_long_to_load_has_fewer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(made, "_MOST_S", 0.0)
    (side,) = _sides(tmp_path, scratch.PLAIN)
    Places("cpu").add([side], SEEDS, nullcontext)
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
    Places("cpu").add(sides, SEEDS, own_modules)
    for side, offset in zip(sides, (1.0, 2.0), strict=True):
        assert {place.calls[0]() for place in side.places} == {offset}
        assert len(side.places) == PLACES


@pytest.mark.parametrize(
    ("kind", "is_triton", "count"),
    [
        ("python", True, PLACES),
        ("python", False, 1),
        ("extension", True, 1),
        ("function", True, 1),
        ("c", False, PLACES),
    ],
)
def test_what_may_choose_anew_or_be_registered_once_is_loaded_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, is_triton: bool, count: int
) -> None:
    """Triton is not where there is no GPU: tests/perfci/binary/test_jit.py says what has it."""
    loaded: list[Entry] = []

    def load(_: Build) -> Entry:
        loaded.append(load_entry(built))
        return loaded[-1]

    monkeypatch.setattr(made, "is_compiled_as_it_is", lambda _: is_triton)
    monkeypatch.setattr(made, "load_again", load)
    side = _side(tmp_path, scratch.EAGER, "py")
    built = side.build
    side.build = replace(built, variant=replace(built.variant, kind=kind))
    Places("cpu").add([side], SEEDS, nullcontext)
    assert len(loaded) == count - 1
    assert len(set(_addresses(side, 0))) == PLACES
    assert all(isinstance(place.calls[0](), torch.Tensor) for place in side.places)
