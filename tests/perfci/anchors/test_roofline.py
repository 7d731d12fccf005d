"""Floors by hand: which term binds, and which is left out rather than guessed."""

from dataclasses import replace

import pytest
from records import cpu_anchors, gpu_anchors

from perfci.anchors.roofline import Bound, Floor, Peaks, Work, find_floor, find_peaks
from perfci.history.model import Cell, Measurement, Status
from perfci.history.summary import cell
from perfci.timers import NOT_IN_L2, OVERLAPPING


def _cells(measurements: tuple[Measurement, ...]) -> list[Cell]:
    return [cell("r", each) for each in measurements]


def _peaks(timer: str) -> Peaks:
    return next(each for each in find_peaks(_cells(gpu_anchors())) if each.timer == timer)


def _floor(timer: str, work: Work, *, in_l2: bool = True) -> Floor:
    words = {"cold": "flushed", "hot": "resident", "host": "warm"}
    return find_floor(work, _peaks(timer), l2=words[timer], in_l2=in_l2)


def test_peaks_are_what_the_anchors_reached() -> None:
    assert _peaks("cold") == Peaks(
        timer="cold",
        memory_bytes=4e8,
        memory_bytes_per_s=pytest.approx(4e12),
        flops_per_s=(("float32", pytest.approx(5e13)), ("bfloat16", pytest.approx(8e14))),
        empty_ns=2000.0,
    )
    assert _peaks("hot").cache_bytes_per_s == pytest.approx(8e12)


@pytest.mark.parametrize("message", [NOT_IN_L2, f"{OVERLAPPING}; {NOT_IN_L2}"])
def test_a_copy_that_left_the_l2_says_nothing_of_it(message: str) -> None:
    cells = [replace(each, message=message) for each in _cells(gpu_anchors())]
    assert {each.cache_bytes_per_s for each in find_peaks(cells)} == {None}


def test_an_anchor_that_failed_says_nothing() -> None:
    failed = [replace(each, status=Status.TIMEOUT, latency=None) for each in _cells(cpu_anchors())]
    assert find_peaks(failed) == ()


@pytest.mark.parametrize(
    ("timer", "bytes_moved", "flops", "dtype", "in_l2", "latency_ns", "bound"),
    [
        ("cold", 4e7, 1e6, "float32", True, 1e4, Bound.MEMORY),
        ("hot", 8e6, 1e6, "float32", True, 1e3, Bound.CACHE),
        ("hot", 4e7, 1e6, "float32", False, 1e4, Bound.MEMORY),
        ("cold", 4e6, 1e9, "float32", True, 2e4, Bound.COMPUTE),
        ("cold", 4e6, 8e9, "bfloat16", True, 1e4, Bound.COMPUTE),
        ("cold", 100.0, 100.0, "float32", True, 2e3, Bound.LAUNCH),
        ("hot", 100.0, 100.0, "float32", True, 500.0, Bound.LAUNCH),
    ],
)
def test_the_largest_term_binds(
    timer: str,
    bytes_moved: float,
    flops: float,
    dtype: str,
    in_l2: bool,
    latency_ns: float,
    bound: Bound,
) -> None:
    work = Work(bytes_moved=bytes_moved, flops=flops, dtype=dtype)
    floor = _floor(timer, work, in_l2=in_l2)
    assert (floor.latency_ns, floor.bound, floor.lacks) == (pytest.approx(latency_ns), bound, ())


def test_a_term_without_its_anchor_is_left_out_and_said_to_be() -> None:
    half = _floor("cold", Work(bytes_moved=4e7, flops=1e12, dtype="float16"))
    assert (half.latency_ns, half.bound) == (pytest.approx(1e4), Bound.MEMORY)
    assert half.lacks == ("the operations: no product of float16 was measured",)
    unknown = _floor("cold", Work(bytes_moved=None, flops=1e12, dtype=None))
    assert (unknown.bound, len(unknown.lacks)) == (Bound.LAUNCH, 2)
    nothing = find_floor(
        Work(bytes_moved=1.0, flops=1.0, dtype="float32"),
        Peaks(timer="hot"),
        l2="resident",
        in_l2=True,
    )
    assert (nothing.latency_ns, nothing.bound, len(nothing.lacks)) == (None, None, 3)
    assert nothing.lacks[-1] == "the launch: none of an empty kernel was measured"
    assert nothing.share(10.0) is None


def test_what_a_cpus_caches_may_hold_is_not_bound_by_memory() -> None:
    (peaks,) = find_peaks(_cells(cpu_anchors()))
    few = Work(bytes_moved=19e6, flops=1e6, dtype="float32")
    floor = find_floor(few, peaks, l2="warm", in_l2=False)
    assert (floor.latency_ns, floor.bound) == (pytest.approx(1e4), Bound.COMPUTE)
    assert floor.lacks == ("the bytes: so few may stay in the caches",)
    many = replace(few, bytes_moved=20e6)
    floor = find_floor(many, peaks, l2="warm", in_l2=False)
    assert (floor.latency_ns, floor.bound) == (pytest.approx(1e6), Bound.MEMORY)


def test_a_share_is_one_at_the_floor() -> None:
    floor = _floor("cold", Work(bytes_moved=4e7, flops=0, dtype="float32"))
    assert floor.share(1e4) == pytest.approx(1.0)
    assert floor.share(4e4) == pytest.approx(0.25)
    assert floor.share(None) is None


@pytest.mark.parametrize(
    ("bytes_moved", "flops", "intensity"),
    [(4.0, 8.0, 2.0), (0.0, 8.0, None), (None, 8.0, None), (4.0, None, None)],
)
def test_intensity(bytes_moved: float | None, flops: float | None, intensity: float | None) -> None:
    assert Work(bytes_moved=bytes_moved, flops=flops, dtype=None).intensity == intensity
