"""The compilers that are there, and the command that builds one variant with them."""

import functools
import hashlib
import importlib.metadata
import importlib.util
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from perfci.environments.installation import Installation
from perfci.errors import BuildEnvironmentError
from perfci.kernel import Variant

INCLUDE = Path(__file__).parent / "include"
CUDA_INSTALL_FOLDERS = ("/usr/local/cuda/bin", "/opt/cuda/bin")
DEFAULT_ARCHITECTURES = ("sm_80", "sm_90")
_EXTENSION_LIBRARIES = ("torch", "torch_cpu", "c10", "torch_python")


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiler:
    """A compiler by its path (and what it is always called with) and the version that it prints."""

    path: str
    version: str


def find_compiler(command: str) -> Compiler | None:
    """The compiler of that name or path, or None where it is not there or does not answer."""
    words = shlex.split(command)
    path = _on_path(words[0]) if words else None
    if path is None:
        return None
    command = shlex.join([path, *words[1:]])
    version = _version(command)
    return Compiler(path=command, version=version) if version else None


def require_compiler(command: str, purpose: str) -> Compiler:
    """Like find_compiler, but an error that says what to install where there is none."""
    compiler = find_compiler(command)
    if compiler is None:
        hint = (
            "install the CUDA toolkit or set [tool.perfci] nvcc"
            if purpose == "CUDA"
            else "install it (Debian, Ubuntu: apt-get install g++) or set CXX"
        )
        raise BuildEnvironmentError(f"{command}: no working {purpose} compiler there; {hint}")
    return compiler


def find_ninja() -> str | None:
    """The ninja program: the one of the ninja package, else the one on the PATH."""
    beside = Path(sysconfig.get_path("scripts")) / "ninja"
    return str(beside) if beside.is_file() else shutil.which("ninja")


def compile_command(
    variant: Variant, *, compiler: Compiler, architectures: Sequence[str], module_name: str
) -> list[str]:
    """The command that turns a variant's source into an object file, less ``-o``.

    ``module_name`` is the Python module's name where the variant is a PyTorch extension.
    """
    return [*_command(variant, compiler, architectures, module_name), "-c", str(variant.path)]


def link_command(
    variant: Variant,
    *,
    compiler: Compiler,
    architectures: Sequence[str],
    module_name: str,
    object_file: str,
) -> list[str]:
    """The command that turns that object file into a shared library, less ``-o``."""
    libraries = [*variant.declaration.libraries]
    if variant.kind == "extension":
        libraries += _EXTENSION_LIBRARIES
    command = [*_command(variant, compiler, architectures, module_name), "-shared", object_file]
    # Behind the object, since a linker may drop a library that nothing has needed yet.
    return [*command, *(f"-l{each}" for each in libraries)]


def _command(
    variant: Variant, compiler: Compiler, architectures: Sequence[str], module_name: str
) -> list[str]:
    """What compiling and linking have in common."""
    assert variant.path is not None
    declared = variant.declaration
    cuda = variant.path.suffix == ".cu"
    command = [*shlex.split(compiler.path), "-std=c++17", "-O3"]
    # So that what a source says of itself (__FILE__, assert) is the same in every folder.
    folder = f"-fmacro-prefix-map={variant.path.parent}/="
    if cuda:
        # Plain, so that perfci.binary.identity can read it.
        command += ["-no-compress", "-Xptxas", "-v", "-Xcompiler", "-fPIC"]
        # nvcc parts the host compiler's options at commas, and hands them to a shell as they are.
        command += ["-Xcompiler", shlex.quote(folder.replace(",", r"\,"))]
        for architecture in cuda_architectures(variant, architectures):
            number = architecture.removeprefix("sm_")
            command += ["-gencode", f"arch=compute_{number},code=sm_{number}"]
    else:
        command += ["-fPIC", "-Wall", folder]
    if variant.kind == "c":
        command += _own_statics(compiler, cuda=cuda)
    command += [f"-I{INCLUDE}", f"-I{variant.path.parent}", *declared.flags]
    if variant.kind == "extension":
        command += _extension_flags(module_name, variant.installation)
    return command


