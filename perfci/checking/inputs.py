"""Arguments of a kernel: the reference module loaded, its inputs drawn, scaled and laid out."""

import importlib.util
import inspect
import sysconfig
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from perfci.errors import ConfigurationError
from perfci.kernel import Case, Kernel
from perfci.shortage import describe_shortage, is_shortage

Arguments = Mapping[str, Tensor | int | float]
"""A kernel's arguments by name, in the order in which every variant takes them."""

_SCALES = {"normal": 1.0, "outliers": 1.0, "large": 1e3, "tiny": 1e-3}
_NOT_THE_USERS = (
    str(Path(__file__).parents[1]),
    *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")),
    str(Path(torch.__file__).parent),
    "<",
)
_OUTLIER_SHARE = 1e-3
_OUTLIER_SCALE = 1e3


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A kernel's reference module, loaded. ``magnitude`` and ``depth`` may be missing."""

    make_inputs: Callable[..., Arguments]
    reference: Callable[..., Tensor | tuple[Tensor, ...]]
    bytes_moved: Callable[..., int]
    flops: Callable[..., int]
    magnitude: Callable[..., Tensor | tuple[Tensor, ...]] | None
    depth: Callable[..., int] | None


def load_reference(kernel: Kernel) -> Reference:
    """Import a kernel's reference.py; ConfigurationError where it cannot be."""
    path = kernel.workload_folder / "reference.py"
    try:
        module = load_module(f"perfci_reference_{kernel.name}", str(path))
    except Exception as error:
        raise ConfigurationError(f"{path}: cannot be imported: {describe(error)}") from error
    return Reference(
        make_inputs=module.make_inputs,
        reference=module.reference,
        bytes_moved=module.bytes_moved,
        flops=module.flops,
        magnitude=getattr(module, "magnitude", None),
        depth=getattr(module, "depth", None),
    )


def load_module(name: str, path: str) -> ModuleType:
    """Import a Python file under a name of our choosing."""
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def describe(error: BaseException) -> str:
    """An exception in one line: its kind, its first line of text, and where in whose file.

    What perfci raises itself needs no kind, and the file is the user's, not a library's.
    """
    lines = str(error).strip().splitlines()
    kind = type(error).__name__
    text = f"{kind}: {lines[0]}" if lines else kind
    if lines and type(error).__module__.startswith("perfci."):
        text = lines[0]
    elif is_shortage(error):
        text = describe_shortage(error)
    places = [
        f"{Path(frame.filename).name}:{frame.lineno}"
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(_NOT_THE_USERS)
    ]
    return f"{text} ({places[-1]})" if places else text


def case_arguments(case: Case) -> dict[str, Any]:
    """A case's keys as ``bytes_moved``, ``flops`` and ``depth`` take them."""
    return {**dict(case.arguments), "dtype": getattr(torch, case.dtype)}


def draw_inputs(reference: Reference, case: Case, *, device: str, seed: int) -> Arguments:
    """Draw the arguments of a case from a seed, in the case's distribution and layout.

    Raises TypeError where make_inputs returns something else than tensors and numbers by name.
    """
    generator = torch.Generator(device=device).manual_seed(seed)
    drawn = reference.make_inputs(**case_arguments(case), device=device, generator=generator)
    _require_arguments(drawn)
    return {
        name: _laid_out(_distributed(value, case.distribution, generator), case.layout)
        if isinstance(value, Tensor)
        else value
        for name, value in drawn.items()
    }


def as_float64(arguments: Arguments) -> Arguments:
    """The same (already rounded) arguments in float64, for the judge."""
    return {
        name: value.double() if isinstance(value, Tensor) and value.is_floating_point() else value
        for name, value in arguments.items()
    }


def snapshot(arguments: Arguments) -> Arguments:
    """Copies of the tensors, to see later whether a kernel has changed its inputs."""
    return {
        name: value.clone() if isinstance(value, Tensor) else value
        for name, value in arguments.items()
    }


def empty_like(arguments: Arguments) -> Arguments:
    """Arguments of the same shapes whose tensors hold zeros, to be filled in later."""
    return {
        name: torch.zeros_like(value) if isinstance(value, Tensor) else value
        for name, value in arguments.items()
    }


def count_bytes(values: Iterable[object]) -> int:
    """How many bytes the elements of those of the values take that are tensors."""
    tensors = [each for each in values if isinstance(each, Tensor)]
    return sum(each.numel() * each.element_size() for each in tensors)


def as_tuple(outputs: Tensor | Sequence[Tensor]) -> tuple[Tensor, ...]:
    """A reference's outputs as a tuple, also where there is only one; TypeError for others."""
    if isinstance(outputs, Tensor):
        return (outputs,)
    if not isinstance(outputs, tuple | list) or not all(isinstance(o, Tensor) for o in outputs):
        raise TypeError(f"returned a {type(outputs).__name__}, not tensors")
    return tuple(outputs)


def call_wanted(function: Callable[..., int], given: Mapping[str, Any]) -> int:
    """Call a function with those of the given keyword arguments that it takes."""
    names = inspect.signature(function).parameters
    return function(**{name: value for name, value in given.items() if name in names})


def _require_arguments(drawn: object) -> None:
    if not isinstance(drawn, dict):
        raise TypeError(f"make_inputs returned a {type(drawn).__name__}, not arguments by name")
    for name, value in drawn.items():
        if not isinstance(value, Tensor | int | float):
            kind = type(value).__name__
            raise TypeError(f"make_inputs returned a {kind} as '{name}', not a tensor or number")


def _distributed(value: Tensor, distribution: str, generator: torch.Generator) -> Tensor:
    if not value.is_floating_point():
        return value
    if distribution == "outliers":
        chosen = torch.rand(value.shape, generator=generator, device=value.device) < _OUTLIER_SHARE
        return torch.where(chosen, value * _OUTLIER_SCALE, value)
    return value * _SCALES[distribution]


def _laid_out(value: Tensor, layout: str) -> Tensor:
    """The same values as a view: every second element of a row, or behind an odd offset."""
    if layout == "contiguous" or value.dim() == 0:
        return value.contiguous()
    if layout == "strided":
        wide = value.new_full((*value.shape[:-1], 2 * value.shape[-1]), float("nan"))
        wide[..., ::2] = value
        return wide[..., ::2]
    padded = value.new_full((value.numel() + 3,), float("nan"))
    padded[3:] = value.reshape(-1)
    return padded[3:].view(value.shape)
