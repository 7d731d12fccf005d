"""The arithmetic of a ladder of passes, on arrays; perfci.decision.ladder says what the rule is.

Readings are the natural logarithms of a pass's ratio, contender over baseline. Arrays are of shape
(…, cells), the cells of one family along the last axis.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import betainc, stdtr, stdtrit

from perfci.decision import stats
from perfci.decision.noise import LADDER
from perfci.history.latency import TRIMMED_VARIANCE

CONFIRMATION = 24
"""How many passes come after the last rung where an alarm has still to be confirmed."""

LOOKS = (*LADDER, LADDER[-1] + CONFIRMATION)
"""How many passes there are at each look."""

FEWEST_FRESH = LADDER[0]
"""Fewer passes confirm nothing."""

Array = np.ndarray

_MEDIAN_EFFICIENCY = 0.6
"""How much of what cells tell together of a scale their median keeps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """What is known of each cell before a pass.

    ``spread`` is the standard deviation of a pass's ratio where nothing changed, known with
    ``degrees`` of freedom; ``matters`` is the logarithm of the ratio from which on a change
    matters. Cells of one ``kind``, a number, share what a day does to noise. ``size`` counts all
    cells that are compared, where that is more than are here.
    """

    spread: Array
    degrees: Array
    matters: Array
    kind: Array
    size: int

    @property
    def beyond(self) -> Array:
        """What a change must lie beyond to be called: never inside the noise of a pass."""
        return np.asarray(np.maximum(self.matters, self.spread))


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """What passes show by themselves: NaN, and a ``count`` of 0, of a cell that has too few.

    ``variance`` is that of ``mean``, with ``degrees`` of freedom; ``slower`` counts the passes in
    which the contender was the slower side.
    """

    mean: Array
    variance: Array
    degrees: Array
    count: Array
    slower: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """What is said of each cell: an interval of ``half`` at each side of ``mean``, and verdicts.

    ``slower`` and ``faster`` are alarms. ``waits`` says that more passes may decide, ``visible`` is
    the logarithm of the least ratio that these would have called. ``p_value`` is of the cell alone.
    """

    mean: Array
    half: Array
    visible: Array
    slower: Array
    faster: Array
    unchanged: Array
    significant: Array
    waits: Array
    p_value: Array


def spend(alpha: float, look: int) -> float:
    """What of ``alpha`` a look may spend; all looks together spend it.

    As Lan and DeMets do after Pocock, over the looks that can raise an alarm: none at the first.
    """

    def spent(passes: int) -> float:
        return alpha * math.log1p((math.e - 1.0) * passes / LOOKS[-1])

    if look == 0:
        return 0.0
    return spent(LOOKS[look]) - (spent(LOOKS[look - 1]) if look > 1 else 0.0)


def moments(ratios: Array) -> Moments:
    """What two or more passes show, along the last axis of (…, cells, passes)."""
    count = ratios.shape[-1]
    mean, variance, degrees = stats.trimmed(ratios)
    return Moments(
        mean=mean,
        variance=variance,
        degrees=np.full_like(mean, degrees),
        count=np.full_like(mean, count),
        slower=np.count_nonzero(ratios > 0.0, axis=-1),
    )


def no_moments() -> Moments:
    """Those of one cell that has too few passes."""
    nothing, none = np.full(1, np.nan), np.zeros(1)
    return Moments(mean=nothing, variance=nothing, degrees=nothing, count=none, slower=none)


def join(cells: Sequence[Moments]) -> Moments:
    """Those of several cells as of one family."""
    return Moments(
        **{
            name: np.concatenate([getattr(each, name) for each in cells], axis=-1)
            for name in Moments.__slots__
        }
    )


