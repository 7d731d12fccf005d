"""Memory that ran out: one line with the sizes, whatever the library says of it."""

import pytest
import torch

from perfci.checking.inputs import describe
from perfci.shortage import is_shortage

_OF_A_GPU = (
    "CUDA out of memory. Tried to allocate 512.00 GiB. GPU 0 has a total capacity of 139.80 GiB of "
    "which 138.94 GiB is free. Including non-PyTorch memory, this process has 896.00 MiB memory in "
    "use. Of the allocated memory 0 bytes is allocated by PyTorch."
)
_FAILED_REPORT = (
    "NVML_SUCCESS == DriverAPI::get()->nvmlInit_v2_() INTERNAL ASSERT FAILED at "
    '"/pytorch/c10/cuda/CUDACachingAllocator.cpp":1124, please report a bug to PyTorch. '
)


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (
            torch.OutOfMemoryError(_OF_A_GPU),
            "out of memory: tried to allocate 512.00 GiB, 138.94 GiB of 139.80 GiB were free",
        ),
        (
            RuntimeError(
                "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate "
                "memory: you tried to allocate 268435456 bytes. Error code 12"
            ),
            "out of memory: tried to allocate 256 MiB",
        ),
        (RuntimeError("CUDA error: out of memory\nCompile with …"), "out of memory"),
        (
            RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate`"),
            "out of memory",
        ),
        (MemoryError(), "out of memory"),
    ],
)
def test_it_is_one_line_with_the_sizes_that_are_known(error: Exception, line: str) -> None:
    assert is_shortage(error)
    assert describe(error) == line


def test_an_allocator_that_cannot_report_it_has_run_out_of_memory_all_the_same() -> None:
    error = RuntimeError(_FAILED_REPORT)
    assert is_shortage(error)
    assert describe(error).startswith("out of memory: ")
    assert "INTERNAL ASSERT" not in describe(error)


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("CUDA error: an illegal memory access was encountered"),
        RuntimeError("NVML_SUCCESS == r INTERNAL ASSERT FAILED at elsewhere.cpp"),
        ValueError("out of memory"),
    ],
)
def test_nothing_else_is_taken_for_it(error: Exception) -> None:
    assert not is_shortage(error)
