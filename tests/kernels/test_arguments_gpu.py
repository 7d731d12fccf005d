"""What the CUDA and Triton variants say on a GPU to arguments that they were not made for.

After each refusal a good call must still be right: nothing of it may be left in the device.
"""

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import misfits
import pytest
import torch
import trial
from misfits import Misfit
from trial import Trial

from perfci.build import Build
from perfci.checking.check import REFUSALS
from perfci.entry import load_entry
from perfci.kernel import Variant

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.long,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
    pytest.mark.filterwarnings("default"),  # Triton's own
]

Pair = tuple[str, str]
CUDA, TRITON = trial.named(trial.is_cuda), trial.named(trial.is_triton)
EVERY_ONE = pytest.mark.parametrize("pair", [*CUDA, *TRITON], ids="-".join)
EVERY_CUDA_ONE = pytest.mark.parametrize("pair", CUDA, ids="-".join)

FAST: dict[str, list[dict[str, int]]] = {
    "mla_kv_projection": [
        {"model": 64, "rank": 16, "kv_heads": 2, "head_dim": 8},
        {"model": 256, "rank": 48, "kv_heads": 4, "head_dim": 32},
    ],
    "mla_attention": [
        {"sequence": 7, "head_dim": 16, "rank": 8},
        {"sequence": 7, "head_dim": 32, "rank": 24},
    ],
}
"""Sizes at which variants take their fast paths, as long as memory is aligned."""

TOO_MUCH: dict[str, tuple[str, list[dict[str, int]]]] = {
    "mla_kv_projection": (
        "(model and )?rank",
        [
            {"rank": 60_000, "model": 8},
            {"rank": 8, "model": 60_000},
            {"rank": 2_000, "batch": 5_000},
        ],
    ),
    "mla_attention": ("head_dim and rank", [{"rank": 128, "head_dim": 512}]),
}
"""What a variant that keeps them in shared memory calls the sizes, and some that are too large."""


@pytest.fixture(scope="module")
def trials(built: Callable[[Variant], Build]) -> dict[Pair, Trial]:
    """Every CUDA and Triton variant, all compiled at once."""
    wanted = {(kernel, each.name): each for kernel, each in trial.PAIRS}
    pairs = [*CUDA, *TRITON]
    with ThreadPoolExecutor(len(pairs)) as pool:
        builds = list(pool.map(lambda pair: built(wanted[pair]), pairs))
    return {
        pair: Trial(kernel=trial.KERNELS[pair[0]], entry=load_entry(build), device="cuda:0")
        for pair, build in zip(pairs, builds, strict=True)
    }


@pytest.fixture
def tried(pair: Pair, trials: dict[Pair, Trial]) -> Iterator[Trial]:
    """A variant, which is right again afterwards."""
    one = trials[pair]
    yield one
    torch.cuda.synchronize()
    one.assert_right(one.draw(), one.output())


def _refused(tried: Trial, arguments: dict[str, Any], message: str, **sizes: int) -> None:
    """Run what must be refused with a message that matches, and write nothing."""
    output = tried.output(**sizes)
    with pytest.raises(REFUSALS, match=message):
        tried.run(arguments, output)
    torch.cuda.synchronize()
    assert bool(output.isnan().all())


def _refusal(tried: Trial, **sizes: int) -> str:
    """What a variant says to sizes that it does not take; empty where it takes them, rightly."""
    drawn, output = tried.draw(**sizes), tried.output(**sizes)
    try:
        returned = tried.run(drawn, output)
    except REFUSALS as error:
        return str(error)
    trial.assert_close(returned, tried.expect(drawn))
    return ""


def _shapes(tried: Trial) -> list[dict[str, int]]:
    """Small sizes, those of the fast paths too where there are any; no others for Triton."""
    return [{}, *FAST[tried.kernel.name]] if tried.entry.writes_outputs else [{}]


@pytest.mark.parametrize(
    ("pair", "misfit"),
    [
        pytest.param(pair, row, id=f"{'-'.join(pair)}-{row}")
        for pair in [*CUDA, *TRITON]
        for row in misfits.MISFITS[pair[0]]
    ],
)
def test_refuses_what_does_not_fit(tried: Trial, misfit: Misfit) -> None:
    _refused(tried, misfit.spoil(tried.draw()), f"^{re.escape(misfit.message)}$")


