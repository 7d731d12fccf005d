"""Which end of a bisection a commit is like, from passes or from checks. Pure.

*Latencies.* A commit is measured beside the good end, in the same passes. What is tested is not
whether it differs from the good end, but on which side of half of the change it lies that was
proved between the ends: there the two answers are furthest apart. It is decided once the chance of
the wrong side, of a t-type statistic whose scale is never below the testbed's noise, times the
number of looks at the ladder, is below :data:`ERROR`. A commit that more passes than there are do
not decide, and that clearly has some of the change, is bad: the change came in parts.

The good end alone is beside it, since for the same time on the device that tells more than both
ends do: the variance of a pass's ratio is a third larger, and it takes two thirds of the time.

*Checks.* A commit that was wrong once is bad, since the good end never was. One that was right is
good once the bad end, wrong as often as it was, would hardly have been right so many times.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from scipy.special import stdtr

from perfci.bisect.bisection import Likeness
from perfci.decision import stats
from perfci.decision.rule import LOOKS

ERROR = 0.01
"""The chance that one verdict is wrong, at most."""

HALF, PART = 0.5, 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Which end it is, None where it is not known yet; the chance that this is wrong."""

    likeness: Likeness | None
    error: float
    is_part: bool = False


def place(own: stats.Estimate, change: stats.Estimate, *, is_last: bool) -> Answer:
    """Which end a commit is like by its change against the good one and that of the bad end.

    Both are of logarithms of ratios, that of the ends above 0. ``is_last`` says that there will be
    no more passes.
    """
    answer = _side_of(own, change, HALF)
    if answer.likeness is None and is_last:
        part = _side_of(own, change, PART)
        if part.likeness is Likeness.BAD:
            return replace(part, is_part=True)
    return answer


def _side_of(own: stats.Estimate, change: stats.Estimate, share: float) -> Answer:
    line = replace(change, mean=share * change.mean, variance=share**2 * change.variance)
    beyond = stats.subtract(own, line)
    statistic = abs(beyond.mean) / math.sqrt(beyond.variance)
    error = min(1.0, len(LOOKS) * float(stdtr(beyond.degrees, -statistic)))
    if error > ERROR:
        return Answer(likeness=None, error=error)
    likeness = Likeness.BAD if beyond.mean > 0.0 else Likeness.GOOD
    return Answer(likeness=likeness, error=error)


def count_needed(wrong: int, checks: int) -> int:
    """How often a commit must be right to be good, where the bad end was wrong in so many checks.

    Two at the least, and none of one check is trusted.
    """
    return max(2, math.ceil(math.log(ERROR) / math.log1p(-_share(wrong, checks))))


def chance_right(wrong: int, checks: int, *, times: int) -> float:
    """The chance that the bad end would be right in so many checks."""
    return (1.0 - _share(wrong, checks)) ** times


def _share(wrong: int, checks: int) -> float:
    return (wrong + 0.5) / (checks + 1.0)


def trust(errors: Sequence[float]) -> float:
    """The chance that none of some verdicts is wrong, each by itself."""
    return math.exp(math.fsum(math.log1p(-min(each, 0.5)) for each in errors))
