"""What a check says of a variant that is wrong, refuses, or runs out of memory."""

import math
import weakref
from dataclasses import replace
from pathlib import Path

import pytest
import scratch
from subjects import build_subject
from torch import Tensor

from perfci.checking import check as module
from perfci.checking.check import (
    Problem,
    Subject,
    WrongError,
    bound_at,
    check,
    draw,
    find_truth,
    judge,
)
from perfci.checking.inputs import Arguments, draw_inputs
from perfci.checking.numerics import Truth
from perfci.declaration import Tolerance
from perfci.error_bounds import Bounds, OutputBound
from perfci.history.model import Status

_OUTLIERS = """\
[[check]]
name = "outliers"
distribution = "outliers"
count = 4096
"""
_OFF = "def run(x, a, b):\n    return (a * x + b) * (1 + {ratio} * 2**-24)\n"
_STRIDED = """\
[[check]]
name = "strided"
layout = "strided"
count = 64
"""


def _subject(root: Path, source: str, cases: str = scratch.CASES) -> Subject:
    """A ``.py`` variant of the elementwise kernel at its first case."""
    scratch.write_kernel(root, cases__toml=cases, variant__py=source)
    return build_subject(root)[1]


def test_an_error_that_is_no_number_is_never_recorded_as_none(tmp_path: Path) -> None:
    subject = _subject(tmp_path, "def run(x, a, b):\n    return x * float('nan')\n")
    outcome = check(subject, [1])
    assert outcome.status is Status.WRONG_VALUES
    names = {each.name for each in outcome.metrics}
    assert "yardstick_max_abs_error" in names
    assert not names & {"max_abs_error", "mean_abs_error", "rms_error", "max_rel_error"}


def test_one_output_that_is_no_number_outweighs_the_others(tmp_path: Path) -> None:
    subject = _subject(tmp_path, scratch.EAGER)
    arguments = draw_inputs(subject.reference, subject.case, device="cpu", seed=1)
    (truth,) = find_truth(subject, arguments)
    outputs = truth.yardstick.clone()
    outputs[3] = math.nan
    with pytest.raises(WrongError) as caught:
        judge(subject, outputs, [truth])
    assert math.isnan(caught.value.figures["max_abs_error"])
    assert math.isfinite(caught.value.figures["yardstick_max_abs_error"])


