"""On a real GPU: what a kernel asks the L2 to keep is seen, and does not outlive its process."""

import ctypes
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import scratch
import torch

from perfci.checking.surroundings import read_surroundings
from perfci.device import has_gpu_driver
from perfci.gpu.driver import NUMBERS, Persistence, StreamAttribute

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.long,
    pytest.mark.skipif(not has_gpu_driver(), reason="needs a CUDA device"),
]

_LIMIT = NUMBERS["CU_LIMIT_PERSISTING_L2_CACHE_SIZE"]
_WINDOW = NUMBERS["CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW"]
_SETS_ASIDE = f"""\
import ctypes, os

TOLD = []


def begin():
    TOLD.append(True)
    with open("FOLDER/pids", "a") as file:
        file.write(f"{{os.getpid()}} NAME\\n")
    if LIMIT:
        ctypes.CDLL("libcuda.so.1").cuCtxSetLimit({_LIMIT}, ctypes.c_size_t(LIMIT))


def run(x, a, b):
    if not TOLD:
        begin()  # once: setting some aside waits for the device
    return a * x + b
"""


@pytest.fixture
def libcuda() -> Iterator[Any]:
    """The driver, which has as much of the L2 set aside after the test as before it."""
    torch.cuda.synchronize()
    loaded = ctypes.CDLL("libcuda.so.1")
    usual_bytes = Persistence().set_aside_bytes()
    yield loaded
    loaded.cuCtxSetLimit(_LIMIT, ctypes.c_size_t(usual_bytes))


def test_a_part_of_the_l2_that_is_set_aside_is_seen(libcuda: Any) -> None:
    before, usual_bytes = read_surroundings(), Persistence().set_aside_bytes()
    assert read_surroundings() == before
    assert libcuda.cuCtxSetLimit(_LIMIT, ctypes.c_size_t(usual_bytes + (4 << 20))) == 0
    assert Persistence().set_aside_bytes() > usual_bytes
    assert read_surroundings() != before
    assert libcuda.cuCtxSetLimit(_LIMIT, ctypes.c_size_t(usual_bytes)) == 0
    assert read_surroundings() == before


def test_a_window_that_is_left_on_the_stream_is_seen(libcuda: Any) -> None:
    kept = torch.zeros(1 << 20, device="cuda")
    with torch.cuda.stream(torch.cuda.Stream()):
        before = read_surroundings()
        value = StreamAttribute()
        value.accessPolicyWindow.base_ptr = kept.data_ptr()
        value.accessPolicyWindow.num_bytes = kept.nbytes
        value.accessPolicyWindow.hitRatio = 1.0
        value.accessPolicyWindow.hitProp = 2
        value.accessPolicyWindow.missProp = 1
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        assert libcuda.cuStreamSetAttribute(stream, _WINDOW, ctypes.byref(value)) == 0
        assert read_surroundings() != before


def test_what_is_kept_is_given_up_without_an_error(libcuda: Any) -> None:
    before = read_surroundings()
    Persistence().end()
    assert read_surroundings() == before


def test_a_kernel_that_sets_some_aside_is_timed_and_ends_its_process(tmp_path: Path) -> None:
    root = scratch.quick(tmp_path / "root")
    source = _SETS_ASIDE.replace("FOLDER", str(tmp_path))
    one_case = scratch.CASES.partition("\n[[check]]")[0]
    scratch.write_kernel(
        root,
        cases__toml=one_case,
        keeps__py=source.replace("NAME", "keeps").replace("LIMIT", str(16 << 20)),
        other__py=source.replace("NAME", "other").replace("LIMIT", "0"),
        another__py=source.replace("NAME", "another").replace("LIMIT", "0"),
    )
    arguments = ("run", "--device", "0", "--passes", "3", "--commit", "abcdef1", "--json")
    ended = scratch.perfci(root, *arguments, "--out", root / "run.json.gz")
    rows = json.loads(ended.stdout)["measurements"]
    cold = [row for row in rows if row["contract"]["timer"] == "cold"]
    assert {row["status"] for row in cold} == {"passed"}, cold
    # pids tells each process's variants in the order of their first calls
    told = [each.split() for each in (tmp_path / "pids").read_text().splitlines()]
    last_with = dict(told)
    keepers = {pid for pid, name in told if name == "keeps"}
    assert {last_with[pid] for pid in keepers} == {"keeps"}