def _own_statics(compiler: Compiler, *, cuda: bool) -> list[str]:
    """Keep what g++ has once a process by default, inline and template statics, in each library.

    Two sides of a cell are two libraries of one process. What torch shares with its extensions in
    that way is left alone, and clang does not do it.
    """
    if "clang" in compiler.version.lower():
        return []
    return ["-Xcompiler", "-fno-gnu-unique"] if cuda else ["-fno-gnu-unique"]


def cuda_architectures(variant: Variant, architectures: Sequence[str]) -> list[str]:
    """The architectures to compile a CUDA variant for: those asked for that it can run on.

    A variant that declares ``sm_90a`` is compiled for that wherever ``sm_90`` is asked for.
    """
    smallest = variant.declaration.architecture
    asked = list(dict.fromkeys(architectures or DEFAULT_ARCHITECTURES))
    if smallest is None:
        return asked
    fitting = [each for each in asked if architecture_number(each) >= architecture_number(smallest)]
    if smallest[-1] in "af":
        fitting = [smallest for each in fitting if each.rstrip("af") == smallest.rstrip("af")][:1]
    return fitting


def architecture_number(architecture: str) -> int:
    """The number of an architecture: 90 for ``sm_90a``."""
    return int(architecture.removeprefix("sm_").rstrip("af"))


@functools.cache
def host_processor_digest() -> str:
    """What ``-march=native`` stands for on this machine: a digest of model and features."""
    wanted = (
        "vendor_id",
        "cpu family",
        "model",
        "flags",
        "CPU implementer",
        "CPU part",
        "Features",
    )
    lines: list[str] = []
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        key = line.partition(":")[0].strip()
        if not line and lines:
            break
        if key in wanted:
            lines.append(line)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def torch_version() -> str | None:
    """The version of the torch that is installed, without importing it."""
    try:
        return importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return None


def require_torch() -> None:
    """Raise BuildEnvironmentError where kernels cannot be run for want of torch."""
    try:
        is_there = importlib.util.find_spec("torch") is not None
    except ValueError:  # it is kept from being imported
        is_there = False
    if not is_there:
        raise BuildEnvironmentError(
            f"torch is not installed for {sys.executable}: install the one that kernels are to "
            "run with there (pip install torch)"
        )


def torch_cuda_version() -> str | None:
    """The CUDA version that the installed torch is built with, without importing it."""
    folder = torch_folder()
    return None if folder is None else cuda_version_of(folder)


def torch_folder() -> Path | None:
    """Where the installed torch is, without importing it."""
    spec = importlib.util.find_spec("torch")
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


def cuda_version_of(torch: Path) -> str | None:
    """The CUDA version that the torch in a folder is built with."""
    text = (torch / "version.py").read_text(encoding="utf-8")
    found = re.search(r"^cuda\b[^=\n]*=\s*'([\d.]+)'", text, re.MULTILINE)
    return found[1] if found else None


def _extension_flags(module_name: str, installation: Installation | None) -> list[str]:
    folder = installation.torch if installation else torch_folder()
    if folder is None:
        raise BuildEnvironmentError("torch is not installed; a PyTorch extension needs it")
    return [
        f"-DTORCH_EXTENSION_NAME={module_name}",
        f"-I{folder / 'include'}",
        f"-I{folder / 'include/torch/csrc/api/include'}",
        f"-I{sysconfig.get_path('include')}",
        f"-L{folder / 'lib'}",
    ]


def _on_path(name: str) -> str | None:
    found = shutil.which(name)
    if found is None and name == "nvcc":
        found = shutil.which(name, path=":".join(CUDA_INSTALL_FOLDERS))
    return found


@functools.cache
def _version(command: str) -> str:
    # The whole command, since its first word may be a wrapper, such as ccache, around the compiler.
    words = [*shlex.split(command), "--version"]
    try:
        answer = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    lines = [line.strip() for line in answer.stdout.splitlines() if line.strip()]
    if answer.returncode != 0 or not lines:
        return ""
    # nvcc's first line is its name, the last its build; a host compiler's first says it all.
    return lines[-1] if "nvcc" in Path(words[0]).name else lines[0]
