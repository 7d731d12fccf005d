"""How far the axis of latencies reaches, where an interval is out of all proportion. Pure."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from perfci.dashboard.states import Scale
from perfci.history.latency import LatencySummary

_PROPORTION = 2.0
_MARGIN = 0.04


@dataclass(frozen=True, slots=True, kw_only=True)
class Edges:
    """What of the latencies is in sight; ``high_ns`` is infinite where nothing has to be cut."""

    low_ns: float = -math.inf
    high_ns: float = math.inf

    def cut(self, latency: LatencySummary) -> bool:
        """Whether an interval reaches beyond them."""
        ends = latency.interval_ns or ()
        return any(not self.low_ns <= each <= self.high_ns for each in ends)

    def span_us(self, scale: Scale) -> tuple[float, float] | None:
        """The axis's range, a little wider, as plotly takes it; None where it may choose."""
        if math.isinf(self.high_ns):
            return None
        low_us, high_us = self.low_ns / 1e3, self.high_ns / 1e3
        if scale == "log":
            low_us, high_us = math.log10(low_us), math.log10(high_us)
        margin = _MARGIN * (high_us - low_us)
        return (low_us - margin if scale == "log" else low_us, high_us + margin)


def find_edges(latencies: Iterable[LatencySummary], scale: Scale) -> Edges:
    """Let the axis reach as far as latencies do, and intervals up to twice that.

    One wild interval would press all lines onto the axis. Where none is wilder nothing is cut.
    """
    latencies = list(latencies)
    typical_ns = [each.typical_ns for each in latencies if 0 < each.typical_ns < math.inf]
    if not typical_ns:
        return Edges()
    least_ns = min(typical_ns) / _PROPORTION if scale == "log" else 0.0
    most_ns = max(typical_ns) * _PROPORTION
    ends_ns = [end for each in latencies for end in each.interval_ns or ()]
    seen_ns = [each for each in (*typical_ns, *ends_ns) if least_ns <= each <= most_ns]
    if all(least_ns <= each <= most_ns for each in ends_ns):
        return Edges()
    return Edges(low_ns=min(seen_ns) if scale == "log" else 0.0, high_ns=max(seen_ns))
