"""What every variant says to arguments that it was not made for, as far as no GPU is needed."""

import re
from collections.abc import Callable, Iterable
from pathlib import Path

import misfits
import pytest
import torch
import trial
from _pytest.mark import ParameterSet
from misfits import Misfit
from torch import Tensor
from trial import Trial

from perfci.checking.check import REFUSALS
from perfci.entry import Entry, KernelError
from perfci.kernel import Kernel
from perfci.toolchain import find_compiler

Load = Callable[[str, str], Entry]
Make = Callable[[str, str], Trial]

CPP, CUDA = trial.named(trial.is_cpp), trial.named(trial.is_cuda)
TRITON, PEERS = trial.named(trial.is_triton), trial.named(trial.is_peer)
COMPILED = trial.named(lambda variant: trial.is_peer(variant) and variant.declaration.compiles)
_BLOCK_EACH = [pair for pair in CUDA if pair[1] not in ("tiled", "thread_per_query")]
"""Those that have a block for a token, or for a batch and head."""
_NVCC = [
    pytest.mark.nvcc,
    pytest.mark.skipif(find_compiler("nvcc") is None, reason="nvcc is not installed"),
]
_COMPILES = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]


def _marked(pairs: Iterable[tuple[str, str]]) -> list[ParameterSet]:
    """Pairs as parameters (kernel, name), marked by what they need."""
    marks = {**dict.fromkeys(CUDA, _NVCC), **dict.fromkeys(COMPILED, _COMPILES)}
    return [pytest.param(*pair, id="-".join(pair), marks=marks.get(pair, ())) for pair in pairs]


def _crossed(
    table: dict[str, list[Misfit]], pairs: Iterable[tuple[str, str]]
) -> list[ParameterSet]:
    """Parameters (kernel, name, misfit): each pair with each row of its kernel's table."""
    return [
        pytest.param(*each.values, row, id=f"{each.id}-{row}", marks=each.marks)
        for each in _marked(pairs)
        for row in table[str(each.values[0])]
    ]


@pytest.fixture
def make(shipped: dict[str, Kernel], load: Load, load_on_host: Load) -> Make:
    """Load a variant so that it takes the CPU's tensors, up to where a GPU is needed."""

    def make_one(kernel: str, name: str) -> Trial:
        if (kernel, name) in TRITON:
            pytest.importorskip("triton")
        loaded = (load_on_host if (kernel, name) in CUDA else load)(kernel, name)
        return Trial(kernel=shipped[kernel], entry=loaded)

    return make_one


@pytest.mark.parametrize(
    ("kernel", "name", "misfit"), _crossed(misfits.MISFITS, [*CPP, *CUDA, *TRITON])
)
def test_refuses_what_does_not_fit(kernel: str, name: str, misfit: Misfit, make: Make) -> None:
    tried = make(kernel, name)
    output = tried.output()
    with pytest.raises(REFUSALS, match=f"^{re.escape(misfit.message)}$"):
        tried.run(misfit.spoil(tried.draw()), output)
    assert bool(output.isnan().all())


@pytest.mark.parametrize(("kernel", "name", "misfit"), _crossed(misfits.WRONG_SIZES, PEERS))
def test_peer_refuses_what_does_not_fit(kernel: str, name: str, misfit: Misfit, make: Make) -> None:
    tried = make(kernel, name)
    with pytest.raises((*REFUSALS, IndexError)):
        tried.run(misfit.spoil(tried.draw()), tried.output())


@pytest.mark.parametrize(("kernel", "name", "misfit"), _crossed(misfits.WRONG_DTYPES, PEERS))
def test_peer_is_right_or_refuses_where_dtypes_differ(
    kernel: str, name: str, misfit: Misfit, make: Make
) -> None:
    tried = make(kernel, name)
    spoiled = misfit.spoil(tried.draw())
    try:
        returned = tried.run(spoiled, tried.output())
    except REFUSALS:
        return
    trial.assert_close(returned, tried.expect(spoiled))


