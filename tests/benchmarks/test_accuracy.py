"""The table of errors: its figures against what is computed here, and what it leaves out."""

import json
import math
import os
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import scratch
import torch
from numpy.typing import NDArray

from perfci.device import has_gpu_driver

_ROOT = Path(__file__).parents[2]
_SCRIPT = _ROOT / "benchmarks" / "accuracy.py"
_OFF = "def run(x, a, b):\n    y = a * x + b\n    y[7] += 0.25\n    return y\n"
_NAN = "def run(x, a, b):\n    y = a * x + b\n    y[7] = float('nan')\n    return y\n"
_LATER = """\
calls = []


def run(x, a, b):
    calls.append(x)
    return a * x + b if len(calls) == 1 else x + float("nan")
"""
_SHORT = "def run(x, a, b):\n    return (a * x + b)[:1]\n"
_RAISES = "def run(x, a, b):\n    raise ValueError('x is too long')\n"


def _accuracy(root: Path, cache: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(_SCRIPT), *arguments],
        cwd=root,
        env=scratch.environment(root, {"PERFCI_CACHE": str(cache), "PYTHONPATH": str(_ROOT)}),
        capture_output=True,
        text=True,
        check=False,
    )


Measure = Callable[..., tuple[str, dict[str, Any]]]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Run the script in a root without a process of its own: how it exits."""

    def code(root: Path, *arguments: str) -> int:
        monkeypatch.chdir(root)
        monkeypatch.setattr(sys, "argv", [str(_SCRIPT), *arguments])
        with (
            patch.dict(os.environ, PERFCI_CACHE=str(tmp_path / "cache")),
            pytest.raises(SystemExit) as ended,
        ):
            runpy.run_path(str(_SCRIPT), run_name="__main__")
        return int(ended.value.code or 0)

    return code


@pytest.fixture
def measured(
    tmp_path: Path, call: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> Measure:
    """What the script prints, and what it writes, its rows by name."""

    def measure(root: Path, *arguments: str) -> tuple[str, dict[str, Any]]:
        out = tmp_path / "accuracy.json"
        code = call(root, *arguments, "--device", "cpu", "--out", str(out))
        printed = capsys.readouterr()
        assert code == 0, printed.err
        table = json.loads(out.read_text(encoding="utf-8"))
        table["rows"] = {each["name"]: each for each in table["rows"]}
        return printed.out, table

    return measure


def _names(text: str) -> list[str]:
    """The first column of the table, whose rows are indented."""
    lines = [line.strip() for line in text.splitlines() if line.startswith("  ")]
    return [line.partition("  ")[0] for line in lines[1:]]


def _passes(output: NDArray[np.float64], other: NDArray[np.float64]) -> bool:
    return bool(np.all(np.abs(output - other) <= 1e-4 + 1e-4 * np.abs(other)))


def test_figures_are_those_of_the_formula(tmp_path: Path, measured: Measure) -> None:
    root = tmp_path / "root"
    scratch.write_kernel(root, plain__cpp=scratch.PLAIN, eager__py=scratch.EAGER, off__py=_OFF)
    text, table = measured(root, "axpb", "--case", "odd", "--seeds", "2")
    assert table["seeds"] == [0, 1]
    assert "seeds 0 to 1; the exact output reaches " in text
    for seed in table["seeds"]:
        x = torch.randn(1001, generator=torch.Generator().manual_seed(seed))
        exact = x.double().numpy() * 2.5 - 1.0
        library = (2.5 * x - 1.0).numpy()
        assert table["largest"][seed] == pytest.approx(np.abs(exact).max())
        assert table["deviation"][seed] == pytest.approx(exact.std())
        rows = {name: row["distances"][seed] for name, row in table["rows"].items()}
        rounding = float(np.abs(library - exact).max())
        assert rows["library"] == rows["eager"]
        assert rows["library"]["from_float64"] == pytest.approx(rounding)
        assert rows["library"]["over_deviation"] == pytest.approx(rounding / exact.std())
        assert rows["library"]["from_library"] == 0
        off = library.copy()
        off[7] += 0.25
        assert rows["off"] == {
            "from_float64": pytest.approx(np.abs(off - exact).max()),
            "over_deviation": pytest.approx(np.abs(off - exact).max() / exact.std()),
            "from_library": pytest.approx(np.abs(off - library).max()),
            "passes_float64": False,
            "passes_library": False,
        }
    assert _names(text)[0] == "off"
    assert sorted(_names(text)) == ["eager", "library", "off", "plain"]
    assert "2.5e-01" in text
    assert "0 of 2" in text
    assert "2 of 2" in text


def test_what_fails_says_so_and_what_is_no_number_is_worst(
    tmp_path: Path, measured: Measure
) -> None:
    root = tmp_path / "root"
    scratch.write_kernel(
        root,
        eager__py=scratch.EAGER,
        off__py=_OFF,
        nan__py=_NAN,
        short__py=_SHORT,
        raises__py=_RAISES,
        broken__cpp='#include "nowhere.h"\n',
    )
    text, table = measured(root, "axpb", "--case", "odd", "--seeds", "1")
    assert _names(text)[:4] == ["nan", "off", "library", "eager"]
    assert {name for name, row in table["rows"].items() if row["failure"]} == {
        "short",
        "raises",
        "broken",
    }
    assert all(len(line) <= 80 for line in text.splitlines())
    words = " ".join(text.split())
    assert "short fails: returns outputs of shape [(1,)], not [(1001,)]" in words
    assert "raises fails: ValueError: x is too long (raises.py:2)" in words
    assert "broken fails: does not build: " in words
    assert "nowhere.h" in words


def test_a_seed_that_gives_no_number_is_not_lost_among_the_others(
    tmp_path: Path, measured: Measure
) -> None:
    root = tmp_path / "root"
    scratch.write_kernel(root, eager__py=scratch.EAGER, later__py=_LATER)
    text, _ = measured(root, "axpb", "--case", "odd", "--seeds", "2")
    assert _names(text)[0] == "later"
    (line,) = [line for line in text.splitlines() if line.startswith("  later ")]
    assert line.split() == ["later", "nan", "nan", "1", "of", "2", "nan", "1", "of", "2"]


def _project(hidden: NDArray[Any], *weights: NDArray[Any]) -> NDArray[Any]:
    """K beside V of each token, in the dtype of the arguments, by the library's products."""
    down, up_k, up_v = (torch.from_numpy(each) for each in weights)
    latent = torch.from_numpy(hidden).reshape(-1, hidden.shape[2]) @ down
    return torch.stack((latent @ up_k, latent @ up_v), dim=1).numpy()


