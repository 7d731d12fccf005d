"""One launch at a time with the L2 flushed: what a kernel costs whose data is not in cache.

Before each launch more than twice the L2, at least 256 MiB, is written. That drives out all but
what a kernel has asked the L2 to keep, which is given up before: the driver does so at once and not
in a stream's turn. While it is written the host hands over the launch and its events, so that these
bracket the kernel and not the host's work.

No launch is handed over before the last is done. One that others wait behind began 0.5 µs later on
an H200, and every other one of a stream 0.5 µs later still, so that it mattered which a side met
(2026-11-30). An empty kernel before every other sample lets all meet both alike, and batches take
turns on many streams, and on the places in memory that code and data lie in, so that what is the
matter with one of them averages out.
"""

import contextlib
import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain, cycle, islice, starmap
from math import lcm
from time import monotonic
from weakref import WeakValueDictionary

import torch

from perfci.gpu.driver import DriverError, Persistence
from perfci.timers import InvalidTimingError, Reader, Where, Workload
from perfci.timers.cuda_scattered import Stream, scattered_streams
from perfci.timers.cuda_stream import MOST_DISAGREEMENTS, Blocker, HandOver, Pair, timed

_IN_A_ROW = 4
"""How many samples are read on one stream in one place; of four, two follow an even number of
launches, however many a call has."""
_TURNS = 8
"""How many of these are one batch: what waits for the device every thirtieth time is in each, but
where it always is the call that is not timed. Then it is in another pass, and of two sides, which
are called once more between batches, in another batch."""
_TARGET = 0.003
"""What the samples leave open of a ratio of two sides is 0.22 % then (one standard deviation)."""
_LEAST_FLUSH_BYTES = 256 * 2**20
_STREAMS_BYTES = 2**30
"""What calls may keep in memory for the next ones: PyTorch does so for each stream by itself."""
_FIRST_CALLS_S = 3.0
"""How long first calls on all streams may take; of slow calls no more than a round is read anyhow,
which begins on the first streams."""
_FEWEST_STREAMS = 2 * _TURNS
"""Those of one round of two sides, in which each reads two batches."""

Calls = Iterator[Callable[[], object]]

_buffers: WeakValueDictionary[str, torch.Tensor] = WeakValueDictionary()


def open_reader(workload: Workload) -> Reader:
    """What reads latencies of one call, by events that tick in 32 ns."""
    persistence = Persistence()
    streams = _streams_for(workload)
    turns = _turns(workload, streams)
    first_calls = cycle(workload.calls)
    flush = _flush_buffer(workload.device)
    blocker = Blocker(shortest_ns=0.0)  # the flush takes longer than most calls' launches

    def sample(calls: Calls) -> list[Pair]:
        _give_up_kept(persistence)
        flush.zero_()
        return [timed(next(calls))]

    def shifted_sample(calls: Calls) -> list[Pair]:
        torch.cuda._sleep(0)  # noqa: SLF001
        return sample(calls)

    def prepare(calls: Calls) -> list[Pair]:
        next(calls)()  # so that the multiprocessors have the instructions that lie in this place
        return []

    def samples(stream: Stream, calls: Calls) -> list[HandOver]:
        kinds = [prepare, *[sample, shifted_sample] * (_IN_A_ROW // 2)]
        return [HandOver(partial(each, calls), stream) for each in kinds]

    def call() -> None:
        next(first_calls)()
        torch.cuda.synchronize()

    def begin() -> None:
        nonlocal turns
        turns = _turns(workload, streams)

    def read() -> list[float]:
        torch.cuda.synchronize()  # a stream does not wait for what others have to do
        return blocker.read(*chain(*starmap(samples, islice(turns, _TURNS))))

    everywhere = _IN_A_ROW * max(len(streams), 1 + len(workload.elsewhere))
    return Reader(
        call=call,
        begin=begin,
        read=read,
        minimum_samples=max(everywhere, _IN_A_ROW * _TURNS * MOST_DISAGREEMENTS),
        target=_TARGET,
        where=_where(workload, streams),
    )


def _turns(workload: Workload, streams: Sequence[Stream]) -> Iterator[tuple[Stream, Calls]]:
    """Streams, and calls in each place, without end."""
    places = [cycle(calls) for calls in (workload.calls, *workload.elsewhere)]
    return zip(cycle(streams), cycle(places), strict=False)


def _where(workload: Workload, streams: Sequence[Stream]) -> list[Where]:
    """On what calls are made in each place: on any of the streams whose turn comes with it."""
    count = 1 + len(workload.elsewhere)
    turns = zip(cycle(streams), cycle(range(count)), strict=False)
    met: list[set[Stream]] = [set() for _ in range(count)]
    for stream, place in islice(turns, lcm(len(streams), count)):
        met[place].add(stream)
    return [partial(_on_any, tuple(each)) for each in met]


@contextlib.contextmanager
def _on_any(streams: Sequence[Stream]) -> Iterator[None]:
    """A stream that is chosen only now, behind what came before and before what comes after."""
    (stream,), outer = random.sample(streams, k=1), torch.cuda.current_stream()
    stream.wait_stream(outer)
    with torch.cuda.stream(stream):
        yield
    outer.wait_stream(stream)


def _streams_for(workload: Workload) -> Sequence[Stream]:
    """Streams that have run the workload once, and so have the memory that it takes.

    Fewer where a call allocates much, or takes long. Raises InvalidTimingError where there are none
    to be had.
    """
    torch.cuda.synchronize()
    try:
        streams = scattered_streams(workload.device)
    except DriverError as error:
        raise InvalidTimingError(f"has no stream to be read on: {error}") from error
    allocated_bytes = _allocated_on(streams[0], workload.calls[0])
    fitting = streams[: max(1, _STREAMS_BYTES // max(1, allocated_bytes))]
    spans_s: list[float] = []
    for stream, calls in islice(_turns(workload, fitting), 1, len(fitting)):
        if _are_enough(spans_s):
            break
        began_s = monotonic()
        with torch.cuda.stream(stream):
            next(calls)()
        torch.cuda.synchronize()
        spans_s.append(monotonic() - began_s)
    return fitting[: 1 + len(spans_s)]


def _are_enough(spans_s: Sequence[float]) -> bool:
    """Whether calls on further streams would take too long, as far as the shortest so far tells.

    Which is not the host's doing, nor what a first call loads.
    """
    count = 1 + len(spans_s)
    return count >= _FEWEST_STREAMS and count * min(spans_s) > _FIRST_CALLS_S


def _allocated_on(stream: Stream, call: Callable[[], object]) -> int:
    """How many bytes a call has at most of what it allocates, and gives back.

    What stays, as cuBLAS's workspace of a stream, is there from the first of two sides on: counted,
    it would be of that one alone, which would have fewer streams than the other.
    """
    with torch.cuda.stream(stream):
        call()
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before_bytes = torch.cuda.memory_allocated()
        call()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before_bytes


def _give_up_kept(persistence: Persistence) -> None:
    """Let the L2 keep nothing; a device that cannot keep anything cannot give it up either."""
    with contextlib.suppress(DriverError):
        persistence.end()


def _flush_buffer(device: str) -> torch.Tensor:
    """What is written to flush the L2: for two sides the same, wherever it lies."""
    buffer = _buffers.get(device)
    if buffer is None:
        l2_bytes = torch.cuda.get_device_properties(device).L2_cache_size
        size = max(2 * l2_bytes, _LEAST_FLUSH_BYTES)
        _buffers[device] = buffer = torch.empty(size, dtype=torch.uint8, device=device)
    return buffer
