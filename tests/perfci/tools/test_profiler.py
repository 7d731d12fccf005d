"""What ncu prints of a report, and what is made of it. The tool is a double: see doubles.py."""

import re
from dataclasses import replace
from pathlib import Path

import doubles
import pytest
import scratch

from perfci.errors import DeviceError
from perfci.tools.profiler import (
    Profile,
    ProfiledLaunch,
    find_reports,
    profile,
    profiles_folder,
    read_launches,
)

_FIRST = ProfiledLaunch(
    function="axpb",
    duration_ns=3712.0,
    dram_share=0.1234,
    l2_share=0.0052,
    sm_share=0.031,
    occupancy_share=0.248,
    registers=40,
    stall="long scoreboard",
    stall_share=0.625,
)
_SECOND = ProfiledLaunch(function="finish", duration_ns=1024.0, l2_share=0.001, registers=16)


class _Silent:
    def step(self, phase: str, done: int, total: int, label: str) -> None:
        pass


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> doubles.Workplace:
    root = scratch.quick(tmp_path_factory.mktemp("profiler") / "root")
    scratch.write_kernel(root, eager__py=scratch.EAGER, broken__cpp="int perfci_run(\n")
    return doubles.workplace(root, "large")


def _profile(
    place: doubles.Workplace, program: str, folder: Path, variant: str = "eager"
) -> Profile:
    (found,) = profile(
        [each for each in place.cells if each.variant.name == variant],
        place.builds,
        program=program,
        target=doubles.CPU,
        timeout_s=60.0,
        folder=folder / "profiles 100%",
        observer=_Silent(),
    )
    return found


def test_launches_are_read_in_order_with_what_is_known_of_them() -> None:
    assert read_launches(doubles.RAW_CSV) == [_FIRST, _SECOND]
    assert read_launches(f"$ ncu --import x\n==WARNING== old\n{doubles.RAW_CSV}") == [
        _FIRST,
        _SECOND,
    ]


def test_a_duration_in_other_units_is_told_apart() -> None:
    older = doubles.RAW_CSV.replace('"ns"', '"usecond"')
    assert read_launches(older)[0] == replace(_FIRST, duration_ns=3_712_000.0)
    assert read_launches(doubles.RAW_CSV.replace('"ns"', '"eons"'))[0].duration_ns is None


def test_an_older_name_of_the_memorys_throughput_will_do() -> None:
    older = doubles.RAW_CSV.replace("dram__throughput", "gpu__dram_throughput")
    assert read_launches(older)[0] == _FIRST


def test_what_ncu_prints_behind_the_launches_is_none() -> None:
    assert read_launches(f"{doubles.RAW_CSV}==WARNING== old\n") == [_FIRST, _SECOND]


def test_a_warp_that_is_selected_waits_for_nothing() -> None:
    text = doubles.RAW_CSV.replace('"0.50","2.50","1.00"', '"0.50","2.50","7.00"')
    first, _ = read_launches(text)
    assert (first.stall, first.stall_share) == ("long scoreboard", 0.25)


@pytest.mark.parametrize("word", ["nan", "inf", "-nan"])
def test_a_ratio_to_nothing_is_not_known(word: str) -> None:
    waits, registers = '"0.50","2.50","1.00"', '"40"'
    text = doubles.RAW_CSV.replace(waits, ",".join([f'"{word}"'] * 3))
    first, _ = read_launches(text.replace(registers, f'"{word}"'))
    assert first == replace(_FIRST, stall=None, stall_share=None, registers=None)


@pytest.mark.parametrize(
    "text", ["", "==ERROR== Failed to open the report\n", '"ID","Kernel Name"\n']
)
def test_what_holds_no_launches_has_none(text: str) -> None:
    assert read_launches(text) == []


def test_the_report_is_kept_and_read(place: doubles.Workplace, tmp_path: Path) -> None:
    found = _profile(place, doubles.write_profiler(tmp_path), tmp_path)
    folder = tmp_path / "profiles 100%"
    assert found.launches == (_FIRST, _SECOND)
    assert found.message == ""
    log = (folder / "axpb.eager.large.log").read_text()
    for option in ("--clock-control none", "--profile-from-start off", "--set full"):
        assert option in log
    assert found.report == str(folder / "axpb.eager.large.ncu-rep")
    assert "profiles 100%%/axpb.eager.large.ncu-rep" in log


