"""What the kernels run on. Torch-free: a GPU's properties are asked of a worker or of NVML."""

import os
import platform
import re
import socket
import sys
from pathlib import Path

from perfci.config import Config
from perfci.errors import DeviceError
from perfci.history.model import Device, Environment
from perfci.toolchain import find_compiler, torch_version


def find_device(name: str | None) -> tuple[str, Device]:
    """The device of that name as torch calls it, and what it is.

    Without a name: the machine's best. Raises DeviceError where it is not there.
    """
    if name in (None, "cpu"):
        return "cpu", cpu()
    raise DeviceError(f"no device '{name}' here; known: cpu")


def cpu() -> Device:
    """The processor, with the cores that this process may use."""
    return Device(
        kind="cpu",
        model=_cpu_model(),
        core_count=len(os.sched_getaffinity(0)),
        memory_bytes=memory_bytes(),
    )


def environment(device: Device, config: Config) -> Environment:
    """Where a run is measured."""
    compiler = find_compiler(config.cxx)
    return Environment(
        testbed=config.testbed or default_testbed(device),
        device=device,
        torch=torch_version() or "",
        compiler=compiler.version if compiler else None,
        python=platform.python_version(),
        os=_os_name(),
        host=socket.gethostname(),
    )


def default_testbed(device: Device) -> str:
    """A name from the device's model, where the operator has declared none."""
    cores = f" {device.core_count} cores" if device.kind == "cpu" else ""
    return re.sub(r"[^a-z0-9]+", "-", f"{device.model}{cores}".lower()).strip("-")


def memory_bytes() -> int:
    """The machine's memory, or the control group's where that is less."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii").strip()
    except OSError:
        return total
    return min(total, int(limit)) if limit.isdigit() else total


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("model name", "Model") and value.strip():
            return re.sub(r"\((R|TM|r|tm)\)", "", value).strip()
    return platform.machine()


def _os_name() -> str:
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return f"{platform.system()} {platform.release()}"
    return f"{release.get('PRETTY_NAME', 'Linux')}, {sys.platform} {platform.release()}"
