"""How far a result is from the truth, and how far it may be: pure functions of tensors.

The *judge* is the reference in float64 on the same, already rounded, inputs; the *yardstick* is
the reference in the kernel's own dtype. An *allowance* is what rounding allows each element,
``u x sqrt(depth) x (|A|·|B|)`` with u the unit round-off. Every comparison is written as
``not (error <= bound)``, so that NaN fails.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from perfci import units
from perfci.declaration import Tolerance
from perfci.error_bounds import OutputBound

_OUTLIER_SLACK = 3.0
_ROUNDED = 4.0
_UNWRITTEN = " (outputs are filled with NaN before each call)"
_PIECE = 1 << 24
"""How many elements are judged at once, so that the largest outputs leave room for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """How far one tensor is from the judge; all absolute but the last."""

    max_abs: float
    mean_abs: float
    rms: float
    max_rel: float


@contextmanager
def pinned_precision(*, tf32: bool = False) -> Iterator[None]:
    """Pin the library's products to the precision of their dtype, or on purpose to TF32."""
    matmul, cudnn = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.allow_tf32 = tf32
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = matmul
        torch.backends.cudnn.allow_tf32 = cudnn


def unit_roundoff(dtype: torch.dtype) -> float:
    """Half the distance from 1 to the next number of a floating dtype; 0 for integers."""
    return torch.finfo(dtype).eps / 2 if dtype.is_floating_point else 0.0


def errors(actual: Tensor, judge: Tensor) -> Errors:
    """Errors where the judge is finite; NaN where the actual value is NaN there."""
    figures = []
    for _, (part, exact) in _pieces(actual, judge):
        if exact.numel() == 0:
            continue
        # Not picked out: that would take an index of eight bytes a dimension for each element.
        finite = torch.isfinite(exact)
        truth = torch.where(finite, exact.double(), 0.0)
        distance = torch.where(finite, (part.double() - truth).abs(), 0.0)
        relative = distance / truth.abs().clamp_min(torch.finfo(torch.float64).tiny)
        parts = distance.sum(), distance.square().sum(), finite.sum().double()
        figures.append(torch.stack((distance.max(), relative.max(), *parts)))
    if not figures:
        return Errors(max_abs=0.0, mean_abs=0.0, rms=0.0, max_rel=0.0)
    every = torch.stack(figures)
    largest, sums = every[:, :2].amax(dim=0), every[:, 2:].sum(dim=0)
    max_abs, max_rel, total, squares, count = torch.cat((largest, sums)).tolist()
    count = max(1.0, count)
    return Errors(
        max_abs=max_abs, mean_abs=total / count, rms=math.sqrt(squares / count), max_rel=max_rel
    )


def sizes(value: Tensor) -> Errors:
    """How large a tensor's finite values are: the errors of zeros against it."""
    return errors(value.new_zeros(()).expand(value.shape), value)


def is_rounded(actual: Tensor, other: Tensor) -> bool:
    """Whether two tensors are one but for the last bits of each element."""
    share = _ROUNDED * unit_roundoff(actual.dtype)
    for _, parts in _pieces(actual, other):
        one, two = (each.double() for each in parts)
        same = (one == two) | (torch.isnan(one) & torch.isnan(two))
        if not bool((same | ((one - two).abs() <= share * two.abs())).all()):
            return False
    return True


@dataclass(frozen=True, kw_only=True)
class Allowance:
    """What rounding allows each element: ``share`` of the magnitude of ``scale`` there."""

    scale: Tensor
    share: float

    @property
    def largest(self) -> float:
        """The largest of all elements."""
        return self.share * self._sizes.max_abs

    @property
    def rms(self) -> float:
        """The root mean square over the elements."""
        return self.share * self._sizes.rms

    @cached_property
    def _sizes(self) -> Errors:
        return sizes(self.scale)


@dataclass(frozen=True, kw_only=True)
class Truth:
    """What one output should be: by the judge (float64), by the yardstick (its own dtype).

    What follows from them is computed once, however many outputs are held against it.
    """

    judge: Tensor
    yardstick: Tensor
    allowed: Allowance

    @cached_property
    def yardstick_errors(self) -> Errors:
        """How far the library itself is off."""
        return errors(self.yardstick, self.judge)

    @cached_property
    def is_finite(self) -> bool:
        """Whether the judge is so everywhere."""
        return all(bool(torch.isfinite(part).all()) for _, (part,) in _pieces(self.judge))

    @cached_property
    def rounding_rms(self) -> float:
        """The root mean square of what rounding the judge to the output's dtype may move."""
        return unit_roundoff(self.yardstick.dtype) * sizes(self.judge).rms


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """How far a result may be at certain inputs; ``reason`` says what ``rms`` is made of."""

    largest: float
    rms: float
    reason: str


def allowance(
    judge: Tensor, magnitude: Tensor | None, *, depth: int, dtype: torch.dtype
) -> Allowance:
    """What rounding allows an output of that dtype.

    ``magnitude`` is elementwise the sum of the magnitudes of what is summed (the judge itself
    where it is not known), ``depth`` the number of terms.
    """
    share = unit_roundoff(dtype) * math.sqrt(max(1, depth))
    return Allowance(scale=judge if magnitude is None else magnitude, share=share)


