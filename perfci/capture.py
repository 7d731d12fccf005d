"""One call captured in a CUDA graph that is read and never launched: what it would launch.

The call is captured by the driver and not by ``torch.cuda.graph``. PyTorch cannot give up a
capture that fails: its allocator goes on as if one were under way, its generator refuses to draw,
and the stream of the capture stays the current one. The driver forgets such a capture.
"""

from collections.abc import Callable
from itertools import islice

import torch

from perfci.driver import Driver, KernelNode

_MOST_KERNELS = 1000


class CaptureError(Exception):
    """A call cannot be captured in a CUDA graph, or there is no driver to do it."""


def capture_kernels(call: Callable[[], object], *, relaxed: bool) -> list[KernelNode]:
    """The kernels that a call launches on the current GPU, in order; memcpy and memset are none.

    The call runs once and is then captured. Of more than a thousand kernels they are the first.
    With ``relaxed`` the call may take memory from CUDA by itself. Raises CaptureError where it
    cannot be captured, as where it waits for the device.
    """
    try:
        return _captured(call, Driver(), relaxed=relaxed)
    except Exception as error:
        raise CaptureError(str(error).strip().partition("\n")[0] or "no reason given") from error


def _captured(call: Callable[[], object], driver: Driver, *, relaxed: bool) -> list[KernelNode]:
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        call()  # what the first call on a stream loads and allocates is not captured
        side.synchronize()
        # With a pool in use the allocator records no events, which it could not ask later.
        pool = torch.cuda.MemPool()
        with (
            torch.cuda.use_mem_pool(pool),
            driver.captured(side.cuda_stream, call, relaxed=relaxed) as graph,
        ):
            return list(islice(driver.kernels(graph), _MOST_KERNELS))
