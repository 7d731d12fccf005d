"""What is here, what is missing, and what to do about it."""

import importlib.util
import sys
from collections.abc import Iterator

from perfci.config import Config, visible_devices
from perfci.device import cpu, default_testbed, has_gpu_driver
from perfci.drafts import command_to_import, describe, drafts_folder, find_cut_off
from perfci.errors import ExitCode, PerfciError
from perfci.findings import Finding, absent, broken, present
from perfci.gpu.nvml import NvmlError, driver_version, open_gpus
from perfci.history import commits
from perfci.history.errors import HistoryError, NoStoreError
from perfci.history.stores import open_store
from perfci.kernel import discover
from perfci.toolchain import find_compiler, find_ninja, torch_version
from perfci.units import count_things, format_bytes


def examine(config: Config) -> Iterator[Finding]:
    """Look at everything in turn; changes nothing."""
    yield present("python", f"{sys.version.split()[0]} ({sys.executable})")
    yield _torch()
    yield _compiler("C++ compiler", config.cxx, "install g++ (apt-get install g++) or set CXX")
    yield _ninja()
    yield from _gpu(config)
    yield _processor(config)
    yield from _git(config)
    yield _kernels(config)
    yield from _store(config)


def _torch() -> Finding:
    version = torch_version()
    if version is None:
        return broken("torch", "not installed: pip install torch", ExitCode.BUILD_ENVIRONMENT)
    return present("torch", version)


def _compiler(name: str, command: str, hint: str) -> Finding:
    compiler = find_compiler(command)
    if compiler is None:
        return broken(name, f"{command} does not answer: {hint}", ExitCode.BUILD_ENVIRONMENT)
    return present(name, f"{compiler.version} ({compiler.path})")


def _ninja() -> Finding:
    ninja = find_ninja()
    if ninja is None:
        detail = "not installed: variants are compiled one after the other; pip install ninja"
        return absent("ninja", detail)
    return present("ninja", ninja)


def _gpu(config: Config) -> Iterator[Finding]:
    gpus, reason = _known_gpus()
    for index, model in enumerate(gpus):
        yield present(f"GPU {index}", f"{model}; perfci doctor --gpu says whether it can measure")
    has_driver = bool(gpus) or has_gpu_driver()
    if not gpus:
        because = f"there is a driver, but {reason}" if has_driver else "no NVIDIA GPU or driver"
        yield absent("GPU", because if has_driver else f"{because}: CPU variants only")
    visible = visible_devices()
    if has_driver and visible is not None:
        yield absent("visible", f"to CUDA, of these: CUDA_VISIBLE_DEVICES={visible!r}")
    nvcc = find_compiler(config.nvcc)
    if nvcc is not None:
        yield present("nvcc", f"{nvcc.version} ({nvcc.path})")
    elif has_driver:
        yield broken(
            "nvcc",
            "not found, so no CUDA variant can be built: install the CUDA toolkit",
            ExitCode.BUILD_ENVIRONMENT,
        )
    else:
        yield absent("nvcc", "not found: no CUDA variants")


def _known_gpus() -> tuple[list[str], str]:
    """Model and driver of each GPU, as NVML names them; why there are none."""
    try:
        driver = driver_version()
        return [f"{gpu.ask('GetName')}, driver {driver}" for gpu in open_gpus()], ""
    except NvmlError as error:
        return [], str(error)


def _processor(config: Config) -> Finding:
    device = cpu()
    memory = format_bytes(device.memory_bytes or 0)
    testbed = config.testbed or default_testbed(device)
    cores = count_things(device.core_count or 0, "core")
    return present("CPU", f"{device.model}, {cores}, {memory}; testbed '{testbed}'")


def _git(config: Config) -> Iterator[Finding]:
    if importlib.util.find_spec("git") is None:
        yield absent("GitPython", "not installed: git is called")
    try:
        root = commits.repository_root(config.root)
        if root is None:
            detail = f"{config.root} is in no repository: runs need --commit SHA"
            yield absent("git", detail)
            return
        commit = commits.head(root)
    except HistoryError as error:
        yield broken("git", str(error), ExitCode.USAGE)
        return
    branch = commit.branch or "detached HEAD"
    dirty = "clean" if commit.dirty is None else "dirty: runs are kept apart from the commit's"
    yield present("git", f"{commit.sha[:10]} on {branch}, {dirty}")
    if commits.is_shallow(root):
        detail = "a shallow clone: order and merge bases are not known; git fetch --unshallow"
        yield absent("history", detail)


def _kernels(config: Config) -> Finding:
    try:
        found = discover(config.kernels)
    except PerfciError as error:
        return broken("kernels", str(error), ExitCode.CONFIGURATION)
    if not found:
        hint = "none there; docs/adding-a-kernel.md says what one is made of"
        return broken("kernels", f"{config.kernels}: {hint}", ExitCode.CONFIGURATION)
    names = ", ".join(kernel.name for kernel in found)
    return present("kernels", f"{names} ({config.kernels})")


def _store(config: Config) -> Iterator[Finding]:
    recorded: set[str] = set()
    try:
        with open_store(config.store, create=False) as store:
            recorded = {each.run_id for each in store.runs()}
        yield present("store", f"{store.url}, {count_things(len(recorded), 'run')}")
    except NoStoreError:
        yield absent("store", f"{config.store}: not there yet; the first perfci run makes it")
    except HistoryError as error:
        yield broken("store", str(error), ExitCode.STORE)
    for each in find_cut_off(drafts_folder(config), recorded=recorded):
        yield absent("unfinished", f"{describe(each)}: {command_to_import(each, config)}")
