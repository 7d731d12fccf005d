"""Which kernels one call of a variant launches, and how: read from a CUDA graph of the call."""

import math
from collections.abc import Callable, Sequence

import torch

from perfci.binary.ptxas import Compiled
from perfci.binary.symbols import readable
from perfci.gpu.capture import CaptureError, capture_kernels
from perfci.gpu.driver import KernelNode
from perfci.history.model import Launch
from perfci.toolchain import architecture_number


def find_launches(
    call: Callable[[], object], compiled: Sequence[Compiled] = ()
) -> tuple[Launch, ...]:
    """The kernels that a call launches on the current GPU, in order; memcpy and memset are none.

    ``compiled`` is what ptxas says of the variant's own kernels. The call runs once and is then
    captured; where it cannot be, as where it waits for the device, there are no launches. Of more
    than a thousand they are the first.
    """
    try:
        nodes = capture_kernels(call)
    except CaptureError:
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