@pytest.mark.parametrize(("kernel", "name"), _marked([*CPP, *CUDA]))
def test_refuses_another_number_of_arguments(kernel: str, name: str, make: Make) -> None:
    tried = make(kernel, name)
    with pytest.raises(KernelError, match=f"^{misfits.WRONG_COUNTS[kernel]}"):
        tried.run({**tried.draw(), "scale": 0.5}, tried.output())
    without_last = dict(list(tried.draw().items())[:-1])
    with pytest.raises(KernelError, match=r"^needs 1 output, 4 inputs and "):
        tried.run(without_last, tried.output())
    with pytest.raises(KernelError, match=r"^needs 1 output, 4 inputs and .*; has 2, 4 and "):
        tried.entry.bind(tried.draw(), (tried.output(), tried.output()))()


@pytest.mark.parametrize(("kernel", "name"), _marked([*CPP, *CUDA]))
def test_refuses_an_output_of_another_dtype_shape_or_layout(
    kernel: str, name: str, make: Make
) -> None:
    tried = make(kernel, name)
    drawn, output = tried.draw(), tried.output()
    with pytest.raises(KernelError, match=r"^output must be float32$"):
        tried.run(drawn, output.double())
    with pytest.raises(KernelError, match=rf"^output has {output.dim() - 1} dimensions, must"):
        tried.run(drawn, output[0])
    for dimension, size in enumerate(output.shape):
        message = f"^output has size 1 in dimension {dimension}, must have {size}$"
        with pytest.raises(KernelError, match=message):
            tried.run(drawn, output.narrow(dimension, 0, 1).contiguous())
    with pytest.raises(KernelError, match=r"^output must be contiguous$"):
        tried.run(drawn, output.transpose(-1, -2).contiguous().transpose(-1, -2))
    assert bool(output.isnan().all())


@pytest.mark.parametrize(("kernel", "name"), _marked([*CPP, *CUDA]))
def test_refuses_memory_that_is_not_aligned_to_an_element(
    kernel: str, name: str, make: Make
) -> None:
    tried = make(kernel, name)
    drawn, output = tried.draw(), tried.output()
    for argument in misfits.INPUTS[kernel]:
        with pytest.raises(KernelError, match=f"^{argument} must be aligned to 4 bytes$"):
            tried.run({**drawn, argument: _misaligned(drawn[argument])}, output)
    with pytest.raises(KernelError, match=r"^output must be aligned to 4 bytes$"):
        tried.run(drawn, _misaligned(output))


def _misaligned(value: Tensor) -> Tensor:
    memory = bytearray(4 * value.numel() + 2)
    flat = torch.frombuffer(memory, dtype=torch.float32, offset=2, count=value.numel())
    return flat.view(value.shape)


@pytest.mark.parametrize(("kernel", "name"), _marked([*CUDA, *TRITON]))
def test_names_the_input_that_is_not_contiguous(kernel: str, name: str, make: Make) -> None:
    tried = make(kernel, name)
    drawn, output = tried.draw(), tried.output()
    for argument in misfits.INPUTS[kernel]:
        for view in misfits.views(drawn[argument]):
            with pytest.raises(REFUSALS, match=f"^{argument} must be contiguous$"):
                tried.run({**drawn, argument: view}, output)


@pytest.mark.parametrize(("kernel", "name"), _marked([*CPP, *PEERS]))
def test_takes_any_strides_and_offset(kernel: str, name: str, make: Make) -> None:
    tried = make(kernel, name)
    drawn = tried.draw()
    for argument in misfits.INPUTS[kernel]:
        for view in (*misfits.views(drawn[argument]), misfits.offset(drawn[argument])):
            tried.assert_right({**drawn, argument: view}, tried.output())


@pytest.mark.parametrize(("kernel", "name"), _marked([*CPP, *CUDA, *PEERS]))
def test_an_empty_output_is_left_alone(kernel: str, name: str, make: Make) -> None:
    tried = make(kernel, name)
    tokens = ("batch", "sequence")
    for axis in tokens if (kernel, name) in PEERS else misfits.EMPTY_OUTPUTS[kernel]:
        output = tried.run(tried.draw(**{axis: 0}), tried.output(**{axis: 0}))
        assert output.shape == tried.output(**{axis: 0}).shape
    tried.run(tried.draw(batch=0, rank=0), tried.output(batch=0))


