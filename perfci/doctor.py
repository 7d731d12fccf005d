"""What is here, what is missing, and what to do about it."""

import importlib.util
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from perfci.config import Config
from perfci.device import cpu, default_testbed
from perfci.errors import ExitCode, PerfciError
from perfci.history import commits
from perfci.history.errors import HistoryError
from perfci.history.stores import open_store
from perfci.kernel import discover
from perfci.toolchain import find_compiler, find_ninja, torch_version
from perfci.units import format_bytes


class State(StrEnum):
    """How something is."""

    PRESENT = "present"
    ABSENT = "absent"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that perfci needs or can use. ``code`` is what its absence would end a run with.

    Something ``ABSENT`` is not needed here; something ``BROKEN`` is.
    """

    name: str
    state: State
    detail: str
    code: ExitCode = ExitCode.FINE


def examine(config: Config) -> Iterator[Finding]:
    """Look at everything in turn; changes nothing but may create the store."""
    yield Finding(
        name="python", state=State.PRESENT, detail=f"{sys.version.split()[0]} ({sys.executable})"
    )
    yield _torch()
    yield _compiler("C++ compiler", config.cxx, "install g++ (apt-get install g++) or set CXX")
    yield _ninja()
    yield from _gpu(config)
    yield _processor(config)
    yield from _git(config)
    yield _kernels(config)
    yield _store(config)


def _torch() -> Finding:
    version = torch_version()
    if version is None:
        return _broken("torch", "not installed: pip install torch", ExitCode.BUILD_ENVIRONMENT)
    return Finding(name="torch", state=State.PRESENT, detail=version)


def _compiler(name: str, command: str, hint: str) -> Finding:
    compiler = find_compiler(command)
    if compiler is None:
        return _broken(name, f"{command} does not answer: {hint}", ExitCode.BUILD_ENVIRONMENT)
    return Finding(name=name, state=State.PRESENT, detail=f"{compiler.version} ({compiler.path})")


def _ninja() -> Finding:
    ninja = find_ninja()
    if ninja is None:
        detail = "not installed: variants are compiled one after the other; pip install ninja"
        return Finding(name="ninja", state=State.ABSENT, detail=detail)
    return Finding(name="ninja", state=State.PRESENT, detail=ninja)


def _gpu(config: Config) -> Iterator[Finding]:
    gpus = _nvml_devices()
    if gpus:
        for index, (model, driver) in enumerate(gpus):
            yield Finding(name=f"GPU {index}", state=State.PRESENT, detail=f"{model}, {driver}")
    else:
        yield Finding(
            name="GPU", state=State.ABSENT, detail="no NVIDIA GPU or driver: CPU variants only"
        )
    nvcc = find_compiler(config.nvcc)
    if nvcc is not None:
        yield Finding(name="nvcc", state=State.PRESENT, detail=f"{nvcc.version} ({nvcc.path})")
    elif gpus:
        yield _broken(
            "nvcc",
            "not found, so no CUDA variant can be built: install the CUDA toolkit",
            ExitCode.BUILD_ENVIRONMENT,
        )
    else:
        yield Finding(name="nvcc", state=State.ABSENT, detail="not found: no CUDA variants")


def _nvml_devices() -> list[tuple[str, str]]:
    """Model and driver of each GPU, as the driver names them; none where there is no driver."""
    try:
        import pynvml  # noqa: PLC0415 — only the doctor needs it

        pynvml.nvmlInit()
    except Exception:  # noqa: BLE001 — no package, no library, no driver: no GPU
        return []
    try:
        driver = f"driver {pynvml.nvmlSystemGetDriverVersion()}"
        handles = [
            pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())
        ]
        return [(str(pynvml.nvmlDeviceGetName(handle)), driver) for handle in handles]
    finally:
        pynvml.nvmlShutdown()


def _processor(config: Config) -> Finding:
    device = cpu()
    memory = format_bytes(device.memory_bytes or 0)
    testbed = config.testbed or default_testbed(device)
    return Finding(
        name="CPU",
        state=State.PRESENT,
        detail=f"{device.model}, {device.core_count} cores, {memory}; testbed '{testbed}'",
    )


def _git(config: Config) -> Iterator[Finding]:
    if importlib.util.find_spec("git") is None:
        yield Finding(name="GitPython", state=State.ABSENT, detail="not installed: git is called")
    try:
        root = commits.repository_root(config.root)
        if root is None:
            detail = f"{config.root} is in no repository: runs need --commit SHA"
            yield Finding(name="git", state=State.ABSENT, detail=detail)
            return
        commit = commits.head(root)
    except HistoryError as error:
        yield _broken("git", str(error), ExitCode.USAGE)
        return
    branch = commit.branch or "detached HEAD"
    dirty = "clean" if commit.dirty is None else "dirty: runs are kept apart from the commit's"
    yield Finding(name="git", state=State.PRESENT, detail=f"{commit.sha[:10]} on {branch}, {dirty}")
    if commits.is_shallow(root):
        detail = "a shallow clone: order and merge bases are not known; git fetch --unshallow"
        yield Finding(name="history", state=State.ABSENT, detail=detail)


def _kernels(config: Config) -> Finding:
    try:
        found = discover(config.kernels)
    except PerfciError as error:
        return _broken("kernels", str(error), ExitCode.CONFIGURATION)
    if not found:
        hint = "none there; docs/adding-a-kernel.md says what one is made of"
        return _broken("kernels", f"{config.kernels}: {hint}", ExitCode.CONFIGURATION)
    names = ", ".join(kernel.name for kernel in found)
    return Finding(name="kernels", state=State.PRESENT, detail=f"{names} ({config.kernels})")


def _store(config: Config) -> Finding:
    try:
        with open_store(config.store) as store:
            count = len(store.runs())
    except HistoryError as error:
        return _broken("store", str(error), ExitCode.STORE)
    return Finding(name="store", state=State.PRESENT, detail=f"{store.url}, {count} runs")


def _broken(name: str, detail: str, code: ExitCode) -> Finding:
    return Finding(name=name, state=State.BROKEN, detail=detail, code=code)
