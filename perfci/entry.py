"""A variant as something to call: every kind of variant behind one ``bind``."""

import ctypes
import importlib
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import NamedTemporaryFile
from types import MappingProxyType
from typing import Any, Protocol

import torch
from torch import Tensor

from perfci.build import Build, module_name
from perfci.checking.inputs import Arguments, load_module

ABI_VERSION = 1
_ERROR_BYTES = 1024
_INTEGER_LIMIT = 2**63
_DTYPE_CODES = {
    torch.float32: 0,
    torch.float64: 1,
    torch.float16: 2,
    torch.bfloat16: 3,
    torch.int8: 4,
    torch.int16: 5,
    torch.int32: 6,
    torch.int64: 7,
    torch.uint8: 8,
    torch.bool: 9,
}

Call = Callable[[], Any]
"""One call of a kernel on bound arguments; returns what the variant returned, as it came."""


class KernelError(RuntimeError):
    """What a kernel said went wrong; becomes the message of its row."""


class Entry(Protocol):
    """A loaded variant. ``writes_outputs`` where it fills what it is given, as C variants do.

    ``namespace`` is what a Python variant's module holds, and empty for others.
    """

    writes_outputs: bool
    namespace: Mapping[str, object]

    def bind(self, arguments: Arguments, outputs: Sequence[Tensor]) -> Call:
        """Tie arguments to a call. ``outputs`` is where a C variant writes, contiguous.

        A C variant gets pointers, which carry no device: KernelError where a tensor is elsewhere
        than all others, on no device that the variant is declared for, or on another GPU than the
        current one.
        """
        ...


def load_entry(build: Build) -> Entry:
    """Load a variant from its build. Raises whatever its code raises at import."""
    variant = build.variant
    if variant.kind == "c":
        assert build.library is not None
        return _CEntry(build.library, variant.declaration.devices)
    if variant.kind == "function":
        assert variant.function is not None
        module, _, attribute = variant.function.partition(":")
        return _PythonEntry(getattr(importlib.import_module(module), attribute))
    path = build.library if variant.kind == "extension" else variant.path
    run = getattr(load_module(module_name(build.digest), str(path)), "run", None)
    if not callable(run):
        raise KernelError(f"{path}: has no function 'run'")
    return _PythonEntry(run)


def load_again(build: Build) -> Entry:
    """Load a variant once more, with code and state of its own beside the first.

    A library comes from a second file, since a process has one file only once. What is installed
    (``module:function``) stays one.
    """
    if build.library is None:
        return load_entry(build)
    with NamedTemporaryFile(dir=build.library.parent, prefix=".again-", suffix=".so") as copy:
        shutil.copyfile(build.library, copy.name)
        return load_entry(replace(build, library=Path(copy.name)))


class _PythonEntry:
    writes_outputs = False

    def __init__(self, run: Callable[..., Any]) -> None:
        self._run = run
        self.namespace: Mapping[str, object] = getattr(run, "__globals__", {})

    def bind(self, arguments: Arguments, outputs: Sequence[Tensor]) -> Call:  # noqa: ARG002
        values = tuple(arguments.values())
        run = self._run
        return lambda: run(*values)


class _CTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("rank", ctypes.c_int32),
        ("dtype", ctypes.c_int32),
    ]


class _CScalar(ctypes.Structure):
    _fields_ = [("integer", ctypes.c_int64), ("real", ctypes.c_double)]


class _CCall(ctypes.Structure):
    _fields_ = [
        ("abi_version", ctypes.c_int32),
        ("output_count", ctypes.c_int32),
        ("input_count", ctypes.c_int32),
        ("scalar_count", ctypes.c_int32),
        ("outputs", ctypes.POINTER(_CTensor)),
        ("inputs", ctypes.POINTER(_CTensor)),
        ("scalars", ctypes.POINTER(_CScalar)),
        ("stream", ctypes.c_void_p),
        ("error", ctypes.c_char_p),
        ("error_size", ctypes.c_int64),
    ]


