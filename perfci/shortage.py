"""Memory that ran out: what an exception says of it, in one line, however a library words it."""

import re

import torch

from perfci import units

_SIGNS = ("out of memory", "allocate memory", "ALLOC_FAILED")
_SIZE = r"(\d+ bytes|\d+(?:\.\d+)? (?:[KMGTPE]i)?B)"
_WANTED = re.compile(rf"[Tt]ried to allocate {_SIZE}")
_FREE = re.compile(rf"total capacity of {_SIZE} of which {_SIZE} is free")


def is_shortage(error: BaseException) -> bool:
    """Whether an exception says that the memory of the host or of a GPU ran out."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    text = str(error)
    return isinstance(error, RuntimeError) and (
        any(each in text for each in _SIGNS) or _is_failed_report(text)
    )


def describe_shortage(error: BaseException) -> str:
    """What was asked for and what was free, as far as the exception or the driver says."""
    text = str(error)
    said = []
    if wanted := _WANTED.search(text):
        said.append(f"tried to allocate {_size(wanted[1])}")
    if free := _FREE.search(text):
        said.append(f"{_size(free[2])} of {_size(free[1])} were free")
    elif _is_failed_report(text):
        said.append(_free_now())
    return f"out of memory: {', '.join(said)}" if any(said) else "out of memory"


def _is_failed_report(text: str) -> bool:
    """Whether PyTorch's allocator failed while it was about to say that memory is out."""
    return "NVML" in text and "CUDACachingAllocator" in text


def _free_now() -> str:
    try:
        free_bytes, total_bytes = torch.cuda.mem_get_info()
    except (AssertionError, RuntimeError):
        return "how much was free, the driver does not say"
    return f"{units.format_bytes(free_bytes)} of {units.format_bytes(total_bytes)} are free now"


def _size(text: str) -> str:
    number, _, unit = text.partition(" ")
    return units.format_bytes(int(number)) if unit == "bytes" else text
