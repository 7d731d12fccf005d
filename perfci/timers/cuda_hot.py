"""Replays of a CUDA graph of many launches: what a kernel costs whose data is in the L2.

The launches rotate over sets of inputs and outputs that together fit in a quarter of the L2;
where not even one does, the row says so. A replay is so long that the events' tick of 32 ns and
the graph's own launch do not show.
"""

from collections.abc import Callable, Sequence

import torch

from perfci.collector import uncollected
from perfci.gpu.capture import CaptureError, require_replayable
from perfci.timers import NOT_IN_L2, OVERLAPPING, InvalidTimingError, Reader, Workload
from perfci.timers.cuda_stream import Blocker, timed

_REPLAY_NS = 400_000
_FEWEST_LAUNCHES = 4
_MOST_LAUNCHES = 400
_L2_SHARE = 0.25
_BATCH_SAMPLES = 5


def open_reader(workload: Workload) -> Reader:
    """What reads latencies of one call, each the mean over a replay's launches.

    Raises InvalidTimingError where a call cannot be captured.
    """
    limit_bytes = _L2_SHARE * torch.cuda.get_device_properties(workload.device).L2_cache_size
    fitting = int(limit_bytes // max(1, workload.set_bytes))
    calls = workload.calls[: max(1, fitting)]
    overlapping = _overlaps(calls[0])
    blocker = Blocker()
    probe, _ = _captured(calls, _FEWEST_LAUNCHES)
    probe_ns = min(blocker.read(lambda: [timed(probe.replay) for _ in range(_BATCH_SAMPLES)]))
    wanted = int(_REPLAY_NS * _FEWEST_LAUNCHES / probe_ns)
    launches = max(_FEWEST_LAUNCHES, min(_MOST_LAUNCHES, wanted))
    graph, returned = _captured(calls, launches)
    # What the calls before the capture wrote must not pass for what a replay writes.
    workload.poison(returned)

    def call() -> None:
        graph.replay()
        torch.cuda.synchronize()

    def read() -> list[float]:
        replays_ns = blocker.read(lambda: [timed(graph.replay) for _ in range(_BATCH_SAMPLES)])
        return [replay_ns / launches for replay_ns in replays_ns]

    notes = [*([OVERLAPPING] if overlapping else []), *([] if fitting else [NOT_IN_L2])]
    return Reader(call=call, read=read, loops=launches, note="; ".join(notes), returned=returned)


def _overlaps(call: Callable[[], object]) -> bool:
    """Whether launches in a row would overlap; InvalidTimingError where none can be captured.

    Asked before PyTorch tries to, which could not give up a capture.
    """
    try:
        return require_replayable(call)
    except CaptureError as error:
        raise InvalidTimingError(f"cannot be captured in a CUDA graph: {error}") from error


def _captured(
    calls: Sequence[Callable[[], object]], launches: int
) -> tuple[torch.cuda.CUDAGraph, object]:
    """A graph of that many launches, the calls taking turns; what the first returned last."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for call in calls:
            call()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    returned: object = None
    last = (launches - 1) // len(calls) * len(calls)
    with uncollected(), torch.cuda.graph(graph):
        for index in range(launches):
            if index == last:
                returned = calls[0]()
            else:
                calls[index % len(calls)]()
    return graph, returned
