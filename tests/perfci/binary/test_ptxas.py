"""What ptxas says, read: from its words, and from a variant that is built here."""

from collections.abc import Mapping
from pathlib import Path

import pytest
import scratch

from perfci.binary.ptxas import Compiled, read_log, without_reports
from perfci.build import Build, build, compiler_words
from perfci.config import load_config
from perfci.kernel import discover
from perfci.toolchain import find_compiler

_LOG = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z5callsPf' for 'sm_80'
ptxas info    : Function properties for _Z5callsPf
    400 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 38 registers, used 0 barriers, 400 bytes cumulative stack size
ptxas info    : Compile time = 29.034 ms
ptxas info    : Function properties for _Z6calleef
    64 bytes stack frame, 60 bytes spill stores, 60 bytes spill loads
/tmp/error.cu(7): warning #177-D: variable "unused" was declared but never referenced
    float unused;
          ^

ptxas info    : Compiling entry function '_Z6spillsPfi' for 'sm_90a'
ptxas warning : Value of threads per SM for entry _Z6spillsPfi is out of range
ptxas info    : Function properties for _Z6spillsPfi
    2120 bytes stack frame, 2020 bytes spill stores, 2104 bytes spill loads
ptxas info    : Used 64 registers, used 1 barriers, 2120 bytes cumulative stack size
ptxas info    : Compiling entry function '_Z3cutPf' for 'sm_90a'
ptxas info    : Function properties for _Z3cutPf
"""


def test_every_kernel_is_read_with_its_own_figures() -> None:
    assert read_log(_LOG) == (
        Compiled(function="_Z5callsPf", architecture="sm_80", registers=38, spill_bytes=0),
        Compiled(function="_Z6spillsPfi", architecture="sm_90a", registers=64, spill_bytes=4124),
    )


@pytest.mark.parametrize(
    "log",
    [
        "",
        "x.cpp:1: error: expected unqualified-id",
        "ptxas info    : Compiling entry function ",
        "ptxas info    : Compiling entry function 'k' for 'sm_90'",
        "ptxas info    : Compiling entry function 'k' for 'something else'\nUsed 3 registers",
    ],
)
def test_a_log_without_figures_has_no_kernels(log: str) -> None:
    assert read_log(log) == ()


def test_what_a_called_function_spills_is_not_the_kernels() -> None:
    first, second = "_Z5callsPf\n    400 bytes", "_Z6calleef\n    64 bytes"
    swapped = _LOG.replace(first, "?").replace(second, first).replace("?", second)
    assert swapped != _LOG
    assert read_log(swapped)[0].spill_bytes == 120


def test_the_other_lines_are_the_compilers_own() -> None:
    assert without_reports(_LOG).splitlines() == [
        '/tmp/error.cu(7): warning #177-D: variable "unused" was declared but never referenced',
        "    float unused;",
        "          ^",
        "",
        "ptxas warning : Value of threads per SM for entry _Z6spillsPfi is out of range",
    ]


_KERNELS = """\
#include <perfci_cuda.h>

namespace {
__global__ void error_of_few(float *y) { y[threadIdx.x] = 1.0f; }

__global__ void __launch_bounds__(1024) of_many(float *y, int count) {
  float kept[120];
#pragma unroll
  for (int i = 0; i < 120; ++i) kept[i] = y[i * count + threadIdx.x];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < 120; ++i) y[i * count + threadIdx.x] = kept[119 - i] * kept[i * 7 % 120];
}
}  // namespace

extern "C" int perfci_run(const perfci_call *call) {
  HOST
  float *y = (float *)call->outputs[0].data;
  if (int code = perfci_launch(call, {1, 1, 0}, error_of_few, y)) return code;
  return perfci_launch(call, {1, 1024, 0}, of_many, y, 1024);
}
"""

_with_nvcc = pytest.mark.skipif(find_compiler("nvcc") is None, reason="nvcc is not installed")


def _built(root: Path, source: str) -> Build:
    scratch.write_kernel(scratch.quick(root), many__cu=source)
    config = load_config(root, environment={}, cache=str(root.parent / "cache"))
    variants = [each for kernel in discover(root / "kernels") for each in kernel.variants]
    (only,) = build(variants, config, architectures=["sm_80", "sm_90"])
    return only


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Mapping[tuple[str, str], Compiled]:
    """The kernels of a variant as ptxas knows them, by a part of their names and architecture."""
    built = _built(tmp_path_factory.mktemp("ptxas") / "root", _KERNELS.replace("HOST", ""))
    assert built.message == ""
    return {
        (part, each.architecture): each
        for each in read_log(compiler_words(built))
        for part in ("error_of_few", "of_many")
        if part in each.function
    }


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
@pytest.mark.nvcc
@_with_nvcc
def test_a_build_keeps_what_each_of_its_kernels_spills(
    compiled: Mapping[tuple[str, str], Compiled], architecture: str
) -> None:
    assert len(compiled) == 4
    assert compiled["error_of_few", architecture].spill_bytes == 0
    assert compiled["of_many", architecture].spill_bytes > 0
    assert compiled["of_many", architecture].registers == 64


@pytest.mark.nvcc
@_with_nvcc
def test_a_failed_build_says_what_failed_and_nothing_of_registers(tmp_path: Path) -> None:
    # Only the assembler objects, when ptxas has had its say of a kernel with "error" in its name.
    failed = _built(tmp_path / "root", _KERNELS.replace("HOST", 'asm("nonsense");'))
    assert "no such instruction" in failed.message
    for word in ("ptxas", "registers", "error_of_few"):
        assert word not in failed.message
    assert failed.message.startswith("/")


def test_what_is_not_compiled_leaves_no_words(tmp_path: Path) -> None:
    scratch.write_kernel(scratch.quick(tmp_path / "root"), eager__py=scratch.EAGER)
    (kernel,) = discover(tmp_path / "root" / "kernels")
    config = load_config(tmp_path / "root", environment={}, cache=str(tmp_path / "cache"))
    (built,) = build(kernel.variants, config)
    assert compiler_words(built) == ""
