"""The driver's API: what ctypes believes of it is what cuda.h says, and graphs are read right.

The library asked here is a small one compiled against the header, with one graph in it.
"""

import ctypes
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from perfci.gpu.driver import (
    FUNCTIONS,
    NUMBERS,
    AccessPolicyWindow,
    Driver,
    DriverError,
    EdgeData,
    KernelNode,
    KernelNodeParams,
    Persistence,
    StreamAttribute,
    Streams,
)
from perfci.toolchain import find_compiler

_COMPILER = find_compiler("nvcc")
_STRUCTURES: dict[str, Any] = {
    "CUgraphEdgeData": EdgeData,
    "CUDA_KERNEL_NODE_PARAMS_v2": KernelNodeParams,
    "CUaccessPolicyWindow": AccessPolicyWindow,
    "CUstreamAttrValue": StreamAttribute,
}
pytestmark = [
    pytest.mark.nvcc,
    pytest.mark.skipif(_COMPILER is None, reason="nvcc is not installed"),
]

_HEADER = """\
#include <cuda.h>
#include <cstddef>
#include <cstdio>
#include <type_traits>
#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

template <typename Function> struct signature;
template <typename... Arguments> struct signature<CUresult(Arguments...)> {
  static void print(const char *name) {
    printf("\\"%s\\": [", name);
    const size_t sizes[] = {sizeof(Arguments)...};
    for (size_t i = 0; i < sizeof...(Arguments); ++i) printf(i ? ", %zu" : "%zu", sizes[i]);
    printf("]");
  }
};
static_assert(std::is_same<decltype(cuGraphKernelNodeGetParams),
                           CUresult(CUgraphNode, CUDA_KERNEL_NODE_PARAMS_v2 *)>::value, "");
static_assert(std::is_same<decltype(cuGraphGetEdges),
                           CUresult(CUgraph, CUgraphNode *, CUgraphNode *, CUgraphEdgeData *,
                                    size_t *)>::value, "");

int main() {
  printf("{");
STATEMENTS
  printf("}\\n");
}
"""
_GRAPH = """\
#include <cuda.h>

struct CUfunc_st { const char *name; int registers, local_bytes, shared_bytes, version, blocks; };
struct CUkern_st { CUfunc_st *function; };
struct CUgraphNode_st { CUgraphNodeType type; CUDA_KERNEL_NODE_PARAMS params; CUgraph child; };
struct CUgraph_st {
  CUgraphNode nodes[4]; size_t node_count;
  CUgraphNode edges[4][2]; size_t edge_count;
};

static CUfunc_st first = {"_Z5firstPf", 12, 0, 1024, 90, 8};
static CUfunc_st inner = {"inner", 255, 2104, 0, 80, 0};
static CUkern_st kernel = {&inner};
static CUgraphNode_st a = {CU_GRAPH_NODE_TYPE_KERNEL, {&first, 7, 2, 3, 64, 4, 1, 2048}};
static CUgraphNode_st b = {CU_GRAPH_NODE_TYPE_KERNEL,
                           {0, 0x7fffffff, 1, 1, 1024, 1, 1, 0, 0, 0, &kernel}};
static CUgraphNode_st fill = {CU_GRAPH_NODE_TYPE_MEMSET};
static CUgraph_st within = {{&b}, 1};
static CUgraphNode_st nested = {CU_GRAPH_NODE_TYPE_GRAPH, {}, &within};
static CUgraphNode_st last = {CU_GRAPH_NODE_TYPE_KERNEL, {&first, 1, 1, 1, 1, 1, 1}};
static CUgraph_st graph = {{&last, &fill, &nested, &a}, 4,
                           {{&fill, &last}, {&a, &nested}, {&nested, &fill}}, 3};
static CUgraphNode_st join = {CU_GRAPH_NODE_TYPE_EMPTY};
static CUgraph_st empty = {{&join}, 1};
static CUstream capturing;

extern "C" {
int captures, destroyed, mode;
bool invalid, nothing, overlapping;

CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode asked) {
  if (capturing) return CUDA_ERROR_ILLEGAL_STATE;
  ++captures, capturing = stream, mode = asked;
  return CUDA_SUCCESS;
}
CUresult cuStreamEndCapture(CUstream stream, CUgraph *captured) {
  if (stream != capturing) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  capturing = 0;
  if (invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  *captured = nothing ? &empty : &graph;
  return CUDA_SUCCESS;
}
CUresult cuGraphDestroy(CUgraph) { return ++destroyed, CUDA_SUCCESS; }
CUresult cuGraphGetNodes(CUgraph from, CUgraphNode *nodes, size_t *count) {
  if (nodes && *count == 0) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; nodes && i < *count; ++i) nodes[i] = from->nodes[i];
  *count = from->node_count;
  return CUDA_SUCCESS;
}
CUresult cuGraphGetEdges(CUgraph of, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *edge,
                         size_t *count) {
  if (from && (!edge || *count == 0)) return CUDA_ERROR_LOSSY_QUERY;
  for (size_t i = 0; from && i < *count; ++i) {
    from[i] = of->edges[i][0], to[i] = of->edges[i][1];
    edge[i] = {CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC, 0, overlapping && i == 1,
               {255, 255, 255, 255, 255}};
  }
  *count = of->edge_count;
  return CUDA_SUCCESS;
}
CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type) {
  return *type = node->type, CUDA_SUCCESS;
}
CUresult cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *params) {
  return *params = node->params, CUDA_SUCCESS;
}
CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph *child) {
  return *child = node->child, CUDA_SUCCESS;
}
CUresult cuKernelGetFunction(CUfunction *function, CUkernel of) {
  return *function = of->function, CUDA_SUCCESS;
}
CUresult cuFuncGetName(const char **name, CUfunction of) { return *name = of->name, CUDA_SUCCESS; }
CUresult cuFuncGetAttribute(int *value, CUfunction_attribute which, CUfunction of) {
  switch (which) {
    case CU_FUNC_ATTRIBUTE_NUM_REGS: return *value = of->registers, CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: return *value = of->local_bytes, CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: return *value = of->shared_bytes, CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION: return *value = of->version, CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction of, int threads,
                                                     size_t dynamic_bytes) {
  if (of == &first && threads == 256 && dynamic_bytes != 2048) return CUDA_ERROR_INVALID_VALUE;
  return *blocks = of->blocks, CUDA_SUCCESS;
}

unsigned created;
CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
  if (flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  if (created == 2) return CUDA_ERROR_OUT_OF_MEMORY;
  return *stream = CUstream(0xABCD00000000 + ++created), CUDA_SUCCESS;
}

int resets;
size_t set_aside;
CUresult cuCtxResetPersistingL2Cache() { return ++resets, CUDA_SUCCESS; }
CUresult cuCtxGetLimit(size_t *value, CUlimit limit) {
  if (limit != CU_LIMIT_PERSISTING_L2_CACHE_SIZE) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  return *value = set_aside, CUDA_SUCCESS;
}
CUresult cuStreamGetAttribute(CUstream stream, CUstreamAttrID which, CUstreamAttrValue *value) {
  if (which != CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW) return CUDA_ERROR_INVALID_VALUE;
  value->accessPolicyWindow = {&graph, size_t(stream) / 2, 1.0f, CU_ACCESS_PROPERTY_PERSISTING,
                               CU_ACCESS_PROPERTY_STREAMING};
  return CUDA_SUCCESS;
}
}
"""


