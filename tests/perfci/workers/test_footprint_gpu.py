"""On a real GPU: what one more call shows. Skipped, with the reason, where there is none."""

import re
from pathlib import Path
from typing import Any

import pytest
import scratch
import torch

from perfci.binary.jit import find_configurations
from perfci.device import has_gpu_driver
from perfci.history.codec import read_run_file
from perfci.workers.footprint import find_memory

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.long,
    pytest.mark.skipif(not has_gpu_driver(), reason="needs a CUDA device"),
]

_TRITON = """\
# perfci: devices = ["cuda"]
# perfci: compiles = true
import torch
import triton
import triton.language as tl

CHOICES = [triton.Config({"BLOCK": 256}, num_warps=2), triton.Config({"BLOCK": 512}, num_warps=2)]


@triton.autotune(CHOICES, key=["count"])
@triton.jit
def chosen(x, y, a, b, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    tl.store(y + at, a * tl.load(x + at, mask=inside) + b, mask=inside)


@triton.jit
def unused(x, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), 1.0)


def run(x, a, b):
    y = torch.empty_like(x)
    chosen[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, a, b, x.numel())
    return y
"""
_COMPILED = """\
# perfci: compiles = true
import torch


def _axpb(x, a, b):
    return a * x + b


_compiled = torch.compile(_axpb, dynamic=False, mode="max-autotune-no-cudagraphs")


def run(x, a, b):
    return _compiled(x, a, b)
"""
_BYTES = 4 * 65536


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One run of several variants: variant → its row of the hot timer at the timed case."""
    root = tmp_path_factory.mktemp("footprint")
    scratch.write_kernel(
        root, fused__cu=scratch.CUDA, eager__py=scratch.EAGER, programs__py=_TRITON
    )
    scratch.quick(root)
    file = root / "run.json.gz"
    arguments = ("run", "--device", "0", "--passes", "2", "--commit", "abcdef1")
    ended = scratch.perfci(root, *arguments, "--out", file)
    rows = {
        row.variant: row
        for row in read_run_file(file).measurements
        if row.contract is not None and row.contract.timer == "hot"
    }
    assert {row.status.value for row in rows.values()} == {"passed"}, ended.stderr
    return rows


def test_a_cuda_variant_tells_its_code(rows: Any) -> None:
    told = dict(rows["fused"].identity)
    assert re.fullmatch(r"sm_\d+ [0-9a-f]{16}", told["device code"])
    assert re.fullmatch("[0-9a-f]{16}", told["host code"])
    assert not any("not read" in name for name in told)


def test_a_triton_variant_tells_what_was_chosen_and_its_code(rows: Any) -> None:
    told = dict(rows["programs"].identity)
    pattern = r"num_warps 2, num_stages \d+, BLOCK (256|512)"
    assert re.fullmatch(pattern, told["chosen configuration"]), told
    assert re.fullmatch("[0-9a-f]{16}", told["chosen device code"])
    assert re.fullmatch(r"used \d+, spilled 0", told["chosen registers"])
    assert "source" in told
    assert not any("unused" in name or "not read" in name for name in told)


def test_what_torch_compile_generates_tells_what_was_chosen_and_its_code(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    root = scratch.quick(tmp_path / "root")
    scratch.write_kernel(root, compiled__py=_COMPILED)
    file = root / "run.json.gz"
    arguments = ("run", "--device", "0", "--passes", "2", "--commit", "abcdef1")
    ended = scratch.perfci(root, *arguments, "--out", file)
    row = next(each for each in read_run_file(file).measurements if each.contract is not None)
    assert row.status.value == "passed", (row.message, ended.stderr)
    told = dict(row.identity)
    assert not any("not read" in name for name in told), told
    (name,) = told["generated calls"].split(", ")
    assert name.startswith("triton_")
    assert re.fullmatch("[0-9a-f]{16}", told["generated code"])
    assert re.match(r"num_warps \d+, num_stages \d+, XBLOCK \d+", told[f"{name} configuration"])
    assert re.fullmatch(r"used \d+, spilled 0", told[f"{name} registers"])
    assert re.fullmatch("[0-9a-f]{16}", told[f"{name} device code"])
    assert name in row.launches[0].function


def test_a_variant_of_pytorch_alone_tells_its_source(rows: Any) -> None:
    assert "source" in dict(rows["eager"].identity)
    assert not any("configuration" in name for name, _ in rows["eager"].identity)


@pytest.mark.parametrize(
    ("variant", "workspace_bytes"), [("fused", 0), ("programs", 0), ("eager", _BYTES)]
)
def test_memory_of_a_call_is_told_with_and_without_its_outputs(
    rows: Any, variant: str, workspace_bytes: int
) -> None:
    told = {each.name: each.value for each in rows[variant].metrics}
    assert told["workspace_bytes"] == workspace_bytes
    assert told["peak_memory_bytes"] == workspace_bytes + _BYTES


def test_what_a_call_frees_again_counts_at_its_peak() -> None:
    x = torch.ones(1000, device="cuda")

    def call() -> torch.Tensor:
        first = torch.zeros(5000, device="cuda")
        del first
        return x * 2

    memory = {each.name: each.value for each in find_memory(call, [x], writes_outputs=False)}
    assert memory == {"peak_memory_bytes": 20_000, "workspace_bytes": 16_000}
    memory = {each.name: each.value for each in find_memory(call, [x], writes_outputs=True)}
    assert memory == {"peak_memory_bytes": 24_000, "workspace_bytes": 20_000}


def test_a_call_that_raises_leaves_no_hook_behind() -> None:
    triton = pytest.importorskip("triton")
    before = [*triton.knobs.runtime.launch_enter_hook.calls]

    def call() -> None:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        find_configurations(call, {"f": triton.jit(_program)})
    assert triton.knobs.runtime.launch_enter_hook.calls == before


def _program(x: Any) -> None:
    """A function that Triton would compile."""


def test_nothing_is_called_for_a_module_without_triton(tmp_path: Path) -> None:
    assert find_configurations(lambda: 1 / 0, {"torch": torch, "path": tmp_path}) == ()
