"""CUDA's driver API, by ctypes: streams, what a captured graph would launch, what the L2 keeps.

Structures, numbers and signatures are cuda.h's, with which tests compare them; functions go by
the names that its macros stand for. A driver of CUDA 12.3 or later has all of them, one of 11 those
that make streams and ask about the L2.
"""

import ctypes
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from ctypes import POINTER, byref, c_char_p, c_float, c_int, c_size_t, c_ubyte, c_uint, c_void_p
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import Any


class EdgeData(ctypes.Structure):
    """``CUgraphEdgeData``. ``type`` says of what kind a dependency is, 0 for the ordinary one."""

    _fields_ = [
        ("from_port", c_ubyte),
        ("to_port", c_ubyte),
        ("type", c_ubyte),
        ("reserved", c_ubyte * 5),
    ]


class KernelNodeParams(ctypes.Structure):
    """``CUDA_KERNEL_NODE_PARAMS_v2``. ``kern`` says what is launched where ``func`` is NULL."""

    _fields_ = [
        ("func", c_void_p),
        ("gridDimX", c_uint),
        ("gridDimY", c_uint),
        ("gridDimZ", c_uint),
        ("blockDimX", c_uint),
        ("blockDimY", c_uint),
        ("blockDimZ", c_uint),
        ("sharedMemBytes", c_uint),
        ("kernelParams", c_void_p),
        ("extra", c_void_p),
        ("kern", c_void_p),
        ("ctx", c_void_p),
    ]


class AccessPolicyWindow(ctypes.Structure):
    """``CUaccessPolicyWindow``: which bytes launches on a stream ask the L2 to keep."""

    _fields_ = [
        ("base_ptr", c_void_p),
        ("num_bytes", c_size_t),
        ("hitRatio", c_float),
        ("hitProp", c_int),
        ("missProp", c_int),
    ]


class StreamAttribute(ctypes.Union):
    """``CUstreamAttrValue``."""

    _fields_ = [("pad", c_ubyte * 64), ("accessPolicyWindow", AccessPolicyWindow)]


NUMBERS: Mapping[str, int] = {
    "CU_STREAM_NON_BLOCKING": 1,
    "CU_STREAM_CAPTURE_MODE_GLOBAL": 0,
    "CU_STREAM_CAPTURE_MODE_RELAXED": 2,
    "CU_GRAPH_NODE_TYPE_KERNEL": 0,
    "CU_GRAPH_NODE_TYPE_GRAPH": 4,
    "CU_GRAPH_NODE_TYPE_EMPTY": 5,
    "CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC": 1,
    "CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW": 1,
    "CU_LIMIT_PERSISTING_L2_CACHE_SIZE": 6,
    "CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES": 1,
    "CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES": 3,
    "CU_FUNC_ATTRIBUTE_NUM_REGS": 4,
    "CU_FUNC_ATTRIBUTE_BINARY_VERSION": 6,
}
FUNCTIONS: Mapping[str, tuple[Any, ...]] = {
    "cuStreamCreate": (POINTER(c_void_p), c_uint),
    "cuStreamBeginCapture_v2": (c_void_p, c_int),
    "cuStreamEndCapture": (c_void_p, POINTER(c_void_p)),
    "cuGraphDestroy": (c_void_p,),
    "cuGraphGetNodes": (c_void_p, POINTER(c_void_p), POINTER(c_size_t)),
    "cuGraphGetEdges_v2": (
        c_void_p,
        POINTER(c_void_p),
        POINTER(c_void_p),
        POINTER(EdgeData),
        POINTER(c_size_t),
    ),
    "cuGraphNodeGetType": (c_void_p, POINTER(c_int)),
    "cuGraphKernelNodeGetParams_v2": (c_void_p, POINTER(KernelNodeParams)),
    "cuGraphChildGraphNodeGetGraph": (c_void_p, POINTER(c_void_p)),
    "cuKernelGetFunction": (POINTER(c_void_p), c_void_p),
    "cuFuncGetName": (POINTER(c_char_p), c_void_p),
    "cuFuncGetAttribute": (POINTER(c_int), c_int, c_void_p),
    "cuOccupancyMaxActiveBlocksPerMultiprocessor": (POINTER(c_int), c_void_p, c_int, c_size_t),
    "cuCtxResetPersistingL2Cache": (),
    "cuCtxGetLimit": (POINTER(c_size_t), c_int),
    "cuStreamGetAttribute": (c_void_p, c_int, POINTER(StreamAttribute)),
}
"""Name → types of the arguments; what a function returns is always a status, 0 for success."""

