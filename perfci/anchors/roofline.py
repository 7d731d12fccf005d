"""What a device can do at its best, from the anchors of a run, and the floor that follows. Pure.

The floor of a case is the largest of what its bytes take at the speed of a copy, its operations at
the rate of a product of the same dtype, and a launch of nothing. A term whose anchor was not
measured is left out and said to be: nothing is guessed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from perfci.anchors import CACHE_CASE, COPY, EMPTY, LAUNCH_CASE, MEMORY_CASE, PRODUCT, SMALL
from perfci.history.model import Cell, Status, is_anchor
from perfci.timers import NOT_IN_L2, TIMERS

_NS_PER_S = 1e9
_OF_A_GPU = {each.contract.timer for each in TIMERS.values() if each.device == "cuda"}


class Bound(StrEnum):
    """What of a case the device is slowest at, by its anchors."""

    MEMORY = "memory"
    CACHE = "cache"
    COMPUTE = "compute"
    LAUNCH = "launch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Peaks:
    """What a device reaches under one timer; None and absent what was not measured.

    ``memory_bytes`` is what the copy behind ``memory_bytes_per_s`` moves in a call;
    ``cache_bytes_per_s`` is that of a copy whose data stays in the L2. ``flops_per_s`` are
    (dtype, rate) of products.
    """

    timer: str
    memory_bytes: float | None = None
    memory_bytes_per_s: float | None = None
    cache_bytes_per_s: float | None = None
    flops_per_s: tuple[tuple[str, float], ...] = ()
    empty_ns: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a case has to move and to compute at the least; None what is not known."""

    bytes_moved: float | None
    flops: float | None
    dtype: str | None

    @property
    def intensity(self) -> float | None:
        """Operations a byte; None where nothing is moved or either is unknown."""
        if self.flops is None or not self.bytes_moved:
            return None
        return self.flops / self.bytes_moved


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """The least latency of a case under one timer, and what binds it; None where nothing is known.

    ``lacks`` says which terms had to be left out and why: the floor may be higher than this one.
    """

    timer: str
    latency_ns: float | None = None
    bound: Bound | None = None
    lacks: tuple[str, ...] = ()

    def share(self, latency_ns: float | None) -> float | None:
        """The floor in units of a latency: 1 at the speed of light; None of no time at all."""
        if not latency_ns or self.latency_ns is None:
            return None
        return self.latency_ns / latency_ns


def find_peaks(cells: Iterable[Cell]) -> tuple[Peaks, ...]:
    """What the anchors among the cells of one run say of its device, a timer each."""
    by_timer: dict[str, dict[tuple[str, str], Cell]] = {}
    for cell in cells:
        if is_anchor(cell.kernel) and cell.status is Status.PASSED and cell.contract is not None:
            place = cell.kernel, cell.case.removesuffix(SMALL)
            by_timer.setdefault(cell.contract.timer, {})[place] = cell
    return tuple(_peaks(timer, anchors) for timer, anchors in by_timer.items())


def stays_in_l2(cell: Cell | None) -> bool:
    """Whether a cell was timed with its data in the L2, as its timer says."""
    if cell is None or cell.latency is None or cell.contract is None:
        return False
    return cell.contract.l2 == "resident" and NOT_IN_L2 not in cell.message


def reached_bytes_per_s(cell: Cell | None) -> float | None:
    """What a cell moves a second at the least; None where it moves nothing."""
    return _a_second(cell, "bytes_moved")


def reached_flops_per_s(cell: Cell | None) -> float | None:
    """What a cell computes a second at the least; None where it computes nothing."""
    return _a_second(cell, "flops")


def find_floor(work: Work, peaks: Peaks, *, l2: str, in_l2: bool) -> Floor:
    """The floor of a case under the timer of these peaks.

    ``l2`` is the contract's word for what is in the caches, and ``in_l2`` whether a timer that
    means to keep the data in the L2 does.
    """
    terms: dict[Bound, float] = {}
    lacks: list[str] = []
    _add_transfer(terms, lacks, work, peaks, l2="out" if l2 == "resident" and not in_l2 else l2)
    _add_computing(terms, lacks, work, peaks)
    if peaks.empty_ns is not None:
        terms[Bound.LAUNCH] = peaks.empty_ns
    elif peaks.timer in _OF_A_GPU:
        lacks.append("the launch: none of an empty kernel was measured")
    bound = max(terms, key=lambda each: terms[each], default=None)
    return Floor(
        timer=peaks.timer,
        latency_ns=None if bound is None else terms[bound],
        bound=bound,
        lacks=tuple(lacks),
    )


def _peaks(timer: str, anchors: Mapping[tuple[str, str], Cell]) -> Peaks:
    memory, cache = anchors.get((COPY, MEMORY_CASE)), anchors.get((COPY, CACHE_CASE))
    products = [(case, cell) for (kernel, case), cell in anchors.items() if kernel == PRODUCT]
    return Peaks(
        timer=timer,
        memory_bytes=_value(memory, "bytes_moved"),
        memory_bytes_per_s=reached_bytes_per_s(memory),
        cache_bytes_per_s=reached_bytes_per_s(cache) if stays_in_l2(cache) else None,
        flops_per_s=tuple(
            (dtype, rate) for dtype, cell in products if (rate := reached_flops_per_s(cell))
        ),
        empty_ns=_latency_ns(anchors.get((EMPTY, LAUNCH_CASE))),
    )


def _add_transfer(
    terms: dict[Bound, float], lacks: list[str], work: Work, peaks: Peaks, *, l2: str
) -> None:
    if not work.bytes_moved:
        lacks += ["the bytes: not recorded"] if work.bytes_moved is None else []
        return
    if l2 == "resident":
        bound, bytes_per_s = Bound.CACHE, peaks.cache_bytes_per_s
        lack = "the bytes: no copy within the L2 was measured"
    else:
        bound, bytes_per_s = Bound.MEMORY, peaks.memory_bytes_per_s
        lack = "the bytes: no copy was measured"
    smaller = peaks.memory_bytes is not None and work.bytes_moved < peaks.memory_bytes
    if l2 == "warm" and smaller:
        # What the caches hold is not bound by memory, and how fast they are was not measured.
        lacks.append("the bytes: so few may stay in the caches")
    elif bytes_per_s is None:
        lacks.append(lack)
    else:
        terms[bound] = work.bytes_moved / bytes_per_s * _NS_PER_S


def _add_computing(terms: dict[Bound, float], lacks: list[str], work: Work, peaks: Peaks) -> None:
    if not work.flops:
        lacks += ["the operations: not recorded"] if work.flops is None else []
        return
    rate = None if work.dtype is None else dict(peaks.flops_per_s).get(work.dtype)
    if work.dtype is None:
        lacks.append("the operations: their dtype is not known here")
    elif rate is None:
        lacks.append(f"the operations: no product of {work.dtype} was measured")
    else:
        terms[Bound.COMPUTE] = work.flops / rate * _NS_PER_S


def _a_second(cell: Cell | None, name: str) -> float | None:
    amount, latency_ns = _value(cell, name), _latency_ns(cell)
    return amount / latency_ns * _NS_PER_S if amount and latency_ns else None


def _value(cell: Cell | None, name: str) -> float | None:
    metric = None if cell is None else cell.metric(name)
    return None if metric is None else metric.value


def _latency_ns(cell: Cell | None) -> float | None:
    return None if cell is None or cell.latency is None else cell.latency.typical_ns
