"""Nsight Compute itself on a real GPU: a report is kept, and its figures are read."""

import subprocess
from pathlib import Path

import pytest
import scratch

from perfci.device import has_gpu_driver
from perfci.tools.profiler import read_launches

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.long,
    pytest.mark.skipif(not has_gpu_driver(), reason="needs a CUDA device"),
]

_REFUSALS = ("ERR_NVGPUCTRPERM", "LibraryNotLoaded", "not installed here")


@pytest.fixture(scope="module")
def profiled(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[subprocess.CompletedProcess[str], Path]:
    root = tmp_path_factory.mktemp("profiler") / "root"
    scratch.write_kernel(root, plain__cu=scratch.CUDA)
    scratch.quick(root)
    folder = root / "profiles"
    ended = scratch.perfci(root, "profile", "axpb", "--device", "0", "--out", folder)
    if ended.returncode in (4, 5) and any(each in ended.stderr for each in _REFUSALS):
        pytest.skip(ended.stderr.strip())
    return ended, folder


def _explain(profiled: tuple[subprocess.CompletedProcess[str], Path]) -> str:
    ended, folder = profiled
    logs = [each for suffix in ("log", "txt") for each in sorted(folder.glob(f"*.{suffix}"))]
    printed = [f"{each.name}:\n{each.read_text(errors='replace')[:20_000]}" for each in logs]
    return "\n".join([ended.stdout, ended.stderr, *printed])


def test_the_table_names_the_kernel_and_where_the_report_is(
    profiled: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    ended, folder = profiled
    assert ended.returncode == 0, _explain(profiled)
    assert "axpb · large" in ended.stdout, _explain(profiled)
    assert "\n  └ axpb " in ended.stdout, _explain(profiled)
    assert "–" not in ended.stdout, _explain(profiled)
    report = folder / "axpb.plain.large.ncu-rep"
    assert report.stat().st_size > 1000, _explain(profiled)


def test_every_figure_is_there_and_can_be(
    profiled: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    _, folder = profiled
    text = (folder / "axpb.plain.large.txt").read_text()
    (launch,) = read_launches(text)
    said = f"{launch}\n{_explain(profiled)}"
    assert launch.function == "axpb", said
    assert launch.duration_ns is not None, said
    assert 500 < launch.duration_ns < 1_000_000, said
    assert launch.registers is not None, said
    assert 8 <= launch.registers <= 64, said
    shares = (launch.dram_share, launch.l2_share, launch.sm_share, launch.occupancy_share)
    assert all(each is not None and 0 < each < 1.1 for each in shares), said
    assert launch.stall is not None, said
    assert launch.stall_share is not None, said
    assert 0 < launch.stall_share < 1, said
