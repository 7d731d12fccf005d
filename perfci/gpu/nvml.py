"""NVML as far as perfci asks it, and never to set anything. No other module knows pynvml.

NVML goes by neither CUDA's order nor CUDA_VISIBLE_DEVICES: a GPU is found by its UUID.
"""

from typing import Any

_REASONS = {
    "NVMLError_LibraryNotFound": "NVIDIA's libnvidia-ml.so.1 is not here",
    "NVMLError_DriverNotLoaded": "NVIDIA's driver is not loaded",
    "NVMLError_NoPermission": "the driver lets this user ask nothing (no permission)",
    "NVMLError_LibRmVersionMismatch": "NVIDIA's library and driver are of different versions: "
    "restart the machine",
}


class NvmlError(Exception):
    """NVML has nothing to say, and why: one line."""


class Gpu:
    """One GPU, or one instance of a GPU that is shared by MIG."""

    def __init__(self, library: Any, handle: Any) -> None:
        self._library = library
        self._handle = handle

    def ask(self, name: str, *arguments: Any) -> Any:
        """What the function ``nvmlDevice…`` of that name says; None where the driver does not.

        An argument may be the name of one of NVML's numbers: ``NVML_CLOCK_SM``.
        """
        try:
            numbers = [
                getattr(self._library, each) if isinstance(each, str) else each
                for each in arguments
            ]
            return getattr(self._library, f"nvmlDevice{name}")(self._handle, *numbers)
        except (self._library.NVMLError, AttributeError):
            return None

    def processes(self) -> frozenset[int] | None:
        """The ids of the processes on it, as the driver numbers them; None where it says none.

        In a container it may list nothing, or ids of the host.
        """
        lists = [
            self.ask(f"Get{kind}RunningProcesses") for kind in ("Compute", "Graphics", "MPSCompute")
        ]
        if lists[0] is None:
            return None
        return frozenset(int(each.pid) for found in lists for each in found or ())


def open_gpu(uuid: str) -> Gpu:
    """The GPU, or the MIG instance, of that UUID. Raises NvmlError."""
    library = _opened()
    try:
        return Gpu(library, library.nvmlDeviceGetHandleByUUID(uuid))
    except library.NVMLError_NotFound:
        raise NvmlError(f"the driver knows no {uuid}") from None
    except library.NVMLError as error:
        raise NvmlError(_reason(error)) from None


def find_uuid(bare: str, named: str = "") -> str:
    """The UUID with its kind in front, by which NVML and CUDA_VISIBLE_DEVICES know a device.

    ``bare`` is CUDA's, ``named`` what CUDA_VISIBLE_DEVICES calls it: with MIG, CUDA may tell the
    whole GPU's, of which nobody could see which instance is meant.
    """
    if named.strip().startswith("MIG-"):
        return named.strip()
    instance = f"MIG-{bare}"
    try:
        open_gpu(instance)
    except NvmlError:
        return f"GPU-{bare}"
    return instance


def open_gpus() -> list[Gpu]:
    """All GPUs of this machine in NVML's order. Raises NvmlError."""
    library = _opened()
    try:
        return [
            Gpu(library, library.nvmlDeviceGetHandleByIndex(index))
            for index in range(library.nvmlDeviceGetCount())
        ]
    except library.NVMLError as error:
        raise NvmlError(_reason(error)) from None


def driver_version() -> str | None:
    """The version of the driver. Raises NvmlError where there is none to ask."""
    library = _opened()
    try:
        return str(library.nvmlSystemGetDriverVersion())
    except library.NVMLError:
        return None


def _opened() -> Any:
    try:
        import pynvml  # noqa: PLC0415 — a GPU box may lack it
    except ImportError:
        raise NvmlError("pynvml is not installed: pip install nvidia-ml-py") from None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise NvmlError(_reason(error)) from None
    return pynvml


def _reason(error: Exception) -> str:
    return _REASONS.get(type(error).__name__, f"NVML says: {error}")
