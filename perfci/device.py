"""What the kernels run on. Torch-free: a GPU's properties are asked of a worker or of NVML."""

import os
import platform
import re
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from perfci.config import Config, visible_devices
from perfci.errors import DeviceError, UsageError
from perfci.history.model import Device, Environment
from perfci.plan import Target
from perfci.toolchain import find_compiler, torch_cuda_version, torch_version


def find_targets(name: str | None, probe: Callable[[], Sequence[Device]]) -> list[Target]:
    """The devices that a name means, each as what a pass runs on.

    ``cpu``; ``all`` GPUs; a GPU's number or UUID, or several with commas between. Without a name:
    the first GPU, or the CPU where there is none. ``probe`` lists the GPUs and is asked only
    where there is a driver. Raises DeviceError where a device is not there.
    """
    if name == "cpu" or (name is None and not has_gpu_driver()):
        return [Target(name="cpu", device=cpu())]
    gpus = probe() if has_gpu_driver() else []
    if name is None:
        chosen = list(gpus[:1])
        return [_gpu_target(each) for each in chosen] or [Target(name="cpu", device=cpu())]
    if not gpus:
        raise DeviceError(f"no GPU here for --device {name}: {why_no_gpu()}")
    if name in ("all", "cuda"):
        return [_gpu_target(each) for each in gpus]
    named = [_named(each.strip(), gpus) for each in name.split(",")]
    return [_gpu_target(each) for each in dict.fromkeys(named)]


def find_target(name: str | None, probe: Callable[[], Sequence[Device]]) -> Target:
    """The one device that a name means. Raises UsageError where it means several."""
    targets = find_targets(name, probe)
    if len(targets) > 1:
        raise UsageError(f"--device {name} means {len(targets)} GPUs; name one of them")
    return targets[0]


def why_no_gpu() -> str:
    """Why there is no GPU for CUDA, as far as it is known without it, and what to do."""
    if not has_gpu_driver():
        return "no NVIDIA driver is here"
    visible = visible_devices()
    if visible is None:
        return "there is a driver, but torch sees no GPU; nvidia-smi says what the driver sees"
    left = f"CUDA_VISIBLE_DEVICES={visible!r} leaves none"
    return f"{left}; unset it, or name one that nvidia-smi -L lists"


def has_gpu_driver() -> bool:
    """Whether there is an NVIDIA driver at all; cheap, and no promise that a GPU works."""
    return any(Path(each).exists() for each in ("/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg"))


def gpu_driver_version() -> str | None:
    """The version of the NVIDIA driver's kernel module, None where it does not say."""
    try:
        text = Path("/proc/driver/nvidia/version").read_text(encoding="utf-8")
    except OSError:
        return None
    found = re.search(r"Kernel Module(?: for \S+)?\s+([\d.]+)", text)
    return found[1] if found else None


def _gpu_target(device: Device) -> Target:
    # Only this GPU will be visible to the pass, so that it is always the first.
    return Target(name="cuda:0", device=device)


def _named(name: str, gpus: Sequence[Device]) -> Device:
    if name.isdigit() and int(name) < len(gpus):
        return gpus[int(name)]
    for each in gpus:
        if each.uuid is not None and each.uuid.lower() == name.lower():
            return each
    known = ", ".join(f"{index} ({each.uuid})" for index, each in enumerate(gpus))
    visible = visible_devices()
    hidden = "" if visible is None else f"; CUDA_VISIBLE_DEVICES={visible!r} hides all others"
    raise DeviceError(f"no GPU '{name}' here; known: {known}{hidden}")


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
    nvcc = find_compiler(config.nvcc) if device.kind == "cuda" else None
    return Environment(
        testbed=config.testbed or default_testbed(device),
        device=device,
        torch=torch_version() or "",
        cuda=torch_cuda_version() if device.kind == "cuda" else None,
        nvcc=nvcc.version if nvcc else None,
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