LIBRARY = "libcuda.so.1"
_MAKING_STREAMS = ("cuStreamCreate",)
_ABOUT_THE_L2 = ("cuCtxResetPersistingL2Cache", "cuCtxGetLimit", "cuStreamGetAttribute")


class DriverError(Exception):
    """The driver refused a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelNode:
    """A kernel in a graph. ``symbol`` is its mangled name, ``architecture`` 90 for ``sm_90``.

    ``registers`` and ``local_bytes`` are of a thread, ``shared_bytes`` of a block.
    """

    symbol: str
    architecture: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    registers: int
    local_bytes: int
    shared_bytes: int
    blocks_per_sm: int


class _Asked:
    """Functions of the driver's library, asked in the current context."""

    def __init__(self, names: Iterable[str], library: str) -> None:
        loaded = ctypes.CDLL(library)
        self._functions = {name: getattr(loaded, name) for name in names}
        for name, function in self._functions.items():
            function.argtypes = FUNCTIONS[name]

    def _ask(self, name: str, *arguments: object) -> None:
        status = self._functions[name](*arguments)
        if status != 0:
            raise DriverError(f"{name} ended with CUDA error {status}")


class Persistence(_Asked):
    """What the L2 is asked to keep. Raises DriverError where a device keeps nothing so."""

    def __init__(self, library: str = LIBRARY) -> None:
        super().__init__(_ABOUT_THE_L2, library)

    def end(self) -> None:
        """Let the L2 keep nothing any longer than it would by itself, from now on."""
        self._ask("cuCtxResetPersistingL2Cache")

    def set_aside_bytes(self) -> int:
        """How much of the L2 is set aside for what it is asked to keep."""
        size = c_size_t()
        self._ask("cuCtxGetLimit", byref(size), NUMBERS["CU_LIMIT_PERSISTING_L2_CACHE_SIZE"])
        return size.value

    def window_bytes(self, stream: int) -> int:
        """How much launches on a stream ask the L2 to keep."""
        which, value = NUMBERS["CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW"], StreamAttribute()
        self._ask("cuStreamGetAttribute", stream, which, byref(value))
        return int(value.accessPolicyWindow.num_bytes)


class Streams(_Asked):
    """Streams beyond those of PyTorch's pool, which are 32."""

    def __init__(self, library: str = LIBRARY) -> None:
        super().__init__(_MAKING_STREAMS, library)

    def create(self) -> int:
        """A stream that waits for no other; it is there as long as the process. DriverError."""
        stream = c_void_p()
        self._ask("cuStreamCreate", byref(stream), NUMBERS["CU_STREAM_NON_BLOCKING"])
        return stream.value or 0


