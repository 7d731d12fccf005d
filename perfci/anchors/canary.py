"""Whether the L2 was flushed, as the anchors of the same run say. Pure.

A copy within the L2 must take longer behind a flush than out of the L2. From both is taken what a
launch of nothing takes under the same timer, since that differs too.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from perfci import units
from perfci.anchors import CACHE_CASE, COPY, EMPTY, LAUNCH_CASE
from perfci.history.model import Measurement, Status
from perfci.history.summary import summarise
from perfci.timers import NOT_IN_L2

NOT_FLUSHED = "the L2 was not flushed"
LEAST_SLOWER = 1.25
"""How many times as long the copy takes behind a flush at the least; on an H200 it is twice."""


def without_unflushed(rows: Sequence[Measurement]) -> tuple[Measurement, ...]:
    """The measurements of one run; where its flush does not work, none that is behind one.

    Without the anchors, and where the copy does not fit in the L2, nothing is known of it.
    """
    reason = find_fault(rows)
    return tuple(_refused(row, reason) if reason and _l2(row) == "flushed" else row for row in rows)


def find_fault(rows: Iterable[Measurement]) -> str:
    """What shows that the flush does not work; empty where it does, or where nothing is known."""
    anchors = {(row.kernel, row.case, _l2(row)): row for row in rows if row.passes}
    nets_ns = []
    for l2 in ("flushed", "resident"):
        copy, empty = anchors.get((COPY, CACHE_CASE, l2)), anchors.get((EMPTY, LAUNCH_CASE, l2))
        if copy is None or empty is None or NOT_IN_L2 in copy.message:
            return ""
        nets_ns.append(_latency_ns(copy) - _latency_ns(empty))
    behind_ns, out_of_it_ns = nets_ns
    if out_of_it_ns <= 0 or behind_ns >= LEAST_SLOWER * out_of_it_ns:
        return ""
    behind, out_of_it = (units.format_latency(max(0.0, each)) for each in nets_ns)
    return (
        f"{NOT_FLUSHED}: the anchor's copy takes {behind} behind the flush and "
        f"{out_of_it} out of the L2, without the launch"
    )


def _refused(row: Measurement, reason: str) -> Measurement:
    if row.status is not Status.PASSED:
        return row
    return replace(row, status=Status.INVALID_TIMING, message=reason, passes=())


def _l2(row: Measurement) -> str:
    return "" if row.contract is None else row.contract.l2


def _latency_ns(row: Measurement) -> float:
    return summarise(row.passes).typical_ns
