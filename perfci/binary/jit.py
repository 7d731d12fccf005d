"""How Triton has compiled the kernels that a call launches: what was chosen, and the code of it.

Triton compiles a function anew for other arguments, and its autotuner chooses between
configurations by timing them, so that what a cell was timed with is known only once it has run.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from inspect import getattr_static
from typing import Any

from perfci.binary.elf import ElfError
from perfci.binary.identity import cubin_code
from perfci.history.text import one_line

_LONGEST = 500
_COMPILED_BY_DYNAMO = "_torchdynamo_orig_callable"


def find_configurations(
    call: Callable[[], object], namespace: Mapping[str, object]
) -> tuple[tuple[str, str], ...]:
    """Names and texts of the Triton kernels that one call launches, in order; the call runs once.

    They are those of the ``@triton.jit`` functions in a module's namespace: ``_add configuration``
    and ``_add device code``. Empty where it has none.
    """
    functions = [each for each in map(_unwrapped, namespace.values()) if each is not None]
    if not functions:
        return ()
    try:
        handles = _launched(call)
        kernels = {
            kernel.function: (function, kernel)
            for function in functions
            for cache, *_ in function.device_caches.values()
            for kernel in cache.values()
        }
        found = [kernels[each] for each in dict.fromkeys(handles) if each in kernels]
        return tuple(_texts(found))
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        version = getattr(sys.modules["triton"], "__version__", "")
        return (("configuration not read", one_line(f"Triton {version}: {error!r}")),)


def is_compiled_as_it_is(namespace: Mapping[str, object]) -> bool:
    """Whether a module has ``@triton.jit`` functions, all its own, and nothing chooses for them."""
    functions: list[Any] = [each for each in namespace.values() if _unwrapped(each) is not None]
    own = namespace.get("__name__")
    return (
        bool(functions)
        and all(each is _unwrapped(each) and each.fn.__module__ == own for each in functions)
        and not any(_is_compiled_by_dynamo(each) for each in namespace.values())
    )


def _is_compiled_by_dynamo(value: object) -> bool:
    """Asked without running what a variant's object does when it is asked for an attribute."""
    return getattr_static(value, _COMPILED_BY_DYNAMO, None) is not None


def _unwrapped(value: Any) -> Any:
    """The function that Triton compiles, out of its autotuner and the like; None for all else."""
    while type(value).__module__.startswith("triton.") and not hasattr(value, "device_caches"):
        value = getattr(value, "fn", None)
    return value if type(value).__module__.startswith("triton.") else None


def _launched(call: Callable[[], object]) -> list[int]:
    """The driver's handles of the kernels that Triton launches during a call."""
    handles: list[int] = []

    def note(launch: Any) -> None:
        handles.append(launch.data["function"])

    hook: Any = sys.modules["triton"].knobs.runtime.launch_enter_hook
    hook.add(note)
    try:
        call()
    finally:
        hook.remove(note)
    return handles


def _texts(found: list[tuple[Any, Any]]) -> Iterator[tuple[str, str]]:
    counts: dict[str, int] = {}
    for function, kernel in found:
        name = one_line(function.__name__, limit=100)
        counts[name] = counts.get(name, 0) + 1
        numbered = name if counts[name] == 1 else f"{name} {counts[name]}"
        yield f"{numbered} configuration", _configuration(function, kernel)
        yield f"{numbered} registers", f"used {kernel.n_regs}, spilled {kernel.n_spills}"
        try:
            yield f"{numbered} device code", cubin_code(kernel.asm["cubin"])
        except ElfError as error:
            yield f"{numbered} device code not read", str(error)


def _configuration(function: Any, kernel: Any) -> str:
    """``num_warps 4, num_stages 2, BLOCK 64``: the compiler's options and the constants."""
    chosen = kernel.metadata
    options: dict[str, object] = {"num_warps": chosen.num_warps, "num_stages": chosen.num_stages}
    if chosen.num_ctas > 1:
        options["num_ctas"] = chosen.num_ctas
    if chosen.maxnreg is not None:
        options["maxnreg"] = chosen.maxnreg
    for parameter in function.params:
        if parameter.is_constexpr and (parameter.num,) in kernel.src.constants:
            value = kernel.src.constants[parameter.num,]
            value = getattr(value, "value", value)
            options[parameter.name] = getattr(value, "__name__", value)
    return one_line(", ".join(f"{name} {value}" for name, value in options.items()), limit=_LONGEST)
