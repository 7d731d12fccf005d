"""What torch.compile has made of a variant: the code that a call runs, and what was chosen for it.

Inductor writes a module of Python for each graph. It holds the kernels that it has generated, as
text, and a function that calls them and the library in turn. Which of them an autotuner has chosen,
a Triton kernel with its configuration or a call of the library, is known once they have run.
"""

import ast
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from perfci.binary.canonical import digest
from perfci.binary.elf import ElfError
from perfci.binary.identity import cubin_code
from perfci.history.text import one_line

_MODULES = "torch._inductor.runtime.compile_tasks."
_LONGEST = 500
_IS_GRAPH = re.compile(r"call|partition_\d+")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_INCLUDE = re.compile(r'(#include\s+)[<"](?:[^>"\n]*/)?([^/>"\n]+)[>"]')
_HASHED_NAME = re.compile(r"\b(c)[a-z2-7]{51}\b(?=\.h)")


def find_generated(call: Callable[[], object]) -> tuple[tuple[str, str], ...]:
    """Names and texts of what one call runs of inductor's code; the call runs once.

    ``generated calls`` are the kernels and the library's functions in their order, ``generated
    code`` is a digest of all the text; of each Triton kernel there are configuration, registers
    and device code. Empty where the call runs nothing of inductor's.
    """
    graphs = _run(call)
    try:
        return tuple(_texts(graphs)) if graphs else ()
    except (AttributeError, LookupError, OSError, SyntaxError, TypeError, ValueError) as error:
        version = getattr(sys.modules["torch"], "__version__", "")
        return (("generated code not read", one_line(f"torch {version}: {error!r}")),)


def _run(call: Callable[[], object]) -> dict[CodeType, dict[str, Any]]:
    """The functions of inductor's modules that a call enters, with their modules' names."""
    entered: dict[CodeType, dict[str, Any]] = {}

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_name == "call":
            names = frame.f_globals
            if str(names.get("__name__", "")).startswith(_MODULES):
                entered.setdefault(frame.f_code, names)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    return entered


def _texts(graphs: dict[CodeType, dict[str, Any]]) -> Iterator[tuple[str, str]]:
    trees = [
        (ast.parse(Path(code.co_filename).read_bytes()), names) for code, names in graphs.items()
    ]
    called = [(each, names) for tree, names in trees for each in _calls(tree)]
    shown = ", ".join(each.removesuffix(".run") for each, _ in called)
    yield "generated calls", one_line(shown, limit=_LONGEST)
    yield "generated code", digest([_canonical(tree) for tree, _ in trees])
    for name, kernel in _triton_kernels(called).items():
        yield from _choice(name, kernel)


def _calls(tree: ast.Module) -> Iterator[str]:
    """What the module's graphs call in their order: its own kernels and the library's functions."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef) and _IS_GRAPH.fullmatch(function.name):
            calls = [each for each in ast.walk(function) if isinstance(each, ast.Call)]
            for each in sorted(calls, key=lambda call: (call.lineno, call.col_offset)):
                name = ast.unparse(each.func)
                if name.startswith(("extern_kernels.", "torch.ops.", "aten.", "cpp_", "triton_")):
                    yield name


def _canonical(tree: ast.Module) -> str:
    """A module without what says nothing of what it does: comments, and where files lie."""
    for each in ast.walk(tree):
        if isinstance(each, ast.Constant) and isinstance(each.value, str) and "\n" in each.value:
            each.value = _canonical_text(each.value)
    return ast.dump(tree)


def _canonical_text(text: str) -> str:
    """The text of a kernel likewise: one of Triton is Python, any other is C++."""
    try:
        return _canonical(ast.parse(text))
    except SyntaxError:
        without = _COMMENT.sub("", _INCLUDE.sub(r"\1\2", text))
        return " ".join(_HASHED_NAME.sub(r"\1", without).split())


def _triton_kernels(called: list[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    """The Triton kernels among what is called, by name; of several graphs by a number too."""
    kernels: dict[str, Any] = {}
    for call, names in called:
        name = call.removesuffix(".run")
        kernel = names.get(name)
        if not hasattr(kernel, "launchers") or any(each is kernel for each in kernels.values()):
            continue
        count = sum(known.partition(" ")[0] == name for known in kernels)
        kernels[name if count == 0 else f"{name} {count + 1}"] = kernel
    return kernels


def _choice(name: str, kernel: Any) -> Iterator[tuple[str, str]]:
    """What was chosen for a Triton kernel: of several launchers an autotuner has left one."""
    try:
        (launcher,) = kernel.launchers
        config = launcher.config
        options = {"num_warps": config.num_warps, "num_stages": config.num_stages, **config.kwargs}
        said = ", ".join(f"{option} {value}" for option, value in options.items())
        registers = f"used {launcher.n_regs}, spilled {launcher.n_spills}"
        device_code = cubin_code(_cubin(kernel, launcher))
    except (ElfError, AttributeError, LookupError, OSError, TypeError, ValueError) as error:
        yield f"{name} configuration not read", one_line(repr(error))
        return
    yield f"{name} configuration", one_line(said, limit=_LONGEST)
    yield f"{name} registers", registers
    yield f"{name} device code", device_code


def _cubin(kernel: Any, launcher: Any) -> bytes:
    """The binary that is launched, from Triton's cache where inductor does not hold it."""
    chosen, *_ = (each for each in kernel.compile_results if each.config == launcher.config)
    held = getattr(chosen.kernel, "asm", None)
    if held is not None:
        return bytes(held["cubin"])
    utilities = sys.modules["torch._inductor.runtime.runtime_utils"]
    cache = Path(utilities.triton_cache_dir(chosen.compile_meta.get("device", 0)))
    (path,) = (cache / str(launcher.cache_hash)).glob("*.cubin")
    return path.read_bytes()