def _drawn(
    seed: int, *, batch: int, sequence: int, model: int, rank: int, width: int
) -> tuple[NDArray[np.float32], ...]:
    generator = torch.Generator().manual_seed(seed)
    shapes = ((batch, sequence, model), (model, rank), (rank, width), (rank, width))
    return tuple(torch.randn(*shape, generator=generator).numpy() for shape in shapes)


def test_a_shipped_kernel_with_float64_sums_rounds_once(measured: Measure) -> None:
    arguments = ("mla_kv_projection", "--case", "odd_wide", "--seeds", "2")
    text, table = measured(_ROOT, *arguments, "--variant", "cpp_serial")
    sizes = {"batch": 1, "sequence": 33, "model": 259, "rank": 51, "width": 3 * 35}
    for seed in (0, 1):
        drawn = _drawn(seed, **sizes)
        exact = _project(*(each.astype(np.float64) for each in drawn))
        once = exact.astype(np.float32).astype(np.float64)
        library = _project(*drawn).astype(np.float64)
        row = table["rows"]["cpp_serial"]["distances"][seed]
        assert row["from_float64"] == pytest.approx(np.abs(once - exact).max(), rel=1e-3)
        assert row["from_library"] == pytest.approx(np.abs(once - library).max(), rel=0.05)
        assert row["passes_float64"] == _passes(once, exact)
    assert "left out (declared for cuda only)" not in text
    assert _names(text) == ["library", "cpp_serial"]