@EVERY_CUDA_ONE
def test_refuses_outputs_and_counts_that_do_not_fit(tried: Trial) -> None:
    drawn, output = tried.draw(), tried.output()
    _refused(tried, {**drawn, "scale": 0.5}, f"^{misfits.WRONG_COUNTS[tried.kernel.name]}")
    for bad, message in (
        (output.double(), "output must be float32"),
        (output[0], "output has . dimensions, must have ."),
        (output[:1], "output has size 1 in dimension 0, must have 2"),
        (output.mT.contiguous().mT, "output must be contiguous"),
    ):
        with pytest.raises(REFUSALS, match=f"^{message}$"):
            tried.run(drawn, bad)


@EVERY_ONE
def test_refuses_tensors_of_the_cpu(tried: Trial) -> None:
    drawn = tried.draw()
    for argument in misfits.INPUTS[tried.kernel.name]:
        message = f"^{argument} is on cpu, this variant takes tensors on cuda$"
        _refused(tried, {**drawn, argument: drawn[argument].cpu()}, message)
    if tried.entry.writes_outputs:
        with pytest.raises(
            REFUSALS, match=r"^output is on cpu, this variant takes tensors on cuda"
        ):
            tried.run(drawn, tried.output().cpu())
    on_cpu = Trial(kernel=tried.kernel, entry=tried.entry)
    first = misfits.INPUTS[tried.kernel.name][0]
    with pytest.raises(REFUSALS, match=f"^{first} is on cpu, "):
        tried.run(on_cpu.draw(), on_cpu.output())


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two CUDA devices")
@EVERY_ONE
def test_refuses_tensors_of_another_gpu(tried: Trial) -> None:
    drawn = tried.draw()
    for argument in misfits.INPUTS[tried.kernel.name]:
        moved = {**drawn, argument: drawn[argument].to("cuda:1")}
        _refused(tried, moved, r"^\w+ is on cuda:[01], (\w+ on|the current device is) cuda:[01]; ")
    there = Trial(kernel=tried.kernel, entry=tried.entry, device="cuda:1")
    first = misfits.INPUTS[tried.kernel.name][0]
    _refused(
        there, there.draw(), f"^{first} is on cuda:1, the current device is cuda:0; change it$"
    )
    with torch.cuda.device(1):
        there.assert_right(there.draw(), there.output())
        torch.cuda.synchronize()


@EVERY_ONE
def test_refuses_what_is_not_contiguous(tried: Trial) -> None:
    drawn = tried.draw()
    for argument in misfits.INPUTS[tried.kernel.name]:
        for view in misfits.views(drawn[argument]):
            _refused(tried, {**drawn, argument: view}, f"^{argument} must be contiguous$")


@EVERY_ONE
def test_takes_memory_that_is_aligned_to_one_element(tried: Trial) -> None:
    for sizes in _shapes(tried):
        drawn, output = tried.draw(**sizes), tried.output(**sizes)
        tried.assert_right(drawn, output)
        inputs = misfits.INPUTS[tried.kernel.name]
        moved = {argument: misfits.offset(drawn[argument]) for argument in inputs}
        tried.assert_right({**drawn, **moved}, misfits.offset(output))
        if tried.entry.writes_outputs:  # for Triton, each would be another kernel to compile
            tried.assert_right(drawn, misfits.offset(output))
            for argument, view in moved.items():
                tried.assert_right({**drawn, argument: view}, tried.output(**sizes))


@EVERY_ONE
def test_an_empty_output_is_left_alone(tried: Trial) -> None:
    for axis in misfits.EMPTY_OUTPUTS[tried.kernel.name]:
        for shape in _shapes(tried):
            sizes = {**shape, axis: 0}
            output = tried.output(**sizes)
            assert tried.run(tried.draw(**sizes), output).shape == output.shape
            torch.cuda.synchronize()


@EVERY_ONE
def test_an_empty_sum_is_zero(tried: Trial) -> None:
    for axis in misfits.EMPTY_SUMS[tried.kernel.name]:
        for shape in _shapes(tried):
            sizes = {**shape, axis: 0}
            output = tried.run(tried.draw(**sizes), tried.output(**sizes))
            assert torch.equal(output, torch.zeros_like(output))


