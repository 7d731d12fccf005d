"""What can be said of the CUDA variants without a GPU: they compile, and refuse what they must."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from perfci.entry import Entry, KernelError
from perfci.inputs import Arguments, load_reference
from perfci.kernel import Kernel, Variant, discover
from perfci.ptxas import read_log
from perfci.toolchain import DEFAULT_ARCHITECTURES, compile_command, find_compiler

Load = Callable[[str, str], Entry]
COMPILER = find_compiler("nvcc")
SOURCES = [
    pytest.param(each, id=f"{kernel.name}-{each.name}")
    for kernel in discover(Path(__file__).parents[2] / "kernels")
    for each in (*kernel.variants, *kernel.controls)
    if each.path is not None and each.path.suffix == ".cu"
]
VARIANTS = {
    "mla_kv_projection": ("serial_fp32", "mixed", "warp_shuffle", "tiled"),
    "mla_attention": ("thread_per_query", "absorbed"),
}
PAIRS = [(kernel, name) for kernel, names in VARIANTS.items() for name in names]
SHAPES = {
    "mla_kv_projection": {
        "batch": 2,
        "sequence": 3,
        "model": 8,
        "rank": 4,
        "kv_heads": 2,
        "head_dim": 4,
    },
    "mla_attention": {"batch": 2, "sequence": 3, "heads": 2, "head_dim": 4, "rank": 4},
}
pytestmark = [
    pytest.mark.nvcc,
    pytest.mark.skipif(COMPILER is None, reason="nvcc is not installed"),
]


@pytest.mark.long
@pytest.mark.parametrize("variant", SOURCES)
def test_compiles_without_warnings_and_spills(variant: Variant, tmp_path: Path) -> None:
    assert COMPILER is not None
    command = compile_command(variant, compiler=COMPILER, architectures=(), module_name="")
    extra = ["-Xcompiler", "-Wall", "-o", str(tmp_path / "library.so")]
    answer = subprocess.run([*command, *extra], capture_output=True, text=True, check=False)
    printed = answer.stdout + answer.stderr
    assert answer.returncode == 0, printed
    assert "warning" not in printed.lower()
    compiled = read_log(printed)
    assert {each.architecture for each in compiled} == set(DEFAULT_ARCHITECTURES)
    assert [each.function for each in compiled if each.spill_bytes] == []


def _drawn(kernel: Kernel, **changes: int) -> dict[str, Tensor | int | float]:
    shape = {**SHAPES[kernel.name], **changes}
    generator = torch.Generator().manual_seed(1)
    return dict(
        load_reference(kernel).make_inputs(
            **shape, dtype=torch.float32, device="cpu", generator=generator
        )
    )


def _run(entry: Entry, kernel: Kernel, drawn: Arguments) -> None:
    shape = load_reference(kernel).reference(*drawn.values())
    assert isinstance(shape, Tensor)
    entry.bind(drawn, (torch.empty(shape.shape),))()


@pytest.mark.parametrize(("kernel", "name"), PAIRS)
def test_names_the_input_that_is_not_contiguous(
    kernel: str, name: str, load: Load, shipped: dict[str, Kernel]
) -> None:
    drawn = _drawn(shipped[kernel])
    for argument, value in drawn.items():
        if not isinstance(value, Tensor):
            continue
        strided = value.repeat_interleave(2, dim=-1)[..., ::2]
        with pytest.raises(KernelError, match=f"{argument} must be contiguous"):
            _run(load(kernel, name), shipped[kernel], {**drawn, argument: strided})


@pytest.mark.parametrize(("kernel", "name"), PAIRS)
def test_names_the_input_of_another_dtype(
    kernel: str, name: str, load: Load, shipped: dict[str, Kernel]
) -> None:
    drawn = _drawn(shipped[kernel])
    first, value = next(iter(drawn.items()))
    assert isinstance(value, Tensor)
    output = torch.empty(0)
    with pytest.raises(KernelError, match=r"must be float32|dimensions"):
        load(kernel, name).bind({**drawn, first: value.double()}, (output,))()


@pytest.mark.parametrize(("kernel", "name"), PAIRS)
@pytest.mark.parametrize("empty", ["batch", "sequence"])
def test_launches_nothing_where_the_output_is_empty(
    kernel: str, name: str, empty: str, load: Load, shipped: dict[str, Kernel]
) -> None:
    _run(load(kernel, name), shipped[kernel], _drawn(shipped[kernel], **{empty: 0}))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize(("kernel", "name"), PAIRS)
def test_says_what_the_runtime_refuses(
    kernel: str, name: str, load: Load, shipped: dict[str, Kernel]
) -> None:
    with pytest.raises(KernelError, match=r"^(launching|setting shared memory): cuda\w+: \w+"):
        _run(load(kernel, name), shipped[kernel], _drawn(shipped[kernel]))


def test_absorbed_names_the_largest_rank(load: Load, shipped: dict[str, Kernel]) -> None:
    drawn = _drawn(shipped["mla_attention"], rank=129)
    with pytest.raises(KernelError, match="rank is 129, at most 128"):
        _run(load("mla_attention", "absorbed"), shipped["mla_attention"], drawn)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_serial_names_the_shared_memory_that_is_missing(
    load: Load, shipped: dict[str, Kernel]
) -> None:
    drawn = _drawn(shipped["mla_kv_projection"], model=100_000)
    message = r"needs 400016 bytes of shared memory a block, this device has \d+"
    with pytest.raises(KernelError, match=message):
        _run(load("mla_kv_projection", "serial_fp32"), shipped["mla_kv_projection"], drawn)