def test_the_error_over_the_deviation_is_that_of_scaled_weights() -> None:
    """To within the scatter of a largest error, here a mean over twelve seeds."""
    over_deviation, scaled_errors = [], []
    for seed in range(12):
        hidden, *weights = _drawn(seed, batch=4, sequence=96, model=256, rank=48, width=128)
        scaled = [each / math.sqrt(each.shape[0]) for each in weights]
        errors = []
        for each in (weights, scaled):
            exact = _project(*(a.astype(np.float64) for a in (hidden, *each)))
            rounded = _project(hidden, *(a.astype(np.float32) for a in each))
            errors.append((np.abs(rounded - exact).max(), exact.std()))
        (error, deviation), (scaled_error, scaled_deviation) = errors
        assert scaled_deviation == pytest.approx(1.0, abs=0.1)
        over_deviation.append(error / deviation)
        scaled_errors.append(scaled_error)
    assert np.mean(over_deviation) == pytest.approx(np.mean(scaled_errors), rel=0.1)


def test_a_cpu_leaves_out_what_it_has_not(tmp_path: Path, measured: Measure) -> None:
    root = tmp_path / "root"
    scratch.write_kernel(
        root,
        eager__py=scratch.EAGER,
        gpu__py='# perfci: devices = ["cuda"]\n' + scratch.EAGER,
        half__py='# perfci: dtypes = ["float16"]\n' + scratch.EAGER,
    )
    text, table = measured(root, "axpb", "--case", "one", "--seeds", "1")
    assert "seed 0; the exact output reaches " in text
    assert "left out (only float32 on cuda has it): library in TF32" in text
    assert "left out (declared for cuda only): gpu" in text
    assert "left out (declared for float16 only): half" in text
    assert set(table["rows"]) == {"library", "eager"}


@pytest.mark.skipif(has_gpu_driver(), reason="needs a machine without a GPU")
def test_a_device_that_is_not_there_is_said(
    tmp_path: Path, call: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "root"
    cuda_only = scratch.CASES + '[[check]]\nname = "huge"\ncount = 9\ndevices = ["cuda"]\n'
    scratch.write_kernel(root, cases__toml=cuda_only, eager__py=scratch.EAGER)
    done = _accuracy(root, tmp_path / "cache", "axpb", "--case", "one", "--device", "0")
    assert (done.returncode, done.stdout) == (5, "")
    assert done.stderr.startswith("accuracy.py: no GPU here for --device 0")
    assert call(root, "axpb", "--case", "huge") == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "axpb/huge is declared for cuda only, not for cpu; name another --case" in printed.err


@pytest.mark.gpu
@pytest.mark.long
@pytest.mark.skipif(not has_gpu_driver(), reason="needs a CUDA device")
def test_a_gpu_has_the_library_in_tf32(tmp_path: Path) -> None:
    out = tmp_path / "accuracy.json"
    variants = ("--variant", "torch_eager_tf32", "--variant", "torch_eager")
    done = _accuracy(_ROOT, tmp_path / "cache", "mla_kv_projection", *variants, "--out", str(out))
    assert done.returncode == 0, done.stderr
    rows = {each["name"]: each for each in json.loads(out.read_text(encoding="utf-8"))["rows"]}
    assert rows["library in TF32"]["distances"] == rows["torch_eager_tf32"]["distances"]
    assert rows["library"]["distances"] == rows["torch_eager"]["distances"]
    for exact, rough in zip(
        rows["library"]["distances"], rows["library in TF32"]["distances"], strict=True
    ):
        assert rough["from_float64"] > 100 * exact["from_float64"]
        assert not rough["passes_float64"]
