"""One call captured in a CUDA graph that is read and never launched: what it would launch.

The call is captured by the driver and not by ``torch.cuda.graph``. PyTorch cannot give up a
capture that fails: its allocator goes on as if one were under way, its generator refuses to draw,
and the stream of the capture stays the current one. The driver forgets such a capture.
"""

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice

import torch

from perfci.collector import uncollected
from perfci.gpu.driver import Driver, KernelNode

_MOST_KERNELS = 1000


class CaptureError(Exception):
    """A call cannot be captured in a CUDA graph, or there is no driver to do it."""


def capture_kernels(call: Callable[[], object]) -> list[KernelNode]:
    """The kernels that a call launches on the current GPU, in order; memcpy and memset are none.

    The call runs once and is then captured. Of more than a thousand kernels they are the first.
    Raises CaptureError where it cannot be captured, as where it waits for the device.
    """
    # Relaxed, since nothing is launched: memory that the call takes from CUDA by itself and gives
    # back would be gone at a launch, and is no matter here.
    with _errors(), _captured(call, driver := Driver(), relaxed=True) as graph:
        return list(islice(driver.kernels(graph), _MOST_KERNELS))


def require_replayable(call: Callable[[], object]) -> bool:
    """Whether several calls in a graph would overlap, each beginning before the last has ended.

    The call runs once and is then captured twice in a row. Raises CaptureError where what it does
    cannot be captured so that it can be launched again, and where it does nothing.
    """

    def twice() -> None:
        call()
        call()

    with _errors(), _captured(twice, driver := Driver(), relaxed=False) as graph:
        if driver.is_empty(graph):
            raise CaptureError("nothing is launched on the stream of the call")
        return driver.overlaps(graph)


@contextmanager
def _errors() -> Iterator[None]:
    """Whatever goes wrong with a capture, as a CaptureError of one line."""
    try:
        yield
    except CaptureError:
        raise
    except Exception as error:
        # The frames of what has failed hold its memory, and would until they are collected.
        failed: BaseException | None = error
        while failed is not None:
            traceback.clear_frames(failed.__traceback__)
            failed = failed.__context__
        raise CaptureError(str(error).strip().partition("\n")[0] or "no reason given") from error


@contextmanager
def _captured(call: Callable[[], object], driver: Driver, *, relaxed: bool) -> Iterator[int]:
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with uncollected(), torch.cuda.stream(side):
        call()  # what the first call on a stream loads and allocates is not captured
        side.synchronize()
        # With a pool in use the allocator records no events, which it could not ask later.
        pool = torch.cuda.MemPool()
        with (
            torch.cuda.use_mem_pool(pool),
            driver.captured(side.cuda_stream, call, relaxed=relaxed) as graph,
        ):
            yield graph
