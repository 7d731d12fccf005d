"""Whether the host was in time, and the second clock, on a double of a GPU that keeps time.

No machine without a GPU has a stream. On a real one: tests/perfci/timers/test_cuda_gpu.py.
"""

from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from perfci.timers import InvalidTimingError, cuda_stream
from perfci.timers.cuda_stream import Blocker, HandOver, timed

_US, _MS = 1e3, 1e6
_FLUSH_NS = 75 * _US
_KERNEL_NS = 4 * _US
_BATCH = 32


class _Gpu:
    """A stream and a side stream, on the clock of a host to which each step takes a microsecond."""

    def __init__(self) -> None:
        self.now_ns = 0.0
        self.free_ns = 0.0
        self.side_ns = 0.0

    def launch(self, duration_ns: float) -> None:
        self.now_ns += _US
        self.free_ns = max(self.free_ns, self.now_ns) + duration_ns

    def synchronize(self) -> None:
        self.now_ns = max(self.now_ns, self.free_ns, self.side_ns) + _US

    def clock_ns(self) -> int:
        return int(self.now_ns)


class _Event:
    gpu: _Gpu

    def __init__(self, *, enable_timing: bool) -> None:
        assert enable_timing
        self.at_ns = 0.0

    def record(self) -> None:
        self.gpu.launch(0.0)
        self.at_ns = self.gpu.free_ns

    def query(self) -> bool:
        return self.at_ns <= self.gpu.now_ns

    def synchronize(self) -> None:
        self.gpu.now_ns = max(self.gpu.now_ns, self.at_ns)

    def elapsed_time(self, end: "_Event") -> float:
        return (end.at_ns - self.at_ns) / _MS


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> _Gpu:
    gpu = _Gpu()
    cuda = SimpleNamespace(
        _sleep=lambda cycles: gpu.launch(cycles / 2.0),
        synchronize=gpu.synchronize,
        stream=lambda _: nullcontext(),
    )
    monkeypatch.setattr(_Event, "gpu", gpu, raising=False)
    monkeypatch.setattr(cuda_stream, "Event", _Event)
    monkeypatch.setattr(cuda_stream, "torch", SimpleNamespace(cuda=cuda))
    monkeypatch.setattr(cuda_stream, "perf_counter_ns", gpu.clock_ns)
    return gpu


def _read_cold(
    gpu: _Gpu, call: Callable[[int], None], *, batches: int = 1, blocker: Blocker | None = None
) -> list[float]:
    """Batches as ``cold`` reads them; a call is told how many came before it."""
    blocker = blocker or Blocker(shortest_ns=0.0)
    calls, samples_ns = iter(range(10**6)), []

    def sample() -> list[cuda_stream.Pair]:
        gpu.launch(_FLUSH_NS)
        return [timed(lambda: call(next(calls)))]

    for _ in range(batches):
        samples_ns += blocker.read(*[HandOver(sample)] * _BATCH)
    return samples_ns


