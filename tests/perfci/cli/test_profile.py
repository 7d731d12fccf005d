"""perfci profile where there is no GPU; with one: tests/perfci/tools/test_profiler_gpu.py."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import doubles
import pytest
import scratch
from records import measurement, run

from perfci.cli.profile import cells_to_profile, profile_exit_code
from perfci.errors import BuildEnvironmentError, ExitCode
from perfci.history.stores import open_store
from perfci.kernel import discover
from perfci.selection import Selection, select
from perfci.tools.profiler import Profile
from perfci.tools.watcher import require_program

Call = Callable[..., Any]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = scratch.quick(tmp_path / "root")
    scratch.write_kernel(root)
    return root


def _is_installed(name: str) -> bool:
    try:
        require_program(name, "")
    except BuildEnvironmentError:
        return False
    return True


@pytest.mark.skipif(_is_installed("ncu"), reason="ncu is installed")
def test_a_profiler_that_is_not_installed_is_said_with_what_to_install(
    root: Path, call: Call
) -> None:
    ended = call(root, "profile", "axpb")
    assert (ended.code, ended.out) == (4, "")
    assert ended.err == (
        "perfci: ncu: not installed here; install Nsight Compute, which comes with the CUDA "
        "toolkit\n"
    )


def test_a_cpu_is_refused(
    root: Path, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    doubles.write_profiler(tmp_path / "bin")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    ended = call(root, "profile", "axpb", "--device", "cpu")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == (
        "perfci: ncu profiles CUDA kernels, and this is a CPU: name a GPU with --device\n"
    )


@pytest.mark.parametrize(
    ("chosen", "profiled"),
    [
        ({}, {("plain", "large")}),
        ({"variants": ("library",)}, {("library", "large")}),
        ({"cases": ("odd",)}, {("plain", "odd")}),
    ],
)
def test_peers_and_cases_that_are_not_timed_are_profiled_by_name_only(
    root: Path, chosen: dict[str, tuple[str, ...]], profiled: set[tuple[str, str]]
) -> None:
    peer = "# perfci: peer = true\n" + scratch.EAGER
    scratch.write_kernel(root, plain__cpp=scratch.PLAIN, library__py=peer)
    selection = Selection(**chosen)
    cells = select(discover(root / "kernels"), selection, "cpu")
    found = cells_to_profile(cells, selection, doubles.CPU)
    assert {(each.variant.name, each.case.name) for each in found} == profiled


def test_a_profile_that_is_not_there_is_told_to_scripts() -> None:
    there = Profile(kernel="rope", variant="tiled", case="large", report="a.ncu-rep")
    lacking = Profile(kernel="rope", variant="other", case="large", message="does not end")
    assert profile_exit_code([there]) == ExitCode.FINE
    assert profile_exit_code([there, lacking]) == ExitCode.REGRESSION_OR_INCORRECT


def test_show_says_where_the_profiles_of_a_run_are(root: Path, call: Call) -> None:
    with open_store(f"sqlite:///{root}/.perfci/history.db") as store:
        store.add(run(measurement((1000.0,)), run_id="r1"))
    assert "profiles" not in call(root, "show").out
    folder = root / ".perfci/profiles/r1"
    folder.mkdir(parents=True)
    (folder / "axpb.plain.large.ncu-rep").touch()
    (folder / "axpb.plain.large.log").touch()
    shown = call(root, "show").out
    words = shown.partition("profiles: ")[2].replace("\n", "").split()
    assert "".join(words) == f"1in{folder}"