class _CEntry:
    """A shared library with the symbol ``perfci_run`` of perfci.h."""

    writes_outputs = True
    namespace: Mapping[str, object] = MappingProxyType({})

    def __init__(self, library: Path, devices: Sequence[str]) -> None:
        self._devices = devices
        try:
            self._run = ctypes.CDLL(str(library)).perfci_run
        except AttributeError:
            raise KernelError(
                'defines no perfci_run; write extern "C" int perfci_run(const perfci_call *call)'
            ) from None
        self._run.argtypes = [ctypes.POINTER(_CCall)]
        self._run.restype = ctypes.c_int

    def bind(self, arguments: Arguments, outputs: Sequence[Tensor]) -> Call:
        inputs = [(name, each) for name, each in arguments.items() if isinstance(each, Tensor)]
        numbers = [item for item in arguments.items() if not isinstance(item[1], Tensor)]
        named_outputs = _named(outputs)
        device = _common_device([*inputs, *named_outputs], self._devices)
        error = ctypes.create_string_buffer(_ERROR_BYTES)
        c_outputs, c_inputs = _c_tensors(named_outputs), _c_tensors(inputs)
        c_scalars = (_CScalar * max(1, len(numbers)))(*(_c_scalar(*each) for each in numbers))
        call = _CCall(
            ABI_VERSION,
            len(outputs),
            len(inputs),
            len(numbers),
            c_outputs,
            c_inputs,
            c_scalars,
            None,
            ctypes.cast(error, ctypes.c_char_p),
            _ERROR_BYTES,
        )
        run, pointer = self._run, ctypes.pointer(call)
        returned = tuple(outputs)
        alive = (call, error, c_outputs, c_inputs, c_scalars, inputs)

        def launch() -> tuple[Tensor, ...]:
            if run(pointer) != 0:
                text = alive[1].value.decode(errors="replace")
                raise KernelError(text or "the kernel failed without saying why")
            return returned

        if device is None or device.type != "cuda":
            return launch
        index = device.index
        current_stream = torch._C._cuda_getCurrentRawStream  # noqa: SLF001 — 0.1 µs, not 1

        def launch_on_current_stream() -> tuple[Tensor, ...]:
            call.stream = current_stream(index)
            return launch()

        return launch_on_current_stream


def _named(outputs: Sequence[Tensor]) -> list[tuple[str, Tensor]]:
    """Outputs with what messages call them."""
    if len(outputs) == 1:
        return [("output", outputs[0])]
    return [(f"output {index}", each) for index, each in enumerate(outputs)]


def _common_device(
    tensors: Sequence[tuple[str, Tensor]], declared: Sequence[str]
) -> torch.device | None:
    """The one device of all tensors, None where there are none.

    KernelError where there are several, or one that the variant cannot be called for.
    """
    if not tensors:
        return None
    first, device = tensors[0][0], tensors[0][1].device
    for name, tensor in tensors:
        if tensor.device.type not in declared:
            kinds = " or ".join(declared)
            raise KernelError(
                f"{name} is on {tensor.device}, this variant takes tensors on {kinds}"
            )
        if tensor.device != device:
            raise KernelError(
                f"{name} is on {tensor.device}, {first} on {device}; move one of them"
            )
    if device.type == "cuda" and device.index != torch.cuda.current_device():
        current = torch.cuda.current_device()
        raise KernelError(
            f"{first} is on {device}, the current device is cuda:{current}; change it"
        )
    return device


def _c_tensors(tensors: Sequence[tuple[str, Tensor]]) -> "ctypes.Array[_CTensor]":
    array = (_CTensor * max(1, len(tensors)))()
    for slot, (name, tensor) in zip(array, tensors, strict=False):
        if tensor.is_neg():
            raise KernelError(f"{name} is a negated view, its memory has the other sign; clone it")
        rank = tensor.dim()
        slot.data = tensor.data_ptr()
        slot.shape = (ctypes.c_int64 * max(1, rank))(*tensor.shape)
        slot.strides = (ctypes.c_int64 * max(1, rank))(*tensor.stride())
        slot.rank = rank
        slot.dtype = _dtype_code(name, tensor.dtype)
    return array


def _dtype_code(name: str, dtype: torch.dtype) -> int:
    if dtype not in _DTYPE_CODES:
        raise KernelError(f"{name}: perfci.h has no code for {dtype}")
    return _DTYPE_CODES[dtype]


def _c_scalar(name: str, number: object) -> _CScalar:
    """Both readings of a number; one that is too large, or none, has 0 as its integer reading."""
    if isinstance(number, float):
        return _CScalar(int(number) if abs(number) < _INTEGER_LIMIT else 0, number)
    if not isinstance(number, int):
        raise KernelError(f"{name} is a {type(number).__name__}, neither a tensor nor a number")
    if not -_INTEGER_LIMIT <= number < _INTEGER_LIMIT:
        raise KernelError(f"{name} is {number}, an integer has 64 bits at most")
    return _CScalar(number, float(number))
