"""Which devices a name means; what the GPUs are is told by a probe."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from records import cell

from perfci import device
from perfci.config import load_config
from perfci.decision.compare import key_of
from perfci.device import environment, find_target, find_targets
from perfci.errors import DeviceError, UsageError
from perfci.history.model import Device

_GPUS = [Device(kind="cuda", model="Some GPU", uuid=f"GPU-{name}") for name in "abc"]


def _uuids(name: str | None, gpus: Sequence[Device] = _GPUS) -> list[str | None]:
    return [each.device.uuid for each in find_targets(name, lambda: gpus)]


@pytest.fixture
def _driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "has_gpu_driver", lambda: True)


@pytest.mark.usefixtures("_driver")
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (None, ["GPU-a"]),
        ("1", ["GPU-b"]),
        ("gpu-c", ["GPU-c"]),
        ("2, 0", ["GPU-c", "GPU-a"]),
        ("0,GPU-a,0", ["GPU-a"]),
        ("all", ["GPU-a", "GPU-b", "GPU-c"]),
        ("cpu", [None]),
    ],
)
def test_names_mean_devices_each_once(name: str | None, expected: list[str | None]) -> None:
    assert _uuids(name) == expected


@pytest.mark.usefixtures("_driver")
@pytest.mark.parametrize("name", ["3", "GPU-", "-1", "", "0,", "tpu"])
def test_what_is_not_there_is_named_with_what_is(name: str) -> None:
    with pytest.raises(DeviceError, match=r"no GPU '.*' here; known: 0 \(GPU-a\), 1 \(GPU-b\)"):
        _uuids(name)


@pytest.mark.usefixtures("_driver")
def test_a_driver_without_a_gpu_leaves_the_cpu_unless_a_gpu_is_asked_for() -> None:
    assert _uuids(None, []) == [None]
    with pytest.raises(DeviceError, match="no GPU here for --device 0"):
        _uuids("0", [])


@pytest.mark.usefixtures("_driver")
@pytest.mark.parametrize("value", ["", "7", "GPU-nowhere", "-1"])
def test_cuda_visible_devices_that_leaves_no_gpu_is_named(
    monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
    with pytest.raises(DeviceError) as caught:
        _uuids("0", [])
    assert str(caught.value) == (
        f"no GPU here for --device 0: CUDA_VISIBLE_DEVICES={value!r} leaves none; "
        "unset it, or name one that nvidia-smi -L lists"
    )


@pytest.mark.usefixtures("_driver")
@pytest.mark.parametrize("value", ["1", "GPU-b", "MIG-b"])
def test_of_what_cuda_visible_devices_leaves_the_first_is_number_0(
    monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
    left = [replace(_GPUS[1], uuid=value if value.startswith("MIG") else "GPU-b")]
    assert _uuids("0", left) == _uuids(left[0].uuid, left) == _uuids("all", left) == [left[0].uuid]
    with pytest.raises(DeviceError, match=f"CUDA_VISIBLE_DEVICES='{value}' hides all others$"):
        _uuids("1", left)


@pytest.mark.usefixtures("_driver")
def test_one_device_is_not_the_first_of_several() -> None:
    assert find_target("1", lambda: _GPUS).device.uuid == "GPU-b"
    with pytest.raises(UsageError, match="--device 0,1 means 2 GPUs; name one of them"):
        find_target("0,1", lambda: _GPUS)
    assert find_target("all", lambda: _GPUS[:1]).device.uuid == "GPU-a"


def test_two_models_of_one_host_are_two_series_under_whatever_name(tmp_path: Path) -> None:
    models = [replace(_GPUS[0], model=name) for name in ("NVIDIA H200", "NVIDIA T4")]
    for settings in ({}, {"testbed": "lab"}):
        config = load_config(tmp_path, environment={}, **settings)
        places = [environment(each, config) for each in models]
        assert len({key_of(cell((1.0,)), place) for place in places}) == 2
        assert [place.testbed for place in places] == (
            ["lab"] * 2 if settings else ["nvidia-h200", "nvidia-t4"]
        )
