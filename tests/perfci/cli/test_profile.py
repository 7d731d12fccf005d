"""perfci profile where there is no GPU; with one: tests/perfci/test_profiler_gpu.py."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import doubles
import pytest
import scratch
from records import measurement, run

from perfci.history.stores import open_store
from perfci.watcher import BuildEnvironmentError, require_program

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