def _hand_overs(gpu: _Gpu, call: Callable[[], object]) -> list[HandOver]:
    """A batch with the calls that come before what is timed in a place."""

    def prepare() -> list[cuda_stream.Pair]:
        call()
        return []

    def sample() -> list[cuda_stream.Pair]:
        gpu.launch(_FLUSH_NS)
        return [timed(call)]

    return [*map(HandOver, [prepare, *[sample] * 4])] * (_BATCH // 4)


def test_what_is_handed_over_in_time_is_as_long_as_the_kernel(gpu: _Gpu) -> None:
    samples_ns = _read_cold(gpu, lambda _: gpu.launch(_KERNEL_NS), batches=3)
    assert samples_ns == pytest.approx([_KERNEL_NS] * 3 * _BATCH)


def test_a_slow_hand_over_waits_behind_a_longer_block_and_counts_nothing_before(gpu: _Gpu) -> None:
    called: list[int] = []

    def call(number: int) -> None:
        called.append(number)
        gpu.now_ns += 900 * _US
        gpu.launch(_KERNEL_NS)

    assert _read_cold(gpu, call) == pytest.approx([_KERNEL_NS] * _BATCH)
    assert len(called) > _BATCH


@pytest.mark.parametrize("every", [1, 2, 5, 20, 30])
def test_what_waits_for_the_device_now_and_then_is_not_read_by_the_other_calls(
    gpu: _Gpu, every: int
) -> None:
    def call(number: int) -> None:
        if number % every == 0:
            gpu.launch(400 * _US)
            gpu.synchronize()
        gpu.launch(_KERNEL_NS)

    with pytest.raises(InvalidTimingError, match="waits for the device"):
        _read_cold(gpu, call, batches=5)


@pytest.mark.parametrize("phase", range(5))
@pytest.mark.parametrize("every", [5, 10, 30, 40])
def test_of_two_sides_it_is_not_for_ever_the_call_that_is_not_timed(
    gpu: _Gpu, every: int, phase: int
) -> None:
    numbers, blocker = iter(range(phase, 10**6)), Blocker(shortest_ns=0.0)

    def call() -> None:
        if next(numbers) % every == 0:
            gpu.launch(400 * _US)
            gpu.synchronize()
        gpu.launch(_KERNEL_NS)

    def read_batches() -> None:
        for _ in range(9):
            call()
            blocker.read(*_hand_overs(gpu, call))

    with pytest.raises(InvalidTimingError, match="waits for the device"):
        read_batches()


def test_once_a_host_was_late_it_is_given_more_and_less_little_by_little(gpu: _Gpu) -> None:
    blocker, late = Blocker(shortest_ns=0.0), iter([5 * _MS])

    def call(_: int) -> None:
        gpu.now_ns += next(late, 5 * _US)
        gpu.launch(_KERNEL_NS)

    took_ns = []
    for _ in range(60):
        began_ns = gpu.now_ns
        _read_cold(gpu, call, blocker=blocker)
        took_ns.append(gpu.now_ns - began_ns)
    assert took_ns[1] > 0.8 * took_ns[0] / 2  # the first batch was read twice
    assert took_ns == sorted(took_ns, reverse=True)
    assert took_ns[-1] < 1.5 * _BATCH * (_FLUSH_NS + _KERNEL_NS)


def test_a_host_that_was_held_up_once_reads_the_batch_again(gpu: _Gpu) -> None:
    def call(number: int) -> None:
        gpu.now_ns += 5 * _MS if number == 7 else 0.0
        gpu.launch(_KERNEL_NS)

    assert _read_cold(gpu, call) == pytest.approx([_KERNEL_NS] * _BATCH)


def test_what_takes_long_to_launch_is_read_among_calls_that_are_not_timed(gpu: _Gpu) -> None:
    """As a variant does that calls thousands of functions: 18 ms on the host."""

    def call() -> None:
        gpu.now_ns += 18 * _MS
        gpu.launch(_KERNEL_NS)

    hand_overs = _hand_overs(gpu, call)
    assert Blocker(shortest_ns=0.0).read(*hand_overs) == pytest.approx([_KERNEL_NS] * _BATCH)


def _leaves(gpu: _Gpu, left_ns: float, every: int) -> Callable[[int], None]:
    def call(number: int) -> None:
        gpu.launch(_KERNEL_NS)
        if number % every == 0:
            gpu.side_ns = max(gpu.side_ns, gpu.free_ns) + left_ns

    return call


@pytest.mark.parametrize("left_ns", [0.2 * _MS, 1 * _MS, 1000 * _MS])
@pytest.mark.parametrize("every", [1, 5])
def test_what_a_call_leaves_to_another_stream_is_seen(
    gpu: _Gpu, left_ns: float, every: int
) -> None:
    with pytest.raises(InvalidTimingError, match="when the last event has come"):
        _read_cold(gpu, _leaves(gpu, left_ns, every), batches=5)


def test_a_host_that_was_held_up_in_a_tenth_of_the_readings_is_no_contradiction(gpu: _Gpu) -> None:
    samples_ns = _read_cold(gpu, _leaves(gpu, 1 * _MS, 10), batches=10)
    assert samples_ns == pytest.approx([_KERNEL_NS] * 10 * _BATCH)


def test_what_is_not_to_be_timed_is_done_before_the_next_however_long_it_takes(gpu: _Gpu) -> None:
    began: list[bool] = []

    def prepare() -> list[cuda_stream.Pair]:
        gpu.now_ns += 900 * _US
        gpu.launch(5 * _MS)
        return []

    def sample() -> list[cuda_stream.Pair]:
        began.append(gpu.free_ns > gpu.now_ns + _US)
        gpu.launch(_FLUSH_NS)
        return [timed(lambda: gpu.launch(_KERNEL_NS))]

    blocker = Blocker(shortest_ns=0.0)
    for _ in range(10):
        samples_ns = blocker.read(HandOver(prepare), HandOver(sample))
        assert samples_ns == pytest.approx([_KERNEL_NS])
    assert not any(began)


def test_a_launch_of_nothing_takes_no_time(gpu: _Gpu) -> None:
    with pytest.raises(InvalidTimingError, match="nothing was launched"):
        _read_cold(gpu, lambda _: None)


def _compare(blocker: Blocker, *pairs_ms: tuple[float, float]) -> None:
    for events_ms, host_ms in pairs_ms:
        blocker._compare_clocks(events_ms * _MS, host_ms * _MS)


@pytest.mark.parametrize("apart", [(2.0, 2.4), (2.4, 2.0), (100.0, 104.0), (100.0, 96.0)])
def test_clocks_that_agree_are_believed(apart: tuple[float, float]) -> None:
    blocker = Blocker()
    _compare(blocker, *[apart] * 50)
    assert blocker._contradicted == 0


@pytest.mark.parametrize("apart", [(2.0, 2.6), (0.001, 3.0), (100.0, 106.0), (100.0, 90.0)])
def test_clocks_that_never_agree_are_not(apart: tuple[float, float]) -> None:
    blocker = Blocker()
    _compare(blocker, *[apart] * 4)
    with pytest.raises(InvalidTimingError, match="neither is believed"):
        _compare(blocker, apart)


def test_a_host_that_was_kept_waiting_now_and_then_is_no_contradiction() -> None:
    blocker = Blocker()
    _compare(blocker, *[(2.0, 9.0), (2.0, 9.0), (2.0, 9.0), (2.0, 9.0), (2.0, 2.1)] * 20)
    assert blocker._contradicted == 0
