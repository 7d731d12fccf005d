"""The process that tools watch, by itself, on the CPU: what it calls and what it says of it."""

import os
import subprocess
from pathlib import Path
from typing import Any

import doubles
import pytest
import scratch

from perfci.tools.calls import Ending, Told, calls_of, command, read_told, variables, write_calls

_CASES = """\
[[check]]
name = "odd"
count = 9

[[check]]
name = "strided"
layout = "strided"
count = 9

[[check]]
name = "offset"
layout = "offset"
count = 9

[[check]]
name = "last"
count = 3
"""
_LAYOUT = """\
def run(x, a, b):
    where = x.stride(), x.storage_offset(), x.untyped_storage().nbytes()
    raise ValueError(f"{where} {bool((x == x).all())}")
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> doubles.Workplace:
    root = scratch.quick(tmp_path_factory.mktemp("caller") / "root")
    reference = scratch.REFERENCE.replace("return a * x + b", "return a * x + b + 0 * float(x[0])")
    scratch.write_kernel(
        root,
        reference__py=reference,
        cases__toml=_CASES,
        plain__cpp=scratch.body(
            "if (!perfci_is_contiguous(x) && x->shape[0] == 9)\n"
            '    return perfci_fail(call, "x must be contiguous");'
        ),
        layout__py=_LAYOUT,
        hangs__py="def run(x, a, b):\n    while len(x) == 9:\n        pass\n",
        exits__py="import os\n\n\ndef run(x, a, b):\n    print('bye')\n    os._exit(3)\n",
        broken__py="import nothing_there\n",
    )
    return doubles.workplace(root, "odd", "strided", "offset", "last")


def _call(place: doubles.Workplace, variant: str, folder: Path, **more: Any) -> tuple[int, Told]:
    build = next(each for each in place.builds if each.variant.name == variant)
    path = folder / "calls.json"
    cases = place.kernel.cases
    calls = calls_of(build, place.kernel, cases, target=doubles.CPU, **{"limit_s": 60.0, **more})
    write_calls(calls, path)
    done = subprocess.run(
        command(path),
        env={**os.environ, **variables(doubles.CPU)},
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, read_told(done.stdout)


def test_a_layout_that_is_refused_is_no_failure_and_the_others_are_called(
    place: doubles.Workplace, tmp_path: Path
) -> None:
    code, told = _call(place, "plain", tmp_path)
    assert (code, told.ended, told.timed_out) == (0, True, False)
    endings = {each.case: (each.ending, each.message) for each in told.calls}
    assert endings == {
        "odd": (Ending.CALLED, ""),
        "strided": (Ending.REFUSED, "x must be contiguous"),
        "offset": (Ending.CALLED, ""),
        "last": (Ending.CALLED, ""),
    }


def test_inputs_keep_their_layout_and_what_lies_between_their_elements(
    place: doubles.Workplace, tmp_path: Path
) -> None:
    code, told = _call(place, "layout", tmp_path)
    assert (code, told.ended) == (0, True)
    said = {
        each.case: (each.ending, each.message.partition(" (layout.py")[0]) for each in told.calls
    }
    assert said == {
        "odd": (Ending.RAISED, "ValueError: ((1,), 0, 36) True"),
        "strided": (Ending.REFUSED, "ValueError: ((2,), 0, 72) True"),
        "offset": (Ending.REFUSED, "ValueError: ((1,), 3, 48) True"),
        "last": (Ending.RAISED, "ValueError: ((1,), 0, 12) True"),
    }


def test_a_call_that_does_not_end_ends_the_process_at_its_case(
    place: doubles.Workplace, tmp_path: Path
) -> None:
    code, told = _call(place, "hangs", tmp_path, limit_s=0.2)
    assert (code, told.ended, told.timed_out) == (1, False, True)
    assert [(each.case, each.ending) for each in told.calls] == [("odd", None)]


def test_a_process_that_is_ended_by_its_variant_says_where_it_was(
    place: doubles.Workplace, tmp_path: Path
) -> None:
    code, told = _call(place, "exits", tmp_path)
    assert (code, told.ended, told.timed_out) == (3, False, False)
    assert [(each.case, each.ending) for each in told.calls] == [("odd", None)]


def test_a_variant_that_cannot_be_loaded_is_said_of_every_case(
    place: doubles.Workplace, tmp_path: Path
) -> None:
    code, told = _call(place, "broken", tmp_path)
    assert (code, told.ended, len(told.calls)) == (0, True, 4)
    assert {each.ending for each in told.calls} == {Ending.RAISED}
    assert "cannot be loaded: ModuleNotFoundError" in told.calls[0].message


def test_what_was_printed_may_be_cut_off_anywhere() -> None:
    text = (
        'unfinished perfci call: {"case": "odd", "ending": null, "message": ""}\nperfci call: {"c'
    )
    told = read_told(text)
    assert [(each.case, each.ending) for each in told.calls] == [("odd", None)]
    assert (told.ended, told.call("even")) == (False, None)


def test_what_only_looks_like_what_the_process_says_says_nothing() -> None:
    lookalikes = ("{", "{oops}", '{"case": "odd"}', '{"end": "soon"}')
    weird = '{"case": "odd", "ending": "weird", "message": ""}'
    told = read_told("".join(f"perfci call: {each}\n" for each in (*lookalikes, weird)))
    assert (told.calls, told.ended) == ((), False)


def test_a_process_that_came_to_its_end_did_not_time_out() -> None:
    words = "Timeout (0:00:01)!\n"
    assert read_told(words).timed_out
    assert not read_told(f'{words}perfci call: {{"end": true}}\n').timed_out