@pytest.mark.parametrize(
    ("act", "message"),
    [
        ("raised", "x must be contiguous"),
        ("hangs", "does not end"),
        ("exits", "the process ended in its call; see "),
    ],
)
def test_a_variant_that_cannot_be_called_has_no_report(
    place: doubles.Workplace, tmp_path: Path, act: str, message: str
) -> None:
    program = doubles.write_profiler(tmp_path, {"eager": {"large": act}})
    found = _profile(place, program, tmp_path)
    assert (found.report, found.launches) == (None, ())
    assert found.message.startswith(message)


def test_a_call_that_launches_nothing_has_no_report_and_keeps_none_of_an_earlier_time(
    place: doubles.Workplace, tmp_path: Path
) -> None:
    assert _profile(place, doubles.write_profiler(tmp_path), tmp_path).report is not None
    program = doubles.write_profiler(tmp_path, {"eager": {"large": "idle"}})
    found = _profile(place, program, tmp_path)
    assert (found.report, found.launches, found.message) == (None, (), "launches no kernel")
    assert find_reports(tmp_path / "profiles 100%") == []


def test_a_profiler_that_fails_beside_a_call_that_raised_is_what_is_said(
    place: doubles.Workplace, tmp_path: Path
) -> None:
    acts = {"eager": {"large": "raised"}}
    program = doubles.write_profiler(tmp_path, acts, complaint="No driver.")
    with pytest.raises(DeviceError, match=r"ncu does not work here: No driver\."):
        _profile(place, program, tmp_path)


def test_a_variant_that_does_not_build_is_not_run(place: doubles.Workplace, tmp_path: Path) -> None:
    found = _profile(place, doubles.write_profiler(tmp_path), tmp_path, "broken")
    assert found.report is None
    assert "error: " in found.message
    assert list((tmp_path / "profiles 100%").iterdir()) == []


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            [
                (
                    "ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU "
                    "Performance Counters on the target device 0. For instructions on enabling "
                    "permissions and to get more information see "
                    "https://developer.nvidia.com/ERR_NVGPUCTRPERM"
                )
            ],
            "ncu may not read the GPU's performance counters (ERR_NVGPUCTRPERM): be root, or load",
        ),
        (
            [
                "An error was reported by the counter measurement library:",
                (
                    "Failed to initialize the profiler: LibraryNotLoaded. Check that a compatible "
                    "driver library is loaded."
                ),
                "The application returned an error code (9).",
            ],
            "ncu does not work here: Failed to initialize the profiler: LibraryNotLoaded.",
        ),
    ],
)
def test_a_profiler_that_does_not_work_here_stops_everything(
    place: doubles.Workplace, tmp_path: Path, lines: list[str], message: str
) -> None:
    program = doubles.write_profiler(tmp_path, unusable=lines)
    with pytest.raises(DeviceError, match=re.escape(message)):
        _profile(place, program, tmp_path)


def test_a_report_that_cannot_be_read_is_an_error(place: doubles.Workplace, tmp_path: Path) -> None:
    program = doubles.write_profiler(tmp_path, csv="")
    with pytest.raises(DeviceError, match=r"ncu does not say what is in .*large\.ncu-rep"):
        _profile(place, program, tmp_path)


@pytest.mark.parametrize(
    ("store", "folder"),
    [
        ("sqlite:////data/runs/history.db", "/data/runs/profiles/r1"),
        ("sqlite:////data/100%25/history.db", "/data/100%/profiles/r1"),
        ("postgresql://host/runs", "ROOT/.perfci/profiles/r1"),
    ],
)
def test_profiles_are_kept_beside_the_store(
    place: doubles.Workplace, store: str, folder: str
) -> None:
    expected = Path(folder.replace("ROOT", str(place.config.root)))
    assert profiles_folder(replace(place.config, store=store), "r1") == expected


def test_reports_alone_are_profiles(tmp_path: Path) -> None:
    (tmp_path / "b.ncu-rep").touch()
    (tmp_path / "a.ncu-rep").touch()
    (tmp_path / "a.log").touch()
    assert [each.name for each in find_reports(tmp_path)] == ["a.ncu-rep", "b.ncu-rep"]
    assert find_reports(tmp_path / "nowhere") == []
