"""What a kernel may leave behind in its process, to become another kernel's fault or figure."""

import gc
import os
import resource
import threading
import time
from collections.abc import Callable
from pathlib import Path

import torch

from perfci.gpu.driver import DriverError, Persistence

_FUNCTIONS = (
    *("cat", "clone", "empty", "empty_like", "isfinite", "isnan", "isneginf", "isposinf"),
    *("rand", "stack", "where", "zeros_like"),
)
_METHODS = tuple(name for name, value in vars(torch.Tensor).items() if callable(value))
_OWNERS: tuple[tuple[str, object, tuple[str, ...]], ...] = (
    ("torch", torch, _FUNCTIONS),
    ("torch.Tensor", torch.Tensor, _METHODS),
    ("time", time, ("monotonic", "perf_counter", "perf_counter_ns", "time", "time_ns")),
    ("torch.cuda", torch.cuda, ("current_stream", "set_stream", "stream", "synchronize")),
    ("torch.cuda.Event", torch.cuda.Event, ("elapsed_time", "query", "record", "synchronize")),
)
_JUDGES = tuple(
    (f"{prefix}.{name}", owner, name, getattr(owner, name))
    for prefix, owner, names in _OWNERS
    for name in names
)
"""The functions by which kernels are judged and timed, bound before any kernel is loaded."""

_LIMITS = tuple(getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_"))


def read_surroundings() -> tuple[object, ...]:
    """What this process goes by now; equal to an earlier reading where a kernel left no trace."""
    return (
        _working_folder(),
        tuple(resource.getrlimit(limit) for limit in _LIMITS),
        threading.active_count(),
        _children(),
        gc.isenabled(),
        torch.get_num_threads(),
        torch.get_default_dtype(),
        torch.is_grad_enabled(),
        torch.are_deterministic_algorithms_enabled(),
        torch.get_float32_matmul_precision(),
        torch.backends.cudnn.allow_tf32,
        torch._C._len_torch_function_stack(),  # noqa: SLF001 — modes have no public count
        *_kept_in_l2(),
        replaced_function(),
    )


def _kept_in_l2() -> tuple[int | None, int | None]:
    """How much of a GPU's L2 is set aside, and how much launches on the stream ask it to keep."""
    if not torch.cuda.is_initialized():
        return None, None
    persistence = Persistence()
    stream = torch.cuda.current_stream().cuda_stream
    return _asked(persistence.set_aside_bytes), _asked(lambda: persistence.window_bytes(stream))


def replaced_function() -> str:
    """The name of a judging function that is not what it was; empty where all are."""
    replaced = (
        label
        for label, owner, name, function in _JUDGES
        if getattr(owner, name, None) is not function
    )
    return next(replaced, "")


def _asked(question: Callable[[], int]) -> int | None:
    try:
        return question()
    except DriverError:
        return None


def _working_folder() -> str:
    try:
        return os.getcwd()  # noqa: PTH109 — a folder that is gone is an answer too
    except OSError:
        return ""


def _children() -> str:
    try:
        return Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii")
    except OSError:
        return ""
