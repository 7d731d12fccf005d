"""Which variants are loaded to further places, and that these are the same code once more."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
import scratch
import torch

from perfci.build import Build, build
from perfci.config import load_config
from perfci.entry import load_entry
from perfci.kernel import discover
from perfci.workers.copies import COPIES, load_copies
from perfci.workers.side import Side, SideError
from perfci.workers.worker import _call_copies

_COUNTS = scratch.body("static int calls = 0; ++calls;").replace("+ b;", "+ calls;")


def _built(root: Path, **variant: str) -> Build:
    scratch.write_kernel(root, **variant)
    config = load_config(root, environment={}, cache=str(root / "cache"))
    (kernel,) = discover(config.kernels)
    (built,) = build(kernel.variants, config)
    return built


def test_a_library_is_loaded_to_as_many_places_each_with_its_state(tmp_path: Path) -> None:
    built = _built(tmp_path, counts__cpp=_COUNTS)
    entry = load_entry(built)
    x, y = torch.ones(1), torch.zeros(1)
    entries = [entry, *load_copies(built, entry)]
    calls = [each.bind({"x": x, "a": 0.0, "b": 0.0}, [y]) for each in entries]
    seen = []
    for call in [calls[0], *calls]:
        call()
        seen.append(y.item())
    assert seen == [1.0, 2.0] + [1.0] * (COPIES - 1)
    assert built.library is not None
    assert not list(built.library.parent.glob(".again*"))


@pytest.mark.parametrize("kind", ["python", "extension", "function"])
def test_what_may_choose_anew_or_be_registered_once_is_not(tmp_path: Path, kind: str) -> None:
    built = _built(tmp_path, variant__py=scratch.EAGER)
    of_kind = replace(built, variant=replace(built.variant, kind=kind))
    assert load_copies(of_kind, load_entry(built)) == []


def _side(name: str, count: int, called: list[str], fails_at: int = -1) -> Side:
    def copy(number: int) -> Callable[[], None]:
        def call() -> None:
            called.append(f"{name}{number}")
            if number == fails_at:
                raise ValueError(name)

        return call

    unused: Any = None
    side = Side(number=0, build=unused, subject=unused)
    side.copies = [[copy(number), cast("Any", unused)] for number in range(count)]
    return side


@pytest.mark.parametrize(
    ("counts", "told"),
    [((3, 3), "a0 b0 a1 b1 a2 b2"), ((2, 0), "a0 a1"), ((1, 3), "a0 b0 b1 b2"), ((2,), "a0 a1")],
)
def test_sides_take_turns_at_the_first_calls_of_their_copies(
    counts: tuple[int, ...], told: str
) -> None:
    called: list[str] = []
    _call_copies([_side(*each, called) for each in zip("ab", counts, strict=False)])
    assert " ".join(called) == told


def test_a_copy_that_fails_at_its_first_call_is_its_sides_fault() -> None:
    called: list[str] = []
    sides = [_side("a", 2, called), _side("b", 2, called, fails_at=1)]
    with pytest.raises(SideError) as raised:
        _call_copies(sides)
    assert raised.value.side is sides[1]