def yardstick_bound(truth: Truth, *, tolerance: Tolerance, outliers: bool = False) -> Bound:
    """What a result may be off by, by the library's own errors at the same inputs.

    With ``outliers`` the root-mean-square rule is wider: behind an outlier every partial sum is
    rounded at its magnitude, so that the order of summation alone moves the error several times.
    """
    yard = truth.yardstick_errors
    ratio = tolerance.rms_ratio * (_OUTLIER_SLACK if outliers else 1.0)
    return Bound(
        largest=tolerance.max_ratio * yard.max_abs,
        rms=ratio * yard.rms,
        reason=f"{ratio:g} × the library's",
    )


def frozen_bound(frozen: OutputBound, allowed: Allowance, *, tolerance: Tolerance) -> Bound:
    """What a result may be off by, by what is frozen of the library's errors at other inputs."""
    return Bound(
        largest=tolerance.max_ratio * frozen.largest * allowed.largest,
        rms=tolerance.rms_ratio * frozen.rms * allowed.rms,
        reason=f"{tolerance.rms_ratio:g} × the library's, as frozen",
    )


def fault(actual: Tensor, truth: Truth, *, own: Errors, bound: Bound) -> str:
    """What is wrong with a result's values, in one line; empty where they are right.

    ``own`` are its errors.
    """
    all_finite = truth.is_finite and math.isfinite(own.max_abs)
    wrong = "" if all_finite else _find_not_finite(actual, truth.judge)
    if wrong := wrong or _find_far(actual, truth, least=bound.largest):
        return wrong
    bound_rms = max(bound.rms, truth.rounding_rms)
    if not own.rms <= bound_rms:
        return f"root-mean-square error {own.rms:.3g} above {bound_rms:.3g} ({bound.reason})"
    return ""


def _find_not_finite(actual: Tensor, judge: Tensor) -> str:
    """Where one is NaN or infinite and the other is not so; empty where nowhere."""
    for name, mask in (("NaN", torch.isnan), ("+inf", torch.isposinf), ("-inf", torch.isneginf)):
        where = _find_differences(mask, actual, judge)
        if where:
            note = _UNWRITTEN if name == "NaN" else ""
            return f"{name} where the reference has none, or none where it has, {where}{note}"
    return ""


def _find_differences(mask: Callable[[Tensor], Tensor], actual: Tensor, judge: Tensor) -> str:
    """Where a mask of the actual values is not that of the judge; empty where it is."""
    wrong = _Wrong()
    for start, (part, exact) in _pieces(actual, judge):
        wrong.add(mask(part) != mask(exact), start)
    return wrong.describe(judge.numel())


def _find_far(actual: Tensor, truth: Truth, *, least: float) -> str:
    """The largest error that is above what is allowed or ``least``, and where such are, if any."""
    wrong, worst = _Wrong(), (0.0, 0.0)
    allowed = truth.allowed
    for start, (part, exact, terms) in _pieces(actual, truth.judge, allowed.scale):
        finite = torch.isfinite(exact)
        distance = torch.where(finite, (part.double() - exact).abs(), 0.0)
        bound = (terms.double().abs() * allowed.share).clamp_min(least)
        far = finite & ~(distance <= bound)
        if wrong.add(far, start):
            farthest = torch.where(far, distance, 0.0).argmax()
            error, limit = (float(each.flatten()[farthest]) for each in (distance, bound))
            worst = max(worst, (error, limit))
    where = wrong.describe(truth.judge.numel())
    return where and f"error {worst[0]:.3g} above its bound {worst[1]:.3g} {where}"


class _Wrong:
    """Which elements are wrong: how many, and the first of them."""

    def __init__(self) -> None:
        self._count = 0
        self._first: list[int] = []

    def add(self, wrong: Tensor, start: Sequence[int]) -> bool:
        """Take in the mask of a piece that starts there; whether any of it is wrong."""
        count = int(wrong.sum())
        if count:
            first = [at + int(each) for at, each in zip(start, wrong.nonzero()[0], strict=True)]
            self._first = min(self._first, first) if self._count else first
            self._count += count
        return count > 0

    def describe(self, total: int) -> str:
        """How many of all elements are wrong and the first of them; empty where none is."""
        if not self._count:
            return ""
        elements = units.count_things(total, "element")
        return f"at {units.format_count(self._count)} of {elements}, first at {self._first}"


def _pieces(*tensors: Tensor) -> Iterator[tuple[list[int], tuple[Tensor, ...]]]:
    """Tensors of one shape, cut alike along their longest dimension; each piece with its start.

    That is a view whatever the strides, where flattening would be a copy.
    """
    shape = tensors[0].shape
    if not shape:
        yield [], tensors
        return
    longest = max(range(len(shape)), key=shape.__getitem__)
    rows = max(1, _PIECE * shape[longest] // max(1, tensors[0].numel()))
    start = [0] * len(shape)
    for parts in zip(*(each.split(rows, longest) for each in tensors), strict=True):
        yield list(start), parts
        start[longest] += rows
