"""A variant that answers from memory when it is timed is found out, and an honest one never."""

import json
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import scratch
import torch
from subjects import build_subject
from torch import Tensor

from perfci.checking import recheck
from perfci.checking.check import (
    Subject,
    WrongError,
    changed_input,
    draw,
    find_truth,
    output_templates,
)
from perfci.checking.inputs import Arguments
from perfci.checking.numerics import Truth
from perfci.checking.outputs import GuardedOutputs
from perfci.checking.recheck import Place, find_memory, find_trespass, judge_alone

_CASES = """\
[[bench]]
name = "timed"
tier = "smoke"
count = 4096
"""
_WORK = "torch.stack([a * x + b] * 24).sort(0).values[0]"
_BY_ADDRESS = f"""\
import torch

KNOWN = {{}}
CALLS = []


def run(x, a, b):
    CALLS.append(0)
    if len(CALLS) < 30:
        return {_WORK}
    if x.data_ptr() not in KNOWN:
        KNOWN[x.data_ptr()] = {_WORK}
    return KNOWN[x.data_ptr()]
"""
_BY_CONTENT = f"""\
import torch

KNOWN = {{}}


def run(x, a, b):
    key = x[:8].numpy().tobytes()
    if key not in KNOWN:
        KNOWN[key] = {_WORK}
    return KNOWN[key].clone()
"""
_TIRES = """\
CALLS = []


def run(x, a, b):
    CALLS.append(0)
    return a * x + b if len(CALLS) < 30 else x * 0
"""
_EASES = """\
CALLS = []


def run(x, a, b):
    CALLS.append(0)
    if len(CALLS) > 30 and (len(CALLS) < 150 or ALWAYS):
        x.zero_()
    return a * x + b
"""
_SKIPS_WHAT_IS_THERE = scratch.body(
    "const float *there = (const float *)y->data; if (there[0] == there[0]) return 0;"
)
_HONEST = f"import torch\n\n\ndef run(x, a, b):\n    return {_WORK}\n"


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Any]:
    """The rows of a run by variant and case."""
    root = scratch.quick(tmp_path_factory.mktemp("recheck") / "root", cell_budget_s=0.2)
    scratch.write_kernel(
        root,
        cases__toml=_CASES,
        plain__cpp=scratch.PLAIN,
        skips_what_is_there__cpp=_SKIPS_WHAT_IS_THERE,
        honest__py=_HONEST,
        by_address__py=_BY_ADDRESS,
        by_content__py=_BY_CONTENT,
        tires__py=_TIRES,
        eases__py=_EASES.replace("ALWAYS", "True"),
        eases_at_times__py=_EASES.replace("ALWAYS", "False"),
    )
    out = root / "run.json"
    ended = scratch.call(
        root, "run", "--device", "cpu", "--commit", "abcdef1", "--out", out, "--json"
    )
    assert ended.returncode == 1, ended.stderr
    return scratch.rows(json.loads(ended.stdout))


@pytest.mark.parametrize(
    ("variant", "status", "message"),
    [
        ("plain", "passed", ""),
        ("honest", "passed", ""),
        ("by_address", "wrong_values", "right before the timing, wrong after it"),
        ("by_content", "invalid_timing", "inputs that it has not seen: it remembers outputs"),
        ("skips_what_is_there", "wrong_values", "right before the timing, wrong after it"),
        ("tires", "wrong_values", "right before the timing, wrong after it"),
        ("eases", "wrong_values", "wrong after it: changes its input 'x'"),
        ("eases_at_times", "wrong_values", "wrong after it: changes its input 'x'"),
    ],
)
def test_what_was_timed_is_the_work_of_the_kernel(
    rows: dict[tuple[str, str], Any], variant: str, status: str, message: str
) -> None:
    row = rows[variant, "timed"]
    assert row["status"] == status, row["message"]
    assert message in row["message"]


def _timed(root: Path, *copies: Callable[..., torch.Tensor]) -> tuple[Subject, list[Place]]:
    """An honest variant's sets, and further copies of its code that are something else."""
    scratch.write_kernel(root, cases__toml=_CASES, honest__py=_HONEST)
    _, subject = build_subject(root)
    arguments = [draw(subject, seed) for seed in (1, 2)]
    outputs = [GuardedOutputs(output_templates(subject)) for _ in arguments]
    calls = [
        subject.entry.bind(each, into.tensors)
        for each, into in zip(arguments, outputs, strict=True)
    ]
    others = [[lambda run=run, given=given: run(**given) for given in arguments] for run in copies]
    places = [Place(arguments=arguments, outputs=outputs, calls=each) for each in (calls, *others)]
    return subject, places


def _honest(x: torch.Tensor, a: float, b: float) -> torch.Tensor:
    return torch.stack([a * x + b] * 24).sort(0).values[0]


def _answering_from_memory() -> Callable[..., torch.Tensor]:
    known: dict[bytes, torch.Tensor] = {}

    def run(x: torch.Tensor, a: float, b: float) -> torch.Tensor:
        key = x[:8].numpy().tobytes()
        if key not in known:
            known[key] = _honest(x, a, b)
        return known[key].clone()

    return run


def _elsewhere(subject: Subject, place: Place, seeds: Sequence[int] = (1, 2)) -> Place:
    """The same calls where nothing else is."""
    return replace(
        place,
        arguments=[draw(subject, seed) for seed in seeds],
        outputs=[GuardedOutputs(output_templates(subject)) for _ in seeds],
    )


@pytest.mark.parametrize("at", [None, 0, 1, 2])
def test_a_change_of_an_input_is_found_in_every_place(tmp_path: Path, at: int | None) -> None:
    subject, (first,) = _timed(tmp_path)
    places = [first, _elsewhere(subject, first), _elsewhere(subject, first)]
    if at is not None:
        changed = places[at].arguments[1]["x"]
        assert isinstance(changed, torch.Tensor)
        changed[-1] += 1
    said = find_trespass(subject, places, (1, 2))
    assert said == ("" if at is None else "changes its input 'x'")


