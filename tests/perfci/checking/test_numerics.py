"""How far a result may be from the truth: every rule, and that NaN passes none of them."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from perfci.checking import numerics
from perfci.checking.numerics import (
    Truth,
    allowance,
    errors,
    fault,
    pinned_precision,
    sizes,
    unit_roundoff,
    yardstick_bound,
)
from perfci.declaration import Tolerance

_FLOATS = st.floats(min_value=-1e3, max_value=1e3, width=32)
_ROWS = st.lists(_FLOATS, min_size=1, max_size=20)
_BAD = st.sampled_from([math.nan, math.inf, -math.inf])


def _fault(
    actual: Tensor,
    judge: Tensor,
    yardstick: Tensor | None = None,
    *,
    magnitude: Tensor | None = None,
    depth: int = 1,
    tolerance: Tolerance | None = None,
) -> str:
    library = judge.to(actual.dtype) if yardstick is None else yardstick
    truth = Truth(
        judge=judge,
        yardstick=library,
        allowed=allowance(judge, magnitude, depth=depth, dtype=actual.dtype),
    )
    bound = yardstick_bound(truth, tolerance=tolerance or Tolerance())
    return fault(actual, truth, own=errors(actual, judge), bound=bound)


@given(_ROWS)
def test_the_rounded_truth_is_right(row: list[float]) -> None:
    judge = torch.tensor(row, dtype=torch.float64) / 3
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        assert _fault(judge.to(dtype), judge) == ""


@given(_ROWS, st.data())
def test_a_value_that_is_not_finite_is_found_wherever_it_is(
    row: list[float], data: st.DataObject
) -> None:
    judge = torch.tensor(row, dtype=torch.float64)
    index = data.draw(st.integers(0, len(row) - 1))
    bad = data.draw(_BAD)
    actual = judge.float()
    actual[index] = bad
    name = {math.inf: "+inf", -math.inf: "-inf"}.get(bad, "NaN")
    words = f"{name} where the reference has none, or none where it has, at 1 of {len(row)}"
    elements = "element" if len(row) == 1 else "elements"
    note = " (outputs are filled with NaN before each call)" if name == "NaN" else ""
    found = _fault(actual, judge, judge.float())
    assert found == f"{words} {elements}, first at [{index}]{note}"
    assert _fault(judge.float(), actual.double(), actual).startswith(name)


@given(_ROWS, st.data())
def test_masks_that_agree_are_right_and_the_rest_is_still_judged(
    row: list[float], data: st.DataObject
) -> None:
    judge = torch.tensor([*row, 1.0], dtype=torch.float64)
    judge[data.draw(st.integers(0, len(row) - 1))] = data.draw(_BAD)
    assert _fault(judge.float(), judge) == ""
    actual = judge.float()
    actual[-1] = 1.001
    yardstick = judge.float()
    assert "above its bound" in _fault(actual, judge, yardstick)


def test_infinities_of_the_wrong_sign_are_wrong() -> None:
    judge = torch.tensor([math.inf, 1.0], dtype=torch.float64)
    assert _fault(-judge.float(), judge).startswith("+inf")


@pytest.mark.parametrize(("ratio", "right"), [(3.9, True), (4.1, False)])
def test_the_largest_error_is_bounded_by_the_yardsticks(ratio: float, right: bool) -> None:
    judge = torch.zeros(1000, dtype=torch.float64)
    yardstick, actual = torch.zeros(1000), torch.zeros(1000)
    yardstick[:500] = 1e-3
    actual[7] = ratio * 1e-3
    words = _fault(actual, judge, yardstick)
    assert (words == "") == right
    assert (
        right or words == "error 0.0041 above its bound 0.004 at 1 of 1,000 elements, first at [7]"
    )


@pytest.mark.parametrize(("ratio", "right"), [(2.9, True), (3.1, False)])
def test_the_mean_error_is_bounded_by_the_yardsticks(ratio: float, right: bool) -> None:
    judge = torch.zeros(1000, dtype=torch.float64)
    words = _fault(torch.full((1000,), ratio * 1e-3), judge, torch.full((1000,), 1e-3))
    assert (words == "") == right
    assert right or "root-mean-square error 0.0031 above 0.003 (3 × the library's)" in words


def test_a_declared_tolerance_is_tighter() -> None:
    judge, yardstick = torch.zeros(10, dtype=torch.float64), torch.full((10,), 1e-3)
    actual = torch.full((10,), 2e-3)
    assert _fault(actual, judge, yardstick) == ""
    assert "above its bound" in _fault(actual, judge, yardstick, tolerance=Tolerance(max_ratio=1.5))
    assert "root-mean-square" in _fault(
        actual, judge, yardstick, tolerance=Tolerance(rms_ratio=1.5)
    )


def test_a_yardstick_without_error_leaves_a_rounding_of_the_terms() -> None:
    judge = torch.tensor([1.0, 0.0], dtype=torch.float64)
    unit = unit_roundoff(torch.float32)
    near, far = (torch.tensor([1 - step * unit, 0.0]) for step in (1, 2))
    assert _fault(near, judge) == ""
    assert "above its bound 5.96e-08" in _fault(far, judge)
    assert "above its bound 0 " in _fault(torch.tensor([1.0, 1e-30]), judge)
    more = torch.tensor([4.0, 0.0], dtype=torch.float64)
    words = _fault(far, judge, magnitude=more)
    assert words.startswith("root-mean-square")
    assert "above its bound" in _fault(torch.tensor([1 - 9 * unit, 0.0]), judge, magnitude=more)


def test_depth_widens_the_bound_by_its_root() -> None:
    judge = torch.cat([torch.ones(1), torch.full((999,), 8.0)]).double()
    actual = judge.float()
    actual[0] = 1 - 5 * unit_roundoff(torch.float32)
    assert "above its bound" in _fault(actual, judge, depth=16)
    assert _fault(actual, judge, depth=36) == ""


def test_the_error_that_is_told_is_one_above_its_bound() -> None:
    """Though a larger one is within its own, where larger terms are summed."""
    unit = unit_roundoff(torch.float32)
    judge = torch.tensor([2.0**20, 1.0, 1.0], dtype=torch.float64)
    actual = judge - torch.tensor([2.0**20 * unit, 4 * unit, 2 * unit])
    words = _fault(actual.float(), judge)
    assert words == "error 2.38e-07 above its bound 5.96e-08 at 2 of 3 elements, first at [1]"


def test_integers_and_booleans_must_be_equal() -> None:
    judge = torch.tensor([3, 2**40], dtype=torch.float64)
    exact = torch.tensor([3, 2**40])
    assert _fault(exact, judge) == ""
    assert "above its bound 0" in _fault(exact + 1, judge, exact)
    truth = torch.tensor([True, False])
    assert _fault(truth, truth.double()) == ""
    assert "error 1 " in _fault(~truth, truth.double(), truth)


@pytest.mark.parametrize("shape", [(), (0,), (2, 0)])
def test_tensors_without_rows_are_judged(shape: tuple[int, ...]) -> None:
    judge = torch.ones(shape, dtype=torch.float64)
    assert _fault(judge.float(), judge) == ""
    assert (_fault(2 * judge.float(), judge, judge.float()) != "") == (shape == ())


@pytest.mark.parametrize("shape", [(11, 2), (2, 11), (3, 11, 2), (4, 4)])
@pytest.mark.parametrize("at", [{}, {3: 9.0}, {3: 9.0, 17: math.nan, 5: 9.5, 20: 1e9}])
def test_large_tensors_are_judged_in_pieces_with_the_same_words(
    shape: tuple[int, ...], at: dict[int, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = torch.Generator().manual_seed(1)
    judge = torch.randn(shape, dtype=torch.float64, generator=generator)
    actual = judge.float()
    magnitude = judge.abs() + 1
    # A view whose memory is in another order than its elements, as a library may return it.
    actual = actual.transpose(0, 1).contiguous().transpose(0, 1)
    for place, value in at.items():
        index = place % judge.numel()
        actual[tuple(int(i) for i in torch.unravel_index(torch.tensor(index), shape))] = value

    def said() -> tuple[object, ...]:
        own = errors(actual, judge)
        figures = (own.max_abs, own.max_rel, own.mean_abs, own.rms, sizes(judge).rms)
        return _fault(actual, judge, judge.float(), magnitude=magnitude), figures

    words, figures = said()
    monkeypatch.setattr(numerics, "_PIECE", 4)
    again, in_pieces = said()
    assert again == words
    assert in_pieces == pytest.approx(figures, nan_ok=True)
    assert (words == "") == (not at)


@given(_ROWS)
def test_sizes_are_those_of_the_finite_values(row: list[float]) -> None:
    value = torch.tensor([*row, math.inf], dtype=torch.float64)
    assert sizes(value).max_abs == max(abs(each) for each in row)
    assert sizes(value).rms == pytest.approx(math.sqrt(sum(x * x for x in row) / len(row)))


@given(_ROWS)
def test_errors_are_zero_for_the_truth_and_nan_for_nan(row: list[float]) -> None:
    judge = torch.tensor(row, dtype=torch.float64)
    own = errors(judge, judge)
    assert (own.max_abs, own.mean_abs, own.rms, own.max_rel) == (0, 0, 0, 0)
    assert math.isnan(errors(judge * math.nan, judge).max_abs)
    assert math.isnan(errors(judge * math.nan, judge).rms)


@given(_ROWS, _BAD)
def test_errors_are_those_where_the_judge_is_finite(row: list[float], bad: float) -> None:
    judge = torch.tensor(row, dtype=torch.float64)
    more = torch.cat([judge, torch.tensor([bad])])
    own, among = errors(judge + 0.5, judge), errors(more + 0.5, more)
    assert (among.max_abs, among.max_rel) == (own.max_abs, own.max_rel)
    assert (among.mean_abs, among.rms) == pytest.approx((own.mean_abs, own.rms))
    assert errors(more[-1:], more[-1:]).max_abs == 0.0


@given(_ROWS, st.floats(1e-3, 1))
def test_errors_are_ordered(row: list[float], shift: float) -> None:
    judge = torch.tensor(row, dtype=torch.float64)
    own = errors(judge + shift, judge)
    assert own.mean_abs <= own.rms * (1 + 1e-9)
    assert own.rms <= own.max_abs * (1 + 1e-9)
    assert own.max_abs == pytest.approx(shift, abs=1e-12)


def _raise_in(allowed: bool, backends: tuple[Any, Any]) -> None:
    with pinned_precision(tf32=allowed):
        assert [each.allow_tf32 for each in backends] == [allowed, allowed]
        raise ZeroDivisionError


@pytest.mark.parametrize("allowed", [True, False])
def test_the_librarys_precision_is_pinned_and_then_as_before(allowed: bool) -> None:
    backends = (torch.backends.cuda.matmul, torch.backends.cudnn)
    before = [each.allow_tf32 for each in backends]
    with pytest.raises(ZeroDivisionError):
        _raise_in(allowed, backends)
    assert [each.allow_tf32 for each in backends] == before
