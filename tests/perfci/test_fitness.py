"""Whether a GPU can measure: each state of it, played by a double of pynvml, and its readings."""

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import click
import nvml_double
import pytest
from records import gpu_anchors

from perfci.anchors.canary import NOT_FLUSHED
from perfci.findings import Finding, State
from perfci.fitness import examine_driver, examine_gpu, examine_readings
from perfci.history.model import Device, Measurement, Pass, Status
from perfci.reports.columns import WIDTH, measure
from perfci.reports.findings import findings_table

_GPU = Device(kind="cuda", model="NVIDIA H200", uuid="GPU-1")
_WELL: dict[str, Any] = {
    "GetClockInfo": {("GPU-1", "NVML_CLOCK_SM"): 345, ("GPU-1", "NVML_CLOCK_MEM"): 3201},
    "GetMaxClockInfo": 1980,
    "GetApplicationsClock": 1980,
    "GetTemperature": 41,
    "GetPowerUsage": 75_000,
    "GetEnforcedPowerLimit": 700_000,
    "GetPowerManagementDefaultLimit": 700_000,
    "GetEccMode": (1, 1),
    "GetTotalEccErrors": 0,
    "GetPersistenceMode": 1,
    "GetMigMode": (0, 0),
    "GetComputeMode": 0,
    "GetDisplayActive": 0,
}


def _by_name(findings: Sequence[Finding]) -> dict[str, tuple[State, str]]:
    lines = findings_table(findings)
    assert max(measure(click.unstyle(line)) for line in lines) <= WIDTH
    return {each.name: (each.state, each.detail) for each in findings}


def _state(
    monkeypatch: pytest.MonkeyPatch, pids: Sequence[int] = (), **answers: Any
) -> dict[str, tuple[State, str]]:
    double = nvml_double.install(monkeypatch, "GPU-1", pids=[*pids], answers={**_WELL, **answers})
    found = _by_name(list(examine_gpu(_GPU)))
    assert double.set_calls == []
    return found


def test_a_gpu_that_is_well_is_described_and_nothing_is_to_be_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = _state(monkeypatch, pids=[os.getpid()])
    assert {state for state, _ in found.values()} == {State.PRESENT}
    assert {name: detail for name, (_, detail) in found.items()} == {
        "GPU": "NVIDIA H200, GPU-1",
        "clocks": "SM at 345 MHz of 1,980 MHz, memory at 3,201 MHz; the driver does not tell if "
        "they are locked",
        "temperature": "41 °C",
        "power": "75 W of 700 W",
        "ECC": "on, no errors",
        "persistence": "on",
        "compute mode": "shared",
    }


@pytest.mark.parametrize(
    ("answers", "name", "state", "words"),
    [
        ({"GetPersistenceMode": 0}, "persistence", State.ABSENT, "sudo nvidia-smi -pm 1"),
        (
            {"GetEnforcedPowerLimit": 350_000},
            "power",
            State.ABSENT,
            "75 W of 350 W; its own limit is 700 W: sudo nvidia-smi -pl 700 gives it back",
        ),
        (
            {"GetCurrentClocksThrottleReasons": 0x40},
            "throttled",
            State.ABSENT,
            "hardware thermal slowdown",
        ),
        ({"GetApplicationsClock": 1200}, "clocks", State.PRESENT, "held to 1,200 MHz"),
        ({"GetTotalEccErrors": 3}, "ECC", State.BROKEN, "3 errors of memory"),
        ({"GetMigMode": (1, 1)}, "MIG", State.ABSENT, "other instances"),
        ({"GetComputeMode": 2}, "compute mode", State.BROKEN, "sudo nvidia-smi -c 0"),
        ({"GetComputeMode": 3}, "compute mode", State.PRESENT, "one process at a time"),
        ({"GetDisplayActive": 1}, "display", State.ABSENT, "attached"),
    ],
)
def test_what_should_be_changed_is_said_with_how(
    monkeypatch: pytest.MonkeyPatch, answers: dict[str, Any], name: str, state: State, words: str
) -> None:
    found = _state(monkeypatch, **answers)
    assert found[name][0] is state
    assert words in found[name][1]