def test_inputs_are_drawn_again_one_by_one_and_compared_once_where_places_share_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject, places = _timed(tmp_path, *[_honest] * 7)
    drawn: list[weakref.ref[torch.Tensor]] = []
    compared: list[Arguments] = []

    def draw_one(of: Subject, seed: int) -> Arguments:
        assert all(each() is None for each in drawn)
        arguments = draw(of, seed)
        x = arguments["x"]
        assert isinstance(x, torch.Tensor)
        drawn.append(weakref.ref(x))
        return arguments

    def compare(given: Arguments, kept: Arguments) -> str:
        compared.append(given)
        return changed_input(given, kept)

    monkeypatch.setattr(recheck, "draw", draw_one)
    monkeypatch.setattr(recheck, "changed_input", compare)
    assert find_trespass(subject, places, (1, 2)) == ""
    assert len(drawn) == len(compared) == 2


def test_calls_by_themselves_hold_the_truth_of_one_set_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the largest outputs there is no room for that of two."""
    subject, places = _timed(tmp_path, _honest)
    held: list[weakref.ref[Tensor]] = []

    def find(problem: Subject, arguments: Arguments) -> tuple[Truth, ...]:
        truths = find_truth(problem, arguments)
        held.extend(weakref.ref(each.judge) for each in truths)
        return truths

    def draw_one(problem: Subject, seed: int) -> Arguments:
        assert all(each() is None for each in held)
        return draw(problem, seed)

    monkeypatch.setattr(recheck, "find_truth", find)
    monkeypatch.setattr(recheck, "draw", draw_one)
    judge_alone(subject, places)
    assert len(held) == 2


def test_one_wrong_copy_of_the_code_is_enough(tmp_path: Path) -> None:
    judge_alone(*_timed(tmp_path / "right", *[_honest] * 7))
    wrong = [*[_honest] * 6, lambda x, a, b: a * x + b + 1]
    with pytest.raises(WrongError, match="error"):
        judge_alone(*_timed(tmp_path / "wrong", *wrong))


def _write_beside(place: Place) -> None:
    output = place.outputs[1].tensors[0]
    output.as_strided((1,), (1,), output.storage_offset() + output.numel()).fill_(0.0)


def test_what_was_written_beside_an_output_while_it_was_timed_is_found(tmp_path: Path) -> None:
    subject, places = _timed(tmp_path, _honest)
    judge_alone(subject, places)
    _write_beside(places[0])
    with pytest.raises(WrongError, match="writes outside of its output"):
        judge_alone(subject, places)


def test_what_was_written_beside_outputs_of_both_sides_is_not_blamed_on_either(
    tmp_path: Path,
) -> None:
    subject, (first,) = _timed(tmp_path)
    places = [first, _elsewhere(subject, first), _elsewhere(subject, first)]
    assert find_trespass(subject, places, (1, 2)) == ""
    _write_beside(places[2])
    assert find_trespass(subject, places, (1, 2)) == "writes outside of its output"
    judge_alone(subject, places)


@pytest.mark.parametrize("at", [0, 1])
def test_what_any_call_by_itself_writes_beside_its_output_is_found(tmp_path: Path, at: int) -> None:
    """As the first of two in its place, or in one of two places that share their outputs."""
    subject, (first, _) = _timed(tmp_path, _honest)
    calls = [0, 0, 0]

    def beside(index: int, number: int) -> object:
        calls[number] += 1
        if (number, calls[number]) == (at, 1):
            _write_beside(first)
        return first.calls[index]()

    places = [
        replace(first, calls=[lambda i=index, n=number: beside(i, n) for index in (0, 1)])
        for number in (0, 1, 2)
    ]
    with pytest.raises(WrongError, match="writes outside of its output"):
        judge_alone(subject, places)


def test_calls_are_judged_where_they_were_timed(tmp_path: Path) -> None:
    """What is right elsewhere only is found out, in whichever place, and so is what remembers."""
    inside: list[int] = []

    @contextmanager
    def where(number: int) -> Iterator[None]:
        inside.append(number)
        yield
        inside.remove(number)

    def wrong_inside(x: Tensor, a: float, b: float) -> Tensor:
        return a * x + b + len(inside)

    remembers = _answering_from_memory()

    def remembers_inside(x: Tensor, a: float, b: float) -> Tensor:
        return remembers(x, a, b) if inside else _honest(x, a, b)

    subject, (_, *places) = _timed(tmp_path / "wrong", wrong_inside, wrong_inside)
    judge_alone(subject, places)
    for number, place in enumerate(places):
        there = replace(place, where=partial(where, number))
        with pytest.raises(WrongError, match="error"):
            judge_alone(subject, [*places[:number], there, *places[number + 1 :]])
        inside.clear()
    subject, (_, place) = _timed(tmp_path / "remembers", remembers_inside)
    assert find_memory(subject, [place], 1) == ""
    assert "remembers" in find_memory(subject, [replace(place, where=partial(where, 0))], 1)


def test_a_copy_that_answers_from_memory_is_found(tmp_path: Path) -> None:
    """It is one of several that is looked at in a pass, so it takes a few passes."""
    subject, places = _timed(tmp_path / "remembers", *[_answering_from_memory() for _ in range(7)])
    said = [find_memory(subject, places, 1) for _ in range(6)]
    assert any("it remembers outputs" in each for each in said)
    subject, places = _timed(tmp_path / "honest", *[_honest] * 7)
    assert find_memory(subject, places, 1) == ""
