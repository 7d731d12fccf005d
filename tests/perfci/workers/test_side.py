"""What is kept of one side to be judged once all timers have read, and how much of it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
import scratch
import torch
from subjects import build_subject
from torch import Tensor

from perfci.checking.check import WrongError, draw
from perfci.checking.recheck import judge_alone, judge_left
from perfci.timers import Reader, Workload
from perfci.workers import side as laid_out
from perfci.workers.side import Side

SEEDS = (1, 2)


def _side(root: Path, *, text: str = scratch.EAGER, kind: str = "py") -> Side:
    scratch.write_kernel(root, **{f"variant__{kind}": text})
    built, subject = build_subject(root)
    side = Side(number=0, build=built, subject=subject)
    side.lay_out([draw(subject, seed) for seed in SEEDS])
    return side


def _reader(*replays: Callable[[], object]) -> Reader:
    return Reader(call=lambda: None, read=lambda: [1.0], replays=replays)


def test_what_is_judged_is_called_where_a_timer_has_read(tmp_path: Path) -> None:
    """Though another timer comes after it, whose calls are made where they are: there too."""
    side = _side(tmp_path)
    assert [each.where for each in side.places_as_read()] == [nullcontext]
    side.keep_left(replace(_reader(), where=[suppress]))
    side.keep_left(_reader())
    (first,) = side.places
    assert side.places_as_read() == [replace(first, where=suppress), first]


@pytest.mark.parametrize("remembers_inside", [True, False])
def test_what_answers_from_memory_where_one_timer_reads_is_found(
    tmp_path: Path, remembers_inside: bool
) -> None:
    """By the address of its input, on the streams of one timer or on the stream of another."""
    side, inside, known = _side(tmp_path), [False], dict[int, Tensor]()

    @contextmanager
    def where() -> Iterator[None]:
        inside[:] = [True]
        yield
        inside[:] = [False]

    def call(index: int, honest: Callable[[], Tensor]) -> Tensor:
        if inside != [remembers_inside]:
            return honest()
        return known.setdefault(index, honest()).clone()

    (place,) = side.places
    calls = [partial(call, index, honest) for index, honest in enumerate(place.calls)]
    side.places[:] = [replace(place, calls=calls)]
    side.keep_left(replace(_reader(), where=[where]))
    for each in calls:
        each()
        with where():
            each()
    with pytest.raises(WrongError):
        judge_alone(side.subject, side.places_as_read())


@pytest.mark.parametrize("wrong_at", [None, *range(8)])
def test_each_graph_is_judged_by_what_it_writes_alone(tmp_path: Path, wrong_at: int | None) -> None:
    side = _side(tmp_path)
    memory = torch.empty_like(side.templates[0])

    def replay(index: int) -> object:
        memory.copy_(side.places[0].calls[0]())
        return memory.fill_(float("nan")) if index == wrong_at else memory

    side.keep_left(_reader(*(lambda index=index: replay(index) for index in range(8))))
    assert len(side.left) == 8
    if wrong_at is None:
        judge_left(side.subject, side.left, SEEDS[0])
        return
    with pytest.raises(WrongError):
        judge_left(side.subject, side.left, SEEDS[0])


def test_of_large_outputs_a_graph_is_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(laid_out, "_LEFT_BYTES", 0)
    side, chosen = _side(tmp_path), set()
    for _ in range(100):
        side.keep_left(_reader(*(lambda index=index: chosen.add(index) for index in range(8))))
    assert len(side.left) == 100
    assert chosen == set(range(8))


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.uint8, torch.bool])
def test_what_a_graph_returned_is_wiped_whatever_it_is_made_of_but_inputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype
) -> None:
    """Or a graph that computes nothing would pass by what was there when it was captured."""
    opened: list[Workload] = []

    def open_reader(workload: Workload) -> Reader:
        opened.append(workload)
        return _reader()

    monkeypatch.setattr(laid_out, "timer", lambda _: SimpleNamespace(open_reader=open_reader))
    side, returned = _side(tmp_path), torch.zeros(4, dtype=dtype)
    side.open_reader("cuda_hot")
    x = side.places[0].arguments[0]["x"]
    assert isinstance(x, Tensor)
    before = x.clone()
    opened[0].poison((returned, x[1:]))
    assert bool((returned != 0).all())
    assert torch.equal(x, before)


@pytest.mark.parametrize(
    ("text", "kind", "count"), [(scratch.EAGER, "py", 0), (scratch.PLAIN, "cpp", 1)]
)
def test_what_no_graph_writes_is_judged_where_it_lies(
    tmp_path: Path, text: str, kind: str, count: int
) -> None:
    side = _side(tmp_path, text=text, kind=kind)
    side.places[0].calls[0]()
    side.keep_left(_reader())
    side.places[0].outputs[0].poison()
    assert len(side.left) == count
    judge_left(side.subject, side.left, SEEDS[0])