def test_others_on_a_gpu_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found = _state(monkeypatch, pids=[os.getpid(), 1 << 22])
    assert found["others"][0] is State.ABSENT
    assert found["others"][1].startswith("on it: 4194304 (not of this container); what is measured")


def test_an_instance_of_mig_of_which_nothing_is_told_leaves_it_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nvml_double.install(
        monkeypatch, "MIG-1", answers={"GetClockInfo": nvml_double.NVMLError_NotSupported()}
    )
    found = _by_name(list(examine_gpu(replace(_GPU, uuid="MIG-1"))))
    assert found == {
        "GPU": (State.PRESENT, "NVIDIA H200, MIG-1"),
        "clocks": (
            State.ABSENT,
            "the driver tells none, so that passes at a low clock go unseen",
        ),
    } | {name: found[name] for name in found if name == "throttled"}


def test_a_driver_that_is_not_to_be_asked_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml_double.install(monkeypatch, "GPU-1", refuses=nvml_double.NVMLError_NoPermission())
    found = _by_name(list(examine_driver([_GPU])))
    refusal = "the driver lets this user ask nothing (no permission)"
    detail = f"{refusal}; the state of a GPU is not known without it"
    assert found == {"NVML": (State.ABSENT, detail)}
    assert list(_by_name(list(examine_gpu(_GPU)))) == ["GPU"]


@pytest.mark.parametrize("value", ["GPU-1", "0"])
def test_gpus_that_cuda_does_not_see_are_named(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
    nvml_double.install(monkeypatch, "GPU-2", "GPU-1")
    found = _by_name(list(examine_driver([_GPU])))
    assert found["driver"] == (State.PRESENT, "580.0")
    assert found["not visible"][1] == f"GPU-2 (CUDA_VISIBLE_DEVICES={value!r})"


def _read(*factors: float, others: int | None = 0) -> list[Measurement]:
    """The anchors as read in so many passes, each so many times as long."""
    return [
        replace(
            row,
            passes=tuple(
                Pass(
                    index=index,
                    samples_ns=(row.passes[0].samples_ns[0] * factor,),
                    other_processes=others,
                )
                for index, factor in enumerate(factors)
            ),
        )
        for row in gpu_anchors()
    ]


def test_the_readings_of_a_good_machine_are_good() -> None:
    found = _by_name(list(examine_readings(_read(1.0, 1.002, 0.998))))
    assert {state for state, _ in found.values()} == {State.PRESENT}
    assert found["noise, cold"][1].startswith("0.20 % from pass to pass, at most 0.20 % (perfci_")
    assert "1.00 % is assumed" in found["noise, cold"][1]
    assert "2.00 % is assumed" in found["noise, host"][1]
    assert "nobody else" in found["company"][1]


def test_a_noisy_machine_is_told_to_study_it() -> None:
    found = _by_name(list(examine_readings(_read(1.0, 1.1, 0.9))))
    assert found["noise, hot"][0] is State.ABSENT
    assert "10.0 % from pass to pass" in found["noise, hot"][1]
    assert found["noise, hot"][1].endswith("which is too little: perfci noise studies it")


@pytest.mark.parametrize(
    ("others", "state", "words"),
    [(None, State.ABSENT, "not known"), (2, State.ABSENT, "2 of others"), (0, State.PRESENT, "")],
)
def test_who_was_there_is_said_as_far_as_it_is_known(
    others: int | None, state: State, words: str
) -> None:
    found = _by_name(list(examine_readings(_read(1.0, 1.0, others=others))))
    assert found["company"][0] is state
    assert words in found["company"][1]


def test_a_timer_that_cannot_read_and_a_flush_that_fails_are_broken() -> None:
    rows = _read(1.0, 1.0)
    first = replace(rows[0], status=Status.INVALID_TIMING, passes=())
    waits = replace(first, message="waits for the device")
    found = _by_name(list(examine_readings([waits, *rows[1:]])))
    label = first.contract.label if first.contract else ""
    assert found["timers"] == (State.BROKEN, f"perfci_copy/memory {label}: waits for the device")
    unflushed = replace(first, message=f"{NOT_FLUSHED}: why")
    found = _by_name(list(examine_readings([unflushed, *rows[1:]])))
    assert found["timers"][0] is State.PRESENT
    assert found["flush"] == (State.BROKEN, "the L2 was not flushed: why")
