"""The GPUs as torch sees them: asked in a process of its own, since it starts CUDA."""

import torch

from perfci.config import visible_devices
from perfci.device import gpu_driver_version
from perfci.gpu.nvml import find_uuid
from perfci.history.model import Device


def probe_gpus() -> tuple[Device, ...]:
    """Every visible GPU, in CUDA's order."""
    if not torch.cuda.is_available():
        return ()
    driver = gpu_driver_version()
    named = (visible_devices() or "").split(",")
    found = []
    for index in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(index)
        found.append(
            Device(
                kind="cuda",
                model=properties.name,
                uuid=find_uuid(str(properties.uuid), named[index] if index < len(named) else ""),
                compute_capability=f"{properties.major}.{properties.minor}",
                sm_count=properties.multi_processor_count,
                memory_bytes=properties.total_memory,
                driver=driver,
            )
        )
    return tuple(found)
