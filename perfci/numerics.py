"""How far a result is from the truth, and how far it may be: pure functions of tensors.

The *judge* is the reference in float64 on the same, already rounded, inputs; the *yardstick* is
the reference in the kernel's own dtype. Every comparison is written as ``not (error <= bound)``,
so that NaN fails.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from perfci.kernel import Tolerance

_OUTLIER_SLACK = 3.0


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
    finite = torch.isfinite(judge)
    exact = judge[finite]
    distance = (actual.double()[finite] - exact).abs()
    if distance.numel() == 0:
        return Errors(max_abs=0.0, mean_abs=0.0, rms=0.0, max_rel=0.0)
    scale = exact.abs().clamp_min(torch.finfo(torch.float64).tiny)
    return Errors(
        max_abs=float(distance.max()),
        mean_abs=float(distance.mean()),
        rms=float(distance.square().mean().sqrt()),
        max_rel=float((distance / scale).max()),
    )


def fault(
    actual: Tensor,
    judge: Tensor,
    yardstick: Tensor,
    *,
    magnitude: Tensor | None,
    depth: int,
    tolerance: Tolerance,
    outliers: bool = False,
) -> str:
    """What is wrong with a result's values, in one line; empty where they are right.

    With ``outliers`` the root-mean-square rule is wider: behind an outlier every partial sum is
    rounded at its magnitude, so that the order of summation alone moves the error several times.

    ``magnitude`` is elementwise the sum of the magnitudes of what is summed, ``depth`` the
    number of terms.
    """
    value = actual.double()
    for name, mask in (("NaN", torch.isnan), ("+inf", torch.isposinf), ("-inf", torch.isneginf)):
        wrong = mask(value) != mask(judge)
        if bool(wrong.any()):
            return f"{name} where the reference has none, or none where it has, {_where(wrong)}"
    finite = torch.isfinite(judge)
    yard, own = errors(yardstick, judge), errors(actual, judge)
    roundoff = unit_roundoff(actual.dtype)
    scale = judge.abs() if magnitude is None else magnitude.double()
    bound = (scale * (roundoff * math.sqrt(max(1, depth)))).clamp_min(
        tolerance.max_ratio * yard.max_abs
    )
    distance = (value - judge).abs()
    wrong = finite & ~(distance <= bound)
    if bool(wrong.any()):
        worst = torch.where(finite, distance, 0.0).argmax()
        return (
            f"error {float(distance.flatten()[worst]):.3g} above its bound "
            f"{float(bound.flatten()[worst]):.3g} {_where(wrong)}"
        )
    judge_rms = float(judge[finite].square().mean().sqrt()) if bool(finite.any()) else 0.0
    rms_ratio = tolerance.rms_ratio * (_OUTLIER_SLACK if outliers else 1.0)
    rms_bound = max(rms_ratio * yard.rms, roundoff * judge_rms)
    if not own.rms <= rms_bound:
        return (
            f"root-mean-square error {own.rms:.3g} above {rms_bound:.3g} "
            f"({rms_ratio:g} × the library's)"
        )
    return ""


def _where(wrong: Tensor) -> str:
    """How many elements are wrong and the first of them."""
    first = [int(each) for each in wrong.nonzero()[0]] if wrong.dim() else []
    return f"at {int(wrong.sum())} of {wrong.numel()} elements, first at {first}"