def rule(
    earlier: Sequence[Array], fresh: Sequence[Moments], now: Moments, family: Family, alpha: float
) -> Ruling:
    """Decide after a look.

    ``now`` is of all passes so far, ``earlier`` holds the means at each look before, and ``fresh``
    what the passes after each of these show. A cell that has not got the passes of this look is
    at the one that it has them of.
    """
    look = np.minimum(np.searchsorted(LOOKS, now.count), len(earlier))
    level = np.array([spend(alpha, each) for each in range(len(LOOKS))])
    today = _today(now, family)
    variance, degrees = _scale(now, today)
    root, size = np.sqrt(variance), np.abs(now.mean)
    half = stdtrit(degrees, 1.0 - alpha / 2.0) * root
    p_values = 2.0 * stdtr(degrees, -size / root)
    significant = (stats.adjust_rows(p_values, family=family.size) <= level[look]) & (
        _sign_test(now) <= level[look]
    )
    clear = size - half > family.beyond
    confirmed = _confirm(earlier, fresh, np.sign(now.mean), family.beyond, today, alpha)
    alarm = clear & significant & confirmed
    unchanged = size + half <= family.matters
    least = stdtrit(degrees, 1.0 - level[np.maximum(look, 1)] / family.size / 2.0) * root
    return Ruling(
        mean=now.mean,
        half=half,
        visible=np.maximum(family.beyond + half, least),
        slower=alarm & (now.mean > 0.0),
        faster=alarm & (now.mean < 0.0),
        unchanged=unchanged,
        significant=significant | (look == 0),
        waits=~alarm & ~unchanged & _may_be_decided(now, size, half, clear, look, family),
        p_value=p_values,
    )


def _today(now: Moments, family: Family) -> Family:
    """The family with the noise of today, where that is above what was studied.

    How far passes lie apart beside what was studied says little of one cell, and much of all cells
    of a kind together: their median raises the spread of each.
    """
    shown = now.variance / _least(now, family.spread)
    factor, known = np.ones_like(shown), np.full_like(shown, np.inf)
    for kind in np.unique(family.kind):
        own = family.kind == kind
        factor[..., own] = np.median(shown[..., own], axis=-1, keepdims=True)
        known[..., own] = _MEDIAN_EFFICIENCY * np.sum(now.degrees[..., own], axis=-1, keepdims=True)
    louder = factor > 1.0
    return replace(
        family,
        spread=family.spread * np.sqrt(np.maximum(factor, 1.0)),
        degrees=np.where(louder, 1.0 / (1.0 / family.degrees + 1.0 / known), family.degrees),
    )


def _least(shown: Moments, spread: Array) -> Array:
    """The variance of a mean of so many passes with this spread."""
    return np.asarray(TRIMMED_VARIANCE * spread**2 / shown.count)


def _scale(shown: Moments, family: Family) -> tuple[Array, Array]:
    """The variance of each mean and its degrees of freedom, as stats.pool_pairs has them."""
    floor = _least(shown, family.spread), family.degrees
    return stats.at_least(floor, (shown.variance, shown.degrees))


def _sign_test(shown: Moments) -> Array:
    """Two-sided p-value of as many passes that agree on the side that is slower.

    It asks nothing of the shape of the noise: a cell that is fast in some processes and slow in
    others may have most of a dozen passes on one side, and none that lies apart from them.
    """
    most = np.maximum(shown.slower, shown.count - shown.slower)
    return np.asarray(np.minimum(1.0, 2.0 * betainc(most, shown.count - most + 1.0, 0.5)))


def _confirm(
    earlier: Sequence[Array],
    fresh: Sequence[Moments],
    sign: Array,
    beyond: Array,
    today: Family,
    alpha: float,
) -> Array:
    """Whether the passes after the first look at which a cell was suspected say so by themselves.

    Suspected is a cell whose mean lies beyond what is called, on the same side as now.
    """
    confirmed = np.zeros(sign.shape, dtype=bool)
    suspected = np.zeros(sign.shape, dtype=bool)
    for mean, shown in zip(earlier, fresh, strict=True):
        first = (sign * mean > beyond) & ~suspected
        suspected |= first
        with np.errstate(divide="ignore", invalid="ignore"):
            variance, degrees = _scale(shown, today)
            low = sign * shown.mean - stdtrit(degrees, 1.0 - alpha) * np.sqrt(variance)
        confirmed |= first & (low > beyond)
    return confirmed


def _may_be_decided(
    now: Moments, size: Array, half: Array, clear: Array, look: Array, family: Family
) -> Array:
    """Where more passes may decide what these did not.

    Up to the last rung they may show a cell that is suspected to have changed, or one whose
    interval they can bring inside the threshold, to have not. After it they can only confirm.
    """
    in_the_end = half * np.sqrt(now.count / LADDER[-1])
    on_the_ladder = (size > family.beyond) | (in_the_end < family.matters)
    last = len(LADDER) - 1
    return np.where(look < last, on_the_ladder, clear & (look == last))