@EVERY_ONE
def test_names_what_needs_more_shared_memory_than_there_is(tried: Trial, pair: Pair) -> None:
    names, shapes = TOO_MUCH[pair[0]]
    needs = re.compile(
        rf"needs (?P<needed>\d+) bytes of shared memory a block( for {names})?, "
        r"this device has (?P<there>\d+)"
    )
    said = [_refusal(tried, **sizes) for sizes in shapes]
    for message in filter(None, said):
        amounts = needs.fullmatch(message)
        assert amounts or message.endswith(", at most 128"), message
        if amounts:
            assert int(amounts["needed"]) > int(amounts["there"]) >= 48 * 1024
    if pair not in (("mla_kv_projection", "tiled"), ("mla_attention", "thread_per_query")):
        assert said[0]


@EVERY_CUDA_ONE
def test_names_the_size_that_is_too_large(tried: Trial) -> None:
    for message, sizes in misfits.TOO_LARGE[tried.kernel.name].items():
        _refused(tried, tried.draw(**sizes), f"^{re.escape(message)}$", **sizes)


@EVERY_ONE
def test_takes_a_size_beyond_a_limit_or_names_it(tried: Trial) -> None:
    for axis in ("rank", "head_dim"):
        assert _refusal(tried, **{axis: 129}) in ("", f"{axis} is 129, at most 128")


@EVERY_CUDA_ONE
def test_takes_a_size_at_a_limit(tried: Trial) -> None:
    for axis in ("rank", "head_dim"):
        assert not _refusal(tried, **{axis: 128})


LARGE: dict[str, dict[str, dict[str, int]]] = {
    "mla_kv_projection": {
        "output": {"batch": 2**20 + 3, "sequence": 1, "model": 4, "kv_heads": 1, "head_dim": 1024},
        "hidden": {"batch": 2**20 + 3, "sequence": 1, "model": 2048, "kv_heads": 1, "head_dim": 4},
    },
    "mla_attention": {
        "output": {"batch": 2**20 + 1, "sequence": 2, "heads": 8, "head_dim": 128, "rank": 4},
        "kv_latent": {"batch": 2**22 + 1, "sequence": 16, "heads": 1, "rank": 32},
    },
}
"""Sizes at which a tensor has more than 2^31 elements."""


@pytest.fixture
def roomy() -> Iterator[None]:
    """A GPU with room for tensors beyond 2^31 elements, given back afterwards."""
    if torch.cuda.get_device_properties(0).total_memory < 48 * 2**30:
        pytest.skip("needs 48 GiB of GPU memory")
    yield
    torch.cuda.empty_cache()


@pytest.mark.usefixtures("roomy")
@pytest.mark.parametrize(
    ("pair", "which"),
    [
        pytest.param(pair, which, id=f"{'-'.join(pair)}-{which}")
        for pair in [*CUDA, *TRITON]
        for which in LARGE[pair[0]]
    ],
)
def test_takes_more_than_2_to_the_31_elements(tried: Trial, pair: Pair, which: str) -> None:
    sizes = LARGE[pair[0]][which]
    drawn = tried.draw(**sizes)
    output = tried.run(drawn, tried.output(**sizes))
    assert not bool(output.isnan().any())
    for ends in (slice(0, 2), slice(-2, None)):
        part = {
            name: value[ends] if name in ("hidden", "q", "kv_latent") else value
            for name, value in drawn.items()
        }
        trial.assert_close(output[ends], tried.expect(part))


@pytest.mark.usefixtures("roomy")
@EVERY_ONE
def test_takes_2_to_the_31_tokens_or_names_the_blocks(tried: Trial) -> None:
    sizes = {"batch": 2**31, "sequence": 1, "model": 0, "rank": 0, "head_dim": 1}
    sizes |= {"kv_heads": 1, "heads": 1}
    said = ""
    output = tried.output(**sizes)
    try:
        output = tried.run(tried.draw(**sizes), output)
    except REFUSALS as error:
        said = str(error)
    message = r"needs 2147483648 (blocks|programs), a launch takes at most 2147483647"
    assert re.fullmatch(message, said) if said else not bool(output.any())
