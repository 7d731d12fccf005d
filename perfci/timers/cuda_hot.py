"""Replays of CUDA graphs of many launches: what a kernel costs whose data is in the L2.

The launches rotate over sets of inputs and outputs that together fit in a quarter of the L2;
where not even one does, the row says so. A replay is so long that the events' tick of 32 ns and
the graph's own launch do not show.

Batches take turns on several graphs. What calls allocate lies in each of them elsewhere, for good,
and ten graphs of one compiled function lay 0.4 % apart, each within 0.003 % of itself (an H200,
2026-11-30): of two sides with a graph each, one seemed slower.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle

import torch

from perfci.collector import uncollected
from perfci.gpu.capture import CaptureError, require_replayable
from perfci.timers import (
    MINIMUM_SAMPLES,
    NOT_IN_L2,
    OVERLAPPING,
    InvalidTimingError,
    Reader,
    Workload,
)
from perfci.timers.cuda_stream import Blocker, HandOver, Pair, timed

_REPLAY_NS = 400_000
_FEWEST_LAUNCHES = 4
_MOST_LAUNCHES = 400
_L2_SHARE = 0.25
_BATCH_SAMPLES = 5
_GRAPHS = 8
_GRAPHS_BYTES = 2**30
"""What graphs may keep in memory for what is allocated in them; PyTorch does so for each."""
_FIRST_REPLAYS_NS = 3e9
"""How long replaying each graph once may take; of slow calls few batches are read anyhow."""
_FEWEST_GRAPHS = 2

Graph = torch.cuda.CUDAGraph


@dataclass(frozen=True, slots=True, eq=False)
class _Captured:
    """A graph, and what the first call returned last in it."""

    graph: Graph
    returned: object


def open_reader(workload: Workload) -> Reader:
    """What reads latencies of one call, each the mean over a replay's launches.

    Raises InvalidTimingError where a call cannot be captured.
    """
    limit_bytes = _L2_SHARE * torch.cuda.get_device_properties(workload.device).L2_cache_size
    fitting = int(limit_bytes // max(1, workload.set_bytes))
    calls = workload.calls[: max(1, fitting)]
    overlapping = _overlaps(calls[0])
    blocker = Blocker()
    _settle(calls)
    probe = _captured(calls, _FEWEST_LAUNCHES).graph
    probe_ns = min(blocker.read(HandOver(lambda: _replayed(probe))))
    wanted = int(_REPLAY_NS * _FEWEST_LAUNCHES / probe_ns)
    launches = max(_FEWEST_LAUNCHES, min(_MOST_LAUNCHES, wanted))
    graphs = _captured_in_places(calls, launches, probe_ns / _FEWEST_LAUNCHES)
    turns = cycle(graphs)
    turn = next(turns)
    read_from: list[_Captured] = []
    replays: list[Callable[[], object]] = []

    def call() -> None:
        turn.graph.replay()
        torch.cuda.synchronize()

    def begin() -> None:
        nonlocal turns, turn
        turns = cycle(graphs)
        turn = next(turns)

    def read() -> list[float]:
        nonlocal turn
        graph = turn.graph
        replays_ns = blocker.read(HandOver(lambda: _replayed(graph)))
        if turn not in read_from:
            read_from.append(turn)
            replays.append(partial(_replayed_alone, turn, workload.poison))
        turn = next(turns)
        return [replay_ns / launches for replay_ns in replays_ns]

    notes = [*([OVERLAPPING] if overlapping else []), *([] if fitting else [NOT_IN_L2])]
    return Reader(
        call=call,
        begin=begin,
        read=read,
        loops=launches,
        minimum_samples=max(MINIMUM_SAMPLES, _BATCH_SAMPLES * len(graphs)),
        note="; ".join(notes),
        replays=replays,
    )


def _overlaps(call: Callable[[], object]) -> bool:
    """Whether launches in a row would overlap; InvalidTimingError where none can be captured.

    Asked before PyTorch tries to, which could not give up a capture.
    """
    try:
        return require_replayable(call)
    except CaptureError as error:
        raise InvalidTimingError(f"cannot be captured in a CUDA graph: {error}") from error


def _settle(calls: Sequence[Callable[[], object]]) -> None:
    """Call each on a stream as it will be captured on: what a first call does is done then."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for call in calls:
            call()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()


def _replayed(graph: Graph) -> list[Pair]:
    graph.replay()  # so that what lies in this graph's memory is in the L2
    return [timed(graph.replay) for _ in range(_BATCH_SAMPLES)]


def _replayed_alone(captured: _Captured, poison: Callable[[object], None]) -> object:
    """What a graph returns, wiped before: other graphs may write to where it should have written.

    So may the calls before it was captured have done.
    """
    poison(captured.returned)
    captured.graph.replay()
    torch.cuda.synchronize()
    return captured.returned


def _captured_in_places(
    calls: Sequence[Callable[[], object]], launches: int, launch_ns: float
) -> list[_Captured]:
    """Graphs that have been replayed once; fewer where each takes much memory, or long."""
    before_bytes = torch.cuda.memory_reserved()
    captured = [_captured(calls, launches)]
    count = _count_graphs(
        taken_bytes=torch.cuda.memory_reserved() - before_bytes,
        free_bytes=torch.cuda.mem_get_info()[0],  # all there is: a capture gives back what is kept
        replay_ns=launches * launch_ns,
    )
    captured += [_captured(calls, launches) for _ in range(count - 1)]
    for each in captured:
        each.graph.replay()
    torch.cuda.synchronize()
    return captured


def _count_graphs(*, taken_bytes: int, free_bytes: int, replay_ns: float) -> int:
    """How many graphs there are of which each takes that much memory, and a replay so long.

    ``free_bytes`` is what is left beside the first, half of which is for the other side.
    """
    fitting = min(_GRAPHS_BYTES, free_bytes // 2) // max(1, taken_bytes)
    in_time = int(_FIRST_REPLAYS_NS / replay_ns)
    return max(1, min(_GRAPHS, fitting, max(_FEWEST_GRAPHS, in_time)))


def _captured(calls: Sequence[Callable[[], object]], launches: int) -> _Captured:
    """A graph of that many launches, the calls taking turns."""
    graph = torch.cuda.CUDAGraph()
    returned: object = None
    last = (launches - 1) // len(calls) * len(calls)
    with uncollected(), torch.cuda.graph(graph):
        for index in range(launches):
            if index == last:
                returned = calls[0]()
            else:
                calls[index % len(calls)]()
    return _Captured(graph, returned)
