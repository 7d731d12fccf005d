"""How many passes a latency needs: until its interval is inside a target, or time is up. Pure.

The interval is the latency's own (perfci.history.latency), which every screen shows. A run goes on
until every cell is inside its target or cannot get there, and every pass holds every cell. A cell
that was left alone as soon as its own interval is narrow would be stopped by its own luck: where a
few passes were disturbed and none of them fell among the first, it would stop early and too low.
It would also be measured in other company than before. One that stops with all the others stops,
nearly, at a number of passes that its own figures have no say in.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from perfci.history import latency
from perfci.history.model import Stop

FEWEST_PASSES = 3
MOST_PASSES = 48
_DOUBT = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """Until when passes are added.

    ``target`` is half an interval in units of the latency. ``budget_s`` is what the run may take;
    a pass that would outlast it, by those before, is not begun.
    """

    target: float
    budget_s: float

    def is_over(self, means_ns: Sequence[Sequence[float]], *, passes: int, spent_s: float) -> bool:
        """Whether so many passes are enough, with each timed cell's means.

        A cell may have fewer means than there were passes, of which some were spoilt. Without a
        cell that is still to be timed one pass is enough.
        """
        if passes == 0:
            return False
        if not means_ns or passes >= MOST_PASSES:
            return True
        if passes < FEWEST_PASSES:
            return False
        if spent_s * (passes + 1) / passes > self.budget_s:
            return True
        return all(
            len(each) >= FEWEST_PASSES and stop_of(each, target=self.target) is not Stop.OUT_OF_TIME
            for each in means_ns
        )


def half_width(means_ns: Sequence[float]) -> float:
    """Half of the interval of a latency, in units of it; infinite from less than two passes."""
    return latency.half_width(_logarithms(means_ns))


def stop_of(means_ns: Sequence[float], *, target: float) -> Stop:
    """How it ended for a cell with these passes: inside its target, or not, and would more help.

    They would not where even the least spread that these passes leave plausible (the lower 95 %
    limit of the standard deviation) needs more passes than there may be.
    """
    if half_width(means_ns) <= target:
        return Stop.CONVERGED
    count = len(means_ns)
    if count < FEWEST_PASSES:
        return Stop.OUT_OF_TIME
    if count >= MOST_PASSES:
        return Stop.STABILISED
    from scipy.special import chdtri  # noqa: PLC0415 — a run of a fixed number does without scipy

    known = latency.trim(_logarithms(means_ns))
    least = known.spread * math.sqrt(known.degrees / float(chdtri(known.degrees, _DOUBT)))
    kept = MOST_PASSES - 2 * int(latency.TRIMMED_SHARE * MOST_PASSES)
    narrowest = least * math.sqrt(latency.TRIMMED_VARIANCE / MOST_PASSES)
    hopeless = latency.student(kept - 1) * narrowest > target
    return Stop.STABILISED if hopeless else Stop.OUT_OF_TIME


def _logarithms(means_ns: Sequence[float]) -> list[float]:
    return [math.log(each) for each in means_ns]
