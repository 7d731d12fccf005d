"""References that nothing can be judged by: each is a row that says so, and nothing passes."""

import json
from typing import Any

import pytest
import scratch

_MAKE = 'return {"x": x, "a": 2.5, "b": -1.0}'
_REFER = "return a * x + b"
_BYTES = "return 2 * count * dtype.itemsize"
BAD = {
    "list_of_inputs": (_MAKE, "return [x]", "make_inputs returned a list, not arguments by name"),
    "no_inputs": (_MAKE, "return None", "make_inputs returned a NoneType, not arguments by name"),
    "numpy_input": (
        _MAKE,
        'return {"x": x.numpy(), "a": 2.5, "b": -1.0}',
        "make_inputs returned a ndarray as 'x', not a tensor or number",
    ),
    "inputs_raise": (_MAKE, "raise ValueError('no such shape')", "ValueError: no such shape"),
    "one_input_more": (_MAKE, _MAKE.replace('"x"', '"w": x, "x"'), "takes 3 positional arguments"),
    "reference_raises": (_REFER, "raise KeyError('q')", "the reference fails: KeyError: 'q'"),
    "returns_none": (_REFER, "return None", "the reference fails: TypeError: returned a NoneType"),
    "returns_text": (_REFER, "return 'abc'", "the reference fails: TypeError: returned a str"),
    "returns_nested": (_REFER, "return x, [x]", "the reference fails: TypeError: returned a tuple"),
    "changes_input": (
        _REFER,
        "return x.mul_(a).add_(b)",
        "the reference changes its input 'x'",
    ),
    "throws_dice": (
        _REFER,
        "return torch.randn_like(x)",
        "the reference computes something else the second time",
    ),
    "bytes_not_a_number": (_BYTES, "return float('nan')", "bytes_moved returned nan"),
    "bytes_below_zero": (_BYTES, "return -5", "bytes_moved returned -5"),
    "bytes_as_text": (_BYTES, "return 'x'", "bytes_moved returned 'x'"),
    "bytes_raise": (_BYTES, "return 1 // 0", "ZeroDivisionError"),
}
GOOD = {
    "list_of_outputs": (_REFER, "return [a * x + b]"),
    "returns_its_input": (_REFER, "return x"),
    "zeros": (_REFER, "return x * 0"),
}
CASES = """\
[[bench]]
name = "large"
tier = "smoke"
count = 64

[[check]]
name = "strided"
tier = "smoke"
layout = "strided"
count = 64
"""


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    root = scratch.quick(tmp_path_factory.mktemp("references") / "root")
    for name, (right, other, *_) in (BAD | GOOD).items():
        body = other.removeprefix("return ") if name in GOOD else None
        eager = f"def run(x, a, b):\n    return {body}\n" if body else scratch.EAGER
        assert right in scratch.REFERENCE
        text = scratch.REFERENCE.replace(right, other)
        scratch.write_kernel(root, name, reference__py=text, cases__toml=CASES, eager__py=eager)
    done = scratch.call(root, "run", "--json", "--commit", "abcdef1")
    assert done.returncode == 1, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)["measurements"]
    return found


@pytest.mark.parametrize("kernel", BAD)
@pytest.mark.parametrize("case", ["large", "strided"])
def test_nothing_passes_by_a_bad_reference(
    rows: list[dict[str, Any]], kernel: str, case: str
) -> None:
    (row,) = [row for row in rows if (row["kernel"], row["case"]) == (kernel, case)]
    assert row["status"] == "runtime_error"
    assert BAD[kernel][2] in row["message"]


@pytest.mark.parametrize("kernel", GOOD)
def test_an_unusual_reference_is_none_the_worse(rows: list[dict[str, Any]], kernel: str) -> None:
    found = [row for row in rows if row["kernel"] == kernel]
    assert [row["status"] for row in found] == ["passed", "passed"], found