def test_the_truth_of_one_seed_is_let_go_before_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the largest outputs there is no room for that of two."""
    held: list[weakref.ref[Tensor]] = []

    def find(problem: Problem, arguments: Arguments) -> tuple[Truth, ...]:
        truths = find_truth(problem, arguments)
        held.extend(weakref.ref(each.judge) for each in truths)
        return truths

    def draw_one(problem: Problem, seed: int) -> Arguments:
        assert all(each() is None for each in held)
        return draw(problem, seed)

    subject = _subject(tmp_path, scratch.EAGER)
    monkeypatch.setattr(module, "find_truth", find)
    monkeypatch.setattr(module, "draw", draw_one)
    assert check(subject, [1, 2, 3]).status is Status.PASSED
    assert len(held) == 3


@pytest.mark.parametrize("error", ["ValueError", "NotImplementedError", "RuntimeError"])
def test_another_layout_may_be_refused(tmp_path: Path, error: str) -> None:
    source = f"def run(x, a, b):\n    raise {error}('x must be contiguous')\n"
    outcome = check(_subject(tmp_path, source, _STRIDED), [1])
    assert outcome.status is Status.SKIPPED
    assert outcome.message.startswith(f"refuses strided inputs: {error}: x must be contiguous")


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ("def magnitude(x, a, b):\n    raise ValueError('none')", "ValueError: none"),
        ("def magnitude(x, a, b):\n    return 1.0", "TypeError: returned a float, not tensors"),
        ("def magnitude(x, a, b):\n    return x.abs(), x.abs()", "ValueError: zip() argument"),
        ("def magnitude(x, a, b):\n    return x[:3].abs()", "RuntimeError: The expanded size"),
        ("def depth(*, count):\n    raise RuntimeError('none')", "RuntimeError: none"),
        ("def depth(*, count):\n    return 'deep'", "TypeError: "),
    ],
)
def test_a_reference_that_cannot_say_what_rounding_allows_is_no_refusal_of_the_variant(
    tmp_path: Path, stated: str, said: str
) -> None:
    """Or a variant that is wrong would be skipped at every case of another layout."""
    reference = f"{scratch.REFERENCE}\n\n{stated}\n"
    scratch.write_kernel(
        tmp_path,
        cases__toml=_STRIDED,
        reference__py=reference,
        variant__py="def run(x, a, b):\n    return a * x - b\n",
    )
    outcome = check(build_subject(tmp_path)[1], [1])
    assert outcome.status is Status.RUNTIME_ERROR
    assert outcome.message.startswith(
        f"the reference's magnitude or depth cannot be gone by: {said}"
    )


def test_a_reference_of_other_shapes_in_float64_is_no_refusal_of_the_variant(
    tmp_path: Path,
) -> None:
    reference = scratch.REFERENCE.replace(
        "return a * x + b", "return a * (x[None] if x.dtype == torch.float64 else x) + b"
    )
    scratch.write_kernel(
        tmp_path, cases__toml=_STRIDED, reference__py=reference, variant__py=scratch.EAGER
    )
    outcome = check(build_subject(tmp_path)[1], [1])
    assert outcome.status is Status.RUNTIME_ERROR
    assert outcome.message.startswith("the reference returns other shapes in float64")


def test_a_magnitude_may_be_that_of_several_elements_at_once(tmp_path: Path) -> None:
    stated = "def magnitude(x, a, b):\n    return (a * x).abs().max().reshape(1)\n"
    scratch.write_kernel(
        tmp_path,
        reference__py=f"{scratch.REFERENCE}\n\n{stated}",
        variant__py=scratch.EAGER,
    )
    _, subject = build_subject(tmp_path)
    assert check(subject, [1]).status is Status.PASSED
    (truth,) = find_truth(subject, draw(subject, 1))
    assert truth.allowed.scale.shape == truth.judge.shape


@pytest.mark.parametrize(
    "statement",
    [
        "raise torch.OutOfMemoryError('CUDA out of memory. Tried to allocate 4.00 TiB.')",
        "torch.empty(1 << 42, dtype=torch.uint8)",
    ],
)
def test_running_out_of_memory_is_no_refusal(tmp_path: Path, statement: str) -> None:
    source = f"import torch\n\n\ndef run(x, a, b):\n    {statement}\n"
    outcome = check(_subject(tmp_path, source, _STRIDED), [1])
    assert outcome.status is Status.RUNTIME_ERROR
    assert outcome.message == "out of memory: tried to allocate 4.00 TiB (variant.py:5)"


def _frozen(subject: Subject, **figures: float) -> Subject:
    """The subject as one whose bounds are frozen, at figures that allow much unless told."""
    told = {"largest": 50.0, "rms": 50.0, "max_abs_error": 0.0, "rms_error": 0.0, **figures}
    outputs = (OutputBound(**told),)
    bounds = Bounds(workload="", seeds=20, torch="", device="", outputs=outputs)
    place = ("cpu", subject.case.name)
    return replace(subject, kernel=replace(subject.kernel, frozen={place: bounds}))


@pytest.mark.parametrize("which", ["largest", "rms"])
def test_what_is_frozen_judges_and_not_the_library_of_these_inputs(
    tmp_path: Path, which: str
) -> None:
    subject = _subject(tmp_path, _OFF.format(ratio=60))
    assert check(subject, [1]).status is Status.WRONG_VALUES
    assert check(_frozen(subject), [1]).status is Status.PASSED
    outcome = check(_frozen(subject, **{which: 0.2}), [1])
    assert outcome.status is Status.WRONG_VALUES
    if which == "rms":
        assert outcome.message.endswith("(3 × the library's, as frozen)")
    else:
        assert "above its bound" in outcome.message


@pytest.mark.parametrize(("cases", "ratio"), [(scratch.CASES, 3), (_OUTLIERS, 9)])
def test_outliers_widen_what_the_library_allows_of_the_mean_error(
    tmp_path: Path, cases: str, ratio: int
) -> None:
    subject = _subject(tmp_path, scratch.EAGER, cases)
    (truth,) = find_truth(subject, draw(subject, 1))
    bound = bound_at(subject, [truth], 0)
    assert bound.rms == ratio * truth.yardstick_errors.rms > 0
    assert bound.largest == 4 * truth.yardstick_errors.max_abs
    assert bound.reason == f"{ratio} × the library's"


def test_each_output_has_frozen_bounds_of_its_own(tmp_path: Path) -> None:
    subject = _frozen(_subject(tmp_path, scratch.EAGER))
    (bounds,) = subject.kernel.frozen.values()
    first, second = (
        OutputBound(largest=n, rms=n / 2, max_abs_error=0, rms_error=0) for n in (1, 8)
    )
    place = ("cpu", subject.case.name)
    frozen = {place: replace(bounds, outputs=(first, second))}
    subject = replace(subject, kernel=replace(subject.kernel, frozen=frozen))
    truths = [find_truth(subject, draw(subject, seed))[0] for seed in (1, 2)]
    for index, own in enumerate((first, second)):
        bound, allowed = bound_at(subject, truths, index), truths[index].allowed
        assert bound.largest == pytest.approx(4 * own.largest * allowed.largest)
        assert bound.rms == pytest.approx(3 * own.rms * allowed.rms)


def test_frozen_bounds_have_no_slack_for_outliers(tmp_path: Path) -> None:
    subject = _subject(tmp_path, _OFF.format(ratio=60), _OUTLIERS)
    assert check(subject, [1]).status is Status.WRONG_VALUES
    # As far off as so many roundings of the largest value: within nine, and not within three.
    assert check(_frozen(subject, rms=60 / 4), [1]).message.endswith(
        "3 × the library's, as frozen)"
    )
    assert check(_frozen(subject, rms=60 / 2), [1]).status is Status.PASSED


def test_a_variant_that_declares_less_is_held_to_it(tmp_path: Path) -> None:
    subject = _frozen(_subject(tmp_path, _OFF.format(ratio=60)), rms=30.0, largest=30.0)
    assert check(subject, [1]).status is Status.PASSED
    strict = replace(subject, tolerance=Tolerance(rms_ratio=1.0))
    assert check(strict, [1]).message.endswith("(1 × the library's, as frozen)")
    strict = replace(subject, tolerance=Tolerance(max_ratio=1.0))
    assert "above its bound" in check(strict, [1]).message


def test_bounds_of_another_number_of_outputs_judge_nothing(tmp_path: Path) -> None:
    subject = _frozen(_subject(tmp_path, scratch.EAGER))
    (bounds,) = subject.kernel.frozen.values()
    two = replace(bounds, outputs=bounds.outputs * 2)
    frozen = {("cpu", subject.case.name): two}
    outcome = check(replace(subject, kernel=replace(subject.kernel, frozen=frozen)), [1])
    assert outcome.status is Status.RUNTIME_ERROR
    assert outcome.message.startswith("bounds.toml bounds 2 outputs, the reference has 1; freeze")


def test_a_peer_with_tf32_on_purpose_is_judged_by_its_own_library(tmp_path: Path) -> None:
    subject = replace(_frozen(_subject(tmp_path, scratch.EAGER), largest=0.0, rms=0.0), tf32=True)
    assert subject.frozen is None
    assert check(subject, [1]).status is Status.PASSED