@pytest.mark.parametrize(("kernel", "name"), _marked([*CPP, *PEERS]))
def test_an_empty_sum_is_zero(kernel: str, name: str, make: Make) -> None:
    tried = make(kernel, name)
    for axis in misfits.EMPTY_SUMS[kernel]:
        output = tried.run(tried.draw(**{axis: 0}), tried.output())
        assert torch.equal(output, torch.zeros_like(output))


@pytest.mark.parametrize(("kernel", "name"), _marked([*CUDA, *TRITON]))
def test_a_gpu_variant_refuses_the_tensors_of_a_cpu(
    kernel: str, name: str, load: Load, make: Make
) -> None:
    tried, first = make(kernel, name), misfits.INPUTS[kernel][0]
    with pytest.raises(REFUSALS, match=f"^{first} is on cpu, this variant takes tensors on cuda$"):
        load(kernel, name).bind(tried.draw(), (tried.output(),))()


@pytest.mark.parametrize(("kernel", "name"), CPP)
def test_a_cpu_variant_refuses_the_tensors_of_another_device(
    kernel: str, name: str, make: Make
) -> None:
    tried = make(kernel, name)
    drawn, output = tried.draw(), tried.output()
    for argument in misfits.INPUTS[kernel]:
        message = f"^{argument} is on meta, this variant takes tensors on cpu$"
        with pytest.raises(KernelError, match=message):
            tried.run({**drawn, argument: drawn[argument].to("meta")}, output)
    with pytest.raises(KernelError, match=r"^output is on meta, this variant takes tensors on cpu"):
        tried.run(drawn, output.to("meta"))


@pytest.mark.parametrize(("kernel", "name"), _marked(CUDA))
def test_names_the_size_that_is_too_large(kernel: str, name: str, make: Make) -> None:
    """With tensors of no elements, which may have any sizes."""
    tried = make(kernel, name)
    for message, sizes in misfits.TOO_LARGE[kernel].items():
        with pytest.raises(KernelError, match=f"^{re.escape(message)}"):
            tried.run(tried.draw(**sizes), tried.output(**sizes))


@pytest.mark.parametrize(("kernel", "name"), _marked(_BLOCK_EACH))
def test_names_the_blocks_that_no_launch_can_have(
    kernel: str, name: str, make: Make, tmp_path: Path
) -> None:
    tried, count = make(kernel, name), 2**31
    drawn = tried.draw(batch=0, sequence=1, model=0, rank=0, heads=1, kv_heads=1, head_dim=1)
    memory = torch.from_file(str(tmp_path / "sparse"), shared=True, size=2 * count)
    if kernel == "mla_attention":
        drawn |= {"q": memory[:count].view(count, 1, 1, 1), "kv_latent": torch.empty(count, 1, 0)}
        output = memory[count:].view(count, 1, 1, 1)
    else:
        drawn |= {"hidden": torch.empty(count, 1, 0)}
        output = memory.view(count, 1, 2, 1, 1)
    message = r"^needs 2147483648 blocks, a launch takes at most 2147483647$"
    with pytest.raises(KernelError, match=message):
        tried.run(drawn, output)


@pytest.mark.parametrize(("kernel", "name"), _marked([*CPP, *PEERS]))
def test_takes_elements_that_are_2_to_the_31_apart(
    kernel: str, name: str, make: Make, tmp_path: Path
) -> None:
    tried = make(kernel, name)
    drawn = tried.draw()
    for argument in misfits.INPUTS[kernel]:
        drawn[argument] = _spread(drawn[argument], tmp_path / argument)
    tried.assert_right(drawn, tried.output())


def _spread(value: Tensor, file: Path) -> Tensor:
    """The same values in a file, with one such distance from the first to the last row."""
    stride = 2**31 // (len(value) - 1)
    memory = torch.from_file(str(file), shared=True, size=2**31 + stride)
    file.unlink()
    spread = memory.as_strided(value.shape, (stride, *value[0].contiguous().stride()))
    return spread.copy_(value)
