"""How the fork server starts and ends, and that it lets go of NVML before passes are forked.

The library asked here is a double that counts.
"""

import ctypes
import subprocess
import sys
from pathlib import Path

import pytest
import scratch

from perfci.workers.preloaded import NVML, release_nvml

_DOUBLE = """\
static int opened;
int nvmlInit_v2(void) { return ++opened, 0; }
int nvmlShutdown(void) { return opened ? (--opened, 0) : 1; }
int times_opened(void) { return opened; }
"""
_OPENS = f"""\
import ctypes

nvml = ctypes.CDLL("{NVML}")
nvml.nvmlInit_v2()
nvml.nvmlInit_v2()
"""
_WITNESS = f"""\
import ctypes

OPENED = ctypes.CDLL("{NVML}").times_opened()


def run(x, a, b):
    return a * x + b + OPENED
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library of NVML's name that knows how often it was opened."""
    folder = tmp_path_factory.mktemp("nvml")
    source = folder / "nvml.c"
    source.write_text(_DOUBLE)
    built = folder / NVML
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", built, source], check=True)
    return built


def test_a_worker_has_no_part_of_what_was_opened_before_it(tmp_path: Path, library: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(_OPENS)
    root = scratch.quick(tmp_path / "root")
    scratch.write_kernel(root, witness__py=_WITNESS)
    inherited = scratch.environment(root).get("PYTHONPATH", "")
    variables = {
        "LD_LIBRARY_PATH": str(library.parent),
        "PYTHONPATH": f"{tmp_path}:{inherited}",
    }
    ended = scratch.perfci(root, "check", "--device", "cpu", variables=variables)
    assert ended.returncode == 0, ended.stdout + ended.stderr


_ENDS = """\
import atexit
import gc

import perfci.workers.preloading


class Loud:
    def __del__(self):
        print("taken to pieces")


kept = Loud()
atexit.register(print, "called")
print(gc.isenabled())
"""


def test_the_server_does_not_collect_at_first_nor_tidy_up_in_the_end() -> None:
    command = [sys.executable, "-u", "-c", _ENDS]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["False", "called"]


def test_it_is_closed_as_often_as_it_was_opened(library: Path) -> None:
    nvml = ctypes.CDLL(str(library))
    for _ in range(3):
        nvml.nvmlInit_v2()
    release_nvml(str(library))
    assert nvml.times_opened() == 0


def test_what_is_not_loaded_is_not_loaded_for_that(library: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.so"
    copy.write_bytes(library.read_bytes())
    release_nvml(str(copy))
    release_nvml("no-such-library.so")
    assert str(copy) not in Path("/proc/self/maps").read_text()
