"""A case must reject what is wrong in a common way; what happens to be right is no blame."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import scratch
from subjects import build_subject

from perfci.checking.weakness import find_weakness
from perfci.declaration import GENERAL_RULE, Tolerance

_CASES = """\
[[check]]
name = "{name}"
tier = "smoke"
rows = {rows}
columns = {columns}
distribution = "{distribution}"
"""
_REFERENCE = """\
import torch


def make_inputs(*, rows, columns, dtype, device, generator):
    return {{"x": torch.randn(rows, columns, dtype=dtype, device=device, generator=generator)}}


def reference(x):
    return {returns}


def bytes_moved(*, rows, columns, dtype):
    return 2 * rows * columns * dtype.itemsize


def flops(*, rows, columns):
    return rows * columns
"""
_LOST = "((x + 4e7) - 4e7)"
"""An output as large as the rounding errors of what it is computed from."""


def _weakness(
    root: Path, returns: str, *, rows: int, columns: int, tolerance: Tolerance = GENERAL_RULE
) -> str:
    """What a case of that reference would accept, by a variant that declares that tolerance."""
    cases = _CASES.format(name="case", rows=rows, columns=columns, distribution="normal")
    reference = _REFERENCE.format(returns=returns)
    variant = "def run(x):\n    return x\n"
    scratch.write_kernel(root, cases__toml=cases, reference__py=reference, variant__py=variant)
    _, subject = build_subject(root)
    return find_weakness(replace(subject, tolerance=tolerance), 1, 2)


@pytest.mark.parametrize(
    ("returns", "accepted"),
    [
        (_LOST, "all zeros"),
        (f"x, {_LOST}", "all zeros"),
        (f"{_LOST} + 100", "a constant"),
        (
            f"{_LOST} + 100 * (torch.arange(16) + torch.arange(16)[:, None])",
            "the transposed output",
        ),
        (f"{_LOST} + 100 * torch.arange(256).view(16, 16)", "the output of other inputs"),
    ],
)
def test_a_case_that_accepts_what_is_wrong_is_weak(
    tmp_path: Path, returns: str, accepted: str
) -> None:
    assert _weakness(tmp_path, returns, rows=16, columns=16) == accepted


def test_a_case_is_no_better_for_what_a_variant_declares(tmp_path: Path) -> None:
    """It is looked at once, with the first variant, for all of them."""
    strict = Tolerance(max_ratio=0.1, rms_ratio=0.1)
    assert _weakness(tmp_path, _LOST, rows=16, columns=16, tolerance=strict) == "all zeros"


def test_a_case_may_reject_what_is_wrong_by_the_mean_error_alone(tmp_path: Path) -> None:
    """Where the library errs in one row by more than values are large in all others."""
    returns = f"torch.cat([{_LOST}[:1], x[1:]])"
    assert _weakness(tmp_path, returns, rows=16, columns=16) == ""


@pytest.mark.parametrize(
    ("returns", "rows", "columns"),
    [
        ("x * 2", 7, 5),
        ("x * 2", 1, 1),
        ("x * 2", 1, 5),
        ("x * 2", 7, 1),
        ("x * 2", 0, 5),
        ("x + x.T", 5, 5),
        ("x.sum()", 7, 5),
        ("torch.zeros_like(x)", 7, 5),
        ("torch.ones_like(x)", 7, 5),
        ("torch.softmax(x, dim=1)", 7, 1),
        ("torch.full_like(x, float('nan'))", 7, 5),
        ("x.argmax(dim=1)", 7, 5),
        ("x > 0", 7, 5),
    ],
)
def test_what_happens_to_be_right_is_not_held_against_a_case(
    tmp_path: Path, returns: str, rows: int, columns: int
) -> None:
    assert _weakness(tmp_path, returns, rows=rows, columns=columns) == ""


def test_a_weak_case_is_an_error_of_every_variant_and_of_no_other_case(tmp_path: Path) -> None:
    root = scratch.quick(tmp_path / "root")
    cases = [("sound", "normal"), ("weak", "tiny")]
    variant = "def run(x):\n    return (x + 4e4) - 4e4\n"
    scratch.write_kernel(
        root,
        cases__toml="\n".join(
            _CASES.format(name=name, rows=16, columns=16, distribution=distribution)
            for name, distribution in cases
        ),
        reference__py=_REFERENCE.format(returns="(x + 4e4) - 4e4"),
        one__py=variant,
        other__py=variant,
    )
    ended = scratch.call(root, "check", "--json")
    assert ended.returncode == 1
    told = {
        (each["variant"], each["case"]): (each["status"], each["message"])
        for each in json.loads(ended.stdout)["checks"]
    }
    weak = (
        "runtime_error",
        "the case accepts all zeros, so that it proves nothing; change it",
    )
    assert told == {
        ("one", "sound"): ("passed", ""),
        ("other", "sound"): ("passed", ""),
        ("one", "weak"): weak,
        ("other", "weak"): weak,
    }
