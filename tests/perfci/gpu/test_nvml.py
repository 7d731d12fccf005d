"""NVML that is missing, refuses, or knows other GPUs: each is a reason in one line.

All but the first are played by a double of pynvml.
"""

import re
import sys
from pathlib import Path

import nvml_double
import pynvml
import pytest

from perfci.device import has_gpu_driver
from perfci.gpu.nvml import NvmlError, driver_version, find_uuid, open_gpu, open_gpus

_PERFCI = Path(__file__).parents[3] / "perfci"


def test_what_perfci_asks_is_in_the_package_and_sets_nothing() -> None:
    asking = ("gpu/clocks.py", "doctor.py", "fitness.py")
    sources = [(_PERFCI / name).read_text() for name in asking]
    asked = {name for each in sources for name in re.findall(r"\.ask\(\s*[\"'](\w+)", each)}
    numbers = {name for each in sources for name in re.findall(r"\bNVML_\w+", each)}
    assert {"GetClockInfo", "GetUUID", "GetName"} <= asked
    assert {name for name in asked if not hasattr(pynvml, f"nvmlDevice{name}")} == set()
    assert {name for name in numbers if not hasattr(pynvml, name)} == set()
    assert {name for name in asked if not name.startswith("Get")} == set()


@pytest.mark.skipif(has_gpu_driver(), reason="there is a driver")
def test_a_machine_without_a_driver_says_so() -> None:
    with pytest.raises(NvmlError, match=r"NVIDIA's libnvidia-ml\.so\.1 is not here"):
        open_gpu("GPU-1")


def test_a_machine_without_the_package_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(NvmlError, match="pynvml is not installed: pip install nvidia-ml-py"):
        open_gpus()


@pytest.mark.parametrize(
    ("refusal", "reason"),
    [
        (nvml_double.NVMLError_NoPermission(), "no permission"),
        (nvml_double.NVMLError("Unknown Error"), "NVML says: Unknown Error"),
    ],
)
def test_a_refusal_is_told(
    monkeypatch: pytest.MonkeyPatch, refusal: Exception, reason: str
) -> None:
    nvml_double.install(monkeypatch, "GPU-1", refuses=refusal)
    for ask in (lambda: open_gpu("GPU-1"), open_gpus, driver_version):
        with pytest.raises(NvmlError, match=reason):
            ask()


def test_a_gpu_is_found_by_its_uuid_whatever_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml_double.install(monkeypatch, "GPU-1", "GPU-2", "MIG-3")
    assert open_gpu("GPU-2").ask("GetUUID") == "GPU-2"
    assert open_gpu("MIG-3").ask("GetUUID") == "MIG-3"
    with pytest.raises(NvmlError, match="the driver knows no GPU-4"):
        open_gpu("GPU-4")
    assert [each.ask("GetUUID") for each in open_gpus()] == ["GPU-1", "GPU-2", "MIG-3"]


@pytest.mark.parametrize(
    ("bare", "named", "uuid"),
    [
        ("1", "", "GPU-1"),
        ("1", "0", "GPU-1"),
        ("1", "GPU-1", "GPU-1"),
        ("3", "", "MIG-3"),
        ("1", " MIG-3 ", "MIG-3"),  # CUDA tells the GPU's, and means the instance
        ("unknown", "", "GPU-unknown"),
    ],
)
def test_an_instance_of_mig_is_known_by_its_own_uuid(
    monkeypatch: pytest.MonkeyPatch, bare: str, named: str, uuid: str
) -> None:
    nvml_double.install(monkeypatch, "GPU-1", "MIG-3")
    assert find_uuid(bare, named) == uuid


def test_without_nvml_a_device_is_taken_for_a_whole_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml_double.install(monkeypatch, "MIG-1", refuses=nvml_double.NVMLError_NoPermission())
    assert find_uuid("1") == "GPU-1"


def test_what_a_gpu_or_a_package_does_not_tell_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml_double.install(monkeypatch, "GPU-1")
    assert open_gpu("GPU-1").ask("GetFanSpeed") is None


def test_processes_of_every_kind_are_listed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    drawing = [type("Process", (), {"pid": pid}) for pid in (7, 9)]
    answers = {"GetGraphicsRunningProcesses": drawing}
    nvml_double.install(monkeypatch, "GPU-1", pids=[7, 8], answers=answers)
    assert open_gpu("GPU-1").processes() == {7, 8, 9}


def test_who_is_on_a_gpu_may_be_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"GetComputeRunningProcesses": nvml_double.NVMLError_NoPermission()}
    nvml_double.install(monkeypatch, "GPU-1", pids=[7], answers=answers)
    assert open_gpu("GPU-1").processes() is None