def _compile(source: Path, program: str, *flags: str) -> Path:
    assert _COMPILER is not None
    source.write_text(program)
    built = source.with_suffix("")
    command = [_COMPILER.path, *flags, "-o", str(built), str(source)]
    subprocess.run(command, check=True)
    return built


@pytest.fixture(scope="module")
def header(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the compiler makes of cuda.h: numbers, offsets and sizes by name."""
    plain = [re.sub(r"_v\d$", "", name) for name in FUNCTIONS]
    printed = [
        *(f'printf("\\"{name}\\": %d", (int){name});' for name in NUMBERS),
        *(f"signature<decltype({name})>::print(TEXT({name}));" for name in plain),
        *(f'printf("\\"{name}\\": %zu", sizeof({name}));' for name in _STRUCTURES),
        *(
            f'printf("\\"{name}.{field}\\": %zu", offsetof({name}, {field}));'
            for name, structure in _STRUCTURES.items()
            for field, *_ in structure._fields_
        ),
    ]
    statements = '\nprintf(", ");\n'.join(printed)
    source = tmp_path_factory.mktemp("header") / "header.cpp"
    program = _compile(source, _HEADER.replace("STATEMENTS", statements))
    return json.loads(subprocess.run([program], capture_output=True, check=True).stdout)


def test_numbers_are_the_headers(header: Any) -> None:
    assert {name: header[name] for name in NUMBERS} == dict(NUMBERS)


def test_functions_go_by_the_headers_names_and_take_what_it_says(header: Any) -> None:
    assert {name: header.get(name) for name in FUNCTIONS} == {
        name: [ctypes.sizeof(each) for each in types] for name, types in FUNCTIONS.items()
    }


@pytest.mark.parametrize("name", _STRUCTURES)
def test_structures_are_laid_out_as_in_the_header(header: Any, name: str) -> None:
    structure = _STRUCTURES[name]
    assert header[name] == ctypes.sizeof(structure)
    for field, *_ in structure._fields_:
        assert header[f"{name}.{field}"] == getattr(structure, field).offset


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library of the driver's functions with one graph in it."""
    source = tmp_path_factory.mktemp("graph") / "graph.cpp"
    return _compile(source, _GRAPH, "-std=c++17", "-shared", "-Xcompiler", "-fPIC")


@pytest.fixture
def counts(library: Path) -> Any:
    """The library's own variables, as at its beginning."""

    class Counts:
        loaded = ctypes.CDLL(str(library))

        def __getattr__(self, name: str) -> ctypes.c_int:
            return ctypes.c_int.in_dll(self.loaded, name)

        def set(self, name: str, *, value: bool) -> None:
            ctypes.c_bool.in_dll(self.loaded, name).value = value

    counts = Counts()
    counts.captures.value = counts.destroyed.value = 0
    counts.set("invalid", value=False)
    counts.set("nothing", value=False)
    counts.set("overlapping", value=False)
    return counts


_STREAM = 0xABCD_0000_1234


def test_a_graphs_kernels_are_read_in_the_order_in_which_they_wait(
    library: Path, counts: Any
) -> None:
    driver, called = Driver(str(library)), []

    def call() -> None:
        called.append(counts.captures.value)

    with driver.captured(_STREAM, call, relaxed=True) as graph:
        kernels = list(driver.kernels(graph))
    assert called == [1]
    assert [each.symbol for each in kernels] == ["_Z5firstPf", "inner", "_Z5firstPf"]
    assert kernels[:2] == [
        KernelNode(
            symbol="_Z5firstPf",
            architecture=90,
            grid=(7, 2, 3),
            block=(64, 4, 1),
            registers=12,
            local_bytes=0,
            shared_bytes=3072,
            blocks_per_sm=8,
        ),
        KernelNode(
            symbol="inner",
            architecture=80,
            grid=(2**31 - 1, 1, 1),
            block=(1024, 1, 1),
            registers=255,
            local_bytes=2104,
            shared_bytes=0,
            blocks_per_sm=0,
        ),
    ]
    assert (counts.mode.value, counts.destroyed.value) == (2, 1)


def test_each_stream_is_another_until_there_are_no_more(library: Path) -> None:
    streams = Streams(str(library))
    assert [streams.create() for _ in range(2)] == [0xABCD_0000_0001, 0xABCD_0000_0002]
    with pytest.raises(DriverError, match="cuStreamCreate ended with CUDA error 2"):
        streams.create()


def test_a_call_that_launches_nothing_has_no_kernels(library: Path, counts: Any) -> None:
    counts.set("nothing", value=True)
    driver = Driver(str(library))
    with driver.captured(_STREAM, lambda: None, relaxed=True) as graph:
        assert list(driver.kernels(graph)) == []
    assert counts.destroyed.value == 1


def test_a_graph_says_whether_it_does_anything_and_whether_kernels_overlap(
    library: Path, counts: Any
) -> None:
    driver = Driver(str(library))
    with driver.captured(_STREAM, lambda: None, relaxed=False) as graph:
        assert (driver.is_empty(graph), driver.overlaps(graph)) == (False, False)
        counts.set("overlapping", value=True)
        assert driver.overlaps(graph)
    assert counts.mode.value == 0
    counts.set("nothing", value=True)
    with driver.captured(_STREAM, lambda: None, relaxed=False) as graph:
        assert (driver.is_empty(graph), driver.overlaps(graph)) == (True, False)


def test_a_capture_ends_however_the_call_ends(library: Path, counts: Any) -> None:
    driver = Driver(str(library))

    def raises() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"), driver.captured(_STREAM, raises, relaxed=True):
        pytest.fail("nothing was captured")
    assert (counts.captures.value, counts.destroyed.value) == (1, 1)
    counts.set("invalid", value=True)
    refusal = pytest.raises(DriverError, match="cuStreamEndCapture ended with CUDA error 901")
    with refusal, driver.captured(_STREAM, lambda: None, relaxed=True):
        pytest.fail("nothing was captured")
    assert (counts.captures.value, counts.destroyed.value) == (2, 1)
    counts.set("invalid", value=False)
    with driver.captured(_STREAM, lambda: None, relaxed=True) as graph:
        assert len(list(driver.kernels(graph))) == 3


def test_what_the_l2_is_asked_to_keep_is_read_and_given_up(library: Path, counts: Any) -> None:
    persistence = Persistence(str(library))
    ctypes.c_size_t.in_dll(counts.loaded, "set_aside").value = 5 << 32
    assert persistence.set_aside_bytes() == 5 << 32
    assert persistence.window_bytes(_STREAM) == _STREAM // 2
    before = counts.resets.value
    persistence.end()
    assert counts.resets.value == before + 1


def test_a_driver_without_the_functions_is_refused_at_once() -> None:
    with pytest.raises(AttributeError, match="cuStreamBeginCapture"):
        Driver("libc.so.6")
    with pytest.raises(AttributeError, match="cuCtxResetPersistingL2Cache"):
        Persistence("libc.so.6")