class Driver(_Asked):
    """What a captured graph would launch."""

    def __init__(self, library: str = LIBRARY) -> None:
        others = (*_MAKING_STREAMS, *_ABOUT_THE_L2)
        super().__init__((name for name in FUNCTIONS if name not in others), library)

    @contextmanager
    def captured(self, stream: int, call: Callable[[], object], *, relaxed: bool) -> Iterator[int]:
        """A graph of what a call puts on a stream, which runs none of it.

        With ``relaxed`` the call may do what a graph that is to be launched forbids.
        Raises what the call raises, and DriverError where what it does cannot be captured; the
        stream is as it was then.
        """
        graph = c_void_p()
        mode = "CU_STREAM_CAPTURE_MODE_RELAXED" if relaxed else "CU_STREAM_CAPTURE_MODE_GLOBAL"
        self._ask("cuStreamBeginCapture_v2", stream, NUMBERS[mode])
        try:
            try:
                call()
            finally:
                self._ask("cuStreamEndCapture", stream, byref(graph))
            yield graph.value or 0
        finally:
            if graph.value is not None:
                self._ask("cuGraphDestroy", graph)

    def is_empty(self, graph: int) -> bool:
        """Whether a graph does nothing at all: no kernel, no copy, no memset."""
        kinds = (self._kind(node) for node in self._nodes(graph))
        return all(kind == NUMBERS["CU_GRAPH_NODE_TYPE_EMPTY"] for kind in kinds)

    def overlaps(self, graph: int) -> bool:
        """Whether a kernel may begin before one that it waits for has ended.

        So it is with programmatic dependent launch.
        """
        programmatic = NUMBERS["CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC"]
        return any(kind == programmatic for _, _, kind in self._edges(graph))

    def kernels(self, graph: int) -> Iterator[KernelNode]:
        """The kernels of a graph and of the graphs in it, in an order in which they can run."""
        for node in self._ordered_nodes(graph):
            kind = self._kind(node)
            if kind == NUMBERS["CU_GRAPH_NODE_TYPE_KERNEL"]:
                yield self._kernel(node)
            elif kind == NUMBERS["CU_GRAPH_NODE_TYPE_GRAPH"]:
                child = c_void_p()
                self._ask("cuGraphChildGraphNodeGetGraph", node, byref(child))
                yield from self.kernels(child.value or 0)

    def _ordered_nodes(self, graph: int) -> list[int]:
        """Each node behind those that it waits for; the driver promises no order."""
        sorter = TopologicalSorter[int](dict.fromkeys(self._nodes(graph), ()))
        for before, after, _ in self._edges(graph):
            sorter.add(after, before)
        return list(sorter.static_order())

    def _kind(self, node: int) -> int:
        kind = c_int()
        self._ask("cuGraphNodeGetType", node, byref(kind))
        return kind.value

    def _nodes(self, graph: int) -> list[int]:
        count = c_size_t()
        self._ask("cuGraphGetNodes", graph, None, byref(count))
        if not count.value:
            return []
        nodes = (c_void_p * count.value)()
        self._ask("cuGraphGetNodes", graph, nodes, byref(count))
        return [node for node in nodes if node is not None]

    def _edges(self, graph: int) -> list[tuple[int, int, int]]:
        """(node, the node that waits for it, the kind of dependency)."""
        count = c_size_t()
        self._ask("cuGraphGetEdges_v2", graph, None, None, None, byref(count))
        if not count.value:
            return []
        before, after = (c_void_p * count.value)(), (c_void_p * count.value)()
        edges = (EdgeData * count.value)()
        self._ask("cuGraphGetEdges_v2", graph, before, after, edges, byref(count))
        return list(zip(before, after, (each.type for each in edges), strict=True))

    def _kernel(self, node: int) -> KernelNode:
        asked = KernelNodeParams()
        self._ask("cuGraphKernelNodeGetParams_v2", node, byref(asked))
        function = c_void_p(asked.func)
        if function.value is None:
            self._ask("cuKernelGetFunction", byref(function), asked.kern)
        symbol, blocks = c_char_p(), c_int()
        self._ask("cuFuncGetName", byref(symbol), function)
        self._ask(
            "cuOccupancyMaxActiveBlocksPerMultiprocessor",
            byref(blocks),
            function,
            asked.blockDimX * asked.blockDimY * asked.blockDimZ,
            asked.sharedMemBytes,
        )
        static_bytes = self._attribute(function, "CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES")
        return KernelNode(
            symbol=(symbol.value or b"").decode(errors="replace"),
            architecture=self._attribute(function, "CU_FUNC_ATTRIBUTE_BINARY_VERSION"),
            grid=(asked.gridDimX, asked.gridDimY, asked.gridDimZ),
            block=(asked.blockDimX, asked.blockDimY, asked.blockDimZ),
            registers=self._attribute(function, "CU_FUNC_ATTRIBUTE_NUM_REGS"),
            local_bytes=self._attribute(function, "CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES"),
            shared_bytes=static_bytes + asked.sharedMemBytes,
            blocks_per_sm=blocks.value,
        )

    def _attribute(self, function: c_void_p, name: str) -> int:
        value = c_int()
        self._ask("cuFuncGetAttribute", byref(value), NUMBERS[name], function)
        return value.value
