"""What no kernel can undercut on a device, from the anchors of the same run. Pure.

A latency below these bounds was not measured: the work was done elsewhere, earlier or not at all.
They are wider than the floors of perfci.anchors.roofline: a kernel may be better than an anchor.
"""

from collections.abc import Sequence
from dataclasses import replace

from perfci import units
from perfci.anchors.roofline import Peaks, find_peaks
from perfci.history.model import Measurement, Status, is_anchor
from perfci.history.summary import cell

MARGIN = 0.5
"""Below this share of an anchor's figure a reading is not believed.

A copy and a product of random numbers do not reach all that a device can, and what a kernel writes
last may still be on its way from the L2 to memory when it ends.
"""

_NS_PER_S = 1e9


def without_impossible(rows: Sequence[Measurement]) -> tuple[Measurement, ...]:
    """The measurements of one run, those that cannot be true marked as invalid timings.

    Judged are GPUs' timers with a known state of the L2, by each cell's latency.
    """
    peaks = {each.timer: each for each in find_peaks(cell("", row) for row in rows)}
    return tuple(_judged(row, peaks) for row in rows)


def _judged(row: Measurement, peaks: dict[str, Peaks]) -> Measurement:
    contract = row.contract
    if row.status is not Status.PASSED or contract is None or is_anchor(row.kernel):
        return row
    own = peaks.get(contract.timer)
    latency = cell("", row).latency
    if own is None or latency is None or contract.l2 not in ("flushed", "resident"):
        return row
    for bound_ns, reason in _bounds(row, own, flushed=contract.l2 == "flushed"):
        if latency.typical_ns < MARGIN * bound_ns:
            read, least = units.format_latency(latency.typical_ns), units.format_latency(bound_ns)
            message = f"reads {read}, and {reason} takes {least} here: cannot be true"
            return replace(row, status=Status.INVALID_TIMING, message=message, passes=())
    return row


def _bounds(row: Measurement, peaks: Peaks, *, flushed: bool) -> list[tuple[float, str]]:
    """(latency in ns, what takes it), of what was measured."""
    found: list[tuple[float, str]] = []
    if peaks.empty_ns is not None:
        found.append((peaks.empty_ns, "a kernel that does nothing"))
    moved, flops = row.metric("bytes_moved"), row.metric("flops")
    # How fast an L2 can be, no anchor says; behind a flush all has to come from memory.
    if flushed and moved is not None and peaks.memory_bytes_per_s is not None:
        amount = units.format_bytes(moved.value)
        found.append((moved.value / peaks.memory_bytes_per_s * _NS_PER_S, f"copying {amount}"))
    fastest = max((rate for _, rate in peaks.flops_per_s), default=None)
    if flops is not None and fastest is not None:
        reason = "the fastest product of as many operations"
        found.append((flops.value / fastest * _NS_PER_S, reason))
    return found
