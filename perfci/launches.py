"""Which kernels one call of a variant launches, and how: read from a CUDA graph of the call.

The call is captured by the driver and not by ``torch.cuda.graph``. PyTorch cannot give up a
capture that fails: its allocator goes on as if one were under way, its generator refuses to draw,
and the stream of the capture stays the current one. The driver forgets such a capture, and the
graph of one that succeeds is read and never launched.
"""

import math
from collections.abc import Callable, Sequence
from itertools import islice

import torch

from perfci.driver import Driver, KernelNode
from perfci.history.model import Launch
from perfci.ptxas import Compiled
from perfci.symbols import readable
from perfci.toolchain import architecture_number

_MOST_LAUNCHES = 1000


def find_launches(
    call: Callable[[], object], compiled: Sequence[Compiled] = ()
) -> tuple[Launch, ...]:
    """The kernels that a call launches on the current GPU, in order; memcpy and memset are none.

    ``compiled`` is what ptxas says of the variant's own kernels. The call runs once and is then
    captured; where it cannot be, as where it waits for the device, there are no launches. Of more
    than a thousand they are the first.
    """
    try:
        nodes = _captured_kernels(call, Driver())
    except Exception:  # noqa: BLE001 — whatever the call makes of being captured
        return ()
    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    warp, most_threads = properties.warp_size, properties.max_threads_per_multi_processor
    return tuple(
        Launch(
            function=readable(node.symbol),
            grid=node.grid,
            block=node.block,
            registers=node.registers,
            local_bytes=node.local_bytes,
            shared_bytes=node.shared_bytes,
            blocks_per_sm=node.blocks_per_sm,
            occupancy=_occupancy(node, warp=warp, most_threads=most_threads),
            spill_bytes=_spill_bytes(node, compiled),
        )
        for node in nodes
    )


def _captured_kernels(call: Callable[[], object], driver: Driver) -> list[KernelNode]:
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        call()  # what the first call on a stream loads and allocates is not captured
        side.synchronize()
        # With a pool in use the allocator records no events, which it could not ask later.
        pool = torch.cuda.MemPool()
        with torch.cuda.use_mem_pool(pool), driver.captured(side.cuda_stream, call) as graph:
            return list(islice(driver.kernels(graph), _MOST_LAUNCHES))


def _occupancy(node: KernelNode, *, warp: int, most_threads: int) -> float:
    """The share of a multiprocessor's warps that the blocks which fit on it make up."""
    x, y, z = node.block
    warps = math.ceil(x * y * z / warp)
    return min(1.0, node.blocks_per_sm * warps / (most_threads // warp))


def _spill_bytes(node: KernelNode, compiled: Sequence[Compiled]) -> int | None:
    """What ptxas says that the kernel spills as compiled for the architecture that is loaded."""
    for each in compiled:
        is_loaded = architecture_number(each.architecture) == node.architecture
        if each.function == node.symbol and is_loaded:
            return each.spill_bytes
    return None
