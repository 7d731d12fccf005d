"""What the projections alone say to arguments that they were not made for."""

from collections.abc import Callable

import pytest
import torch
from trial import Trial

from perfci.entry import Entry, KernelError
from perfci.kernel import Kernel

Load = Callable[[str, str], Entry]
NAME = "mla_kv_projection"


@pytest.fixture(params=["cpp_serial", "cpp_threads"])
def tried(request: pytest.FixtureRequest, load: Load, shipped: dict[str, Kernel]) -> Trial:
    return Trial(kernel=shipped[NAME], entry=load(NAME, request.param))


@pytest.mark.parametrize("rank", [2**58, 2**60 + 1, 2**62, 2**63 - 48])
def test_a_latent_beyond_all_memory_is_refused(tried: Trial, rank: int) -> None:
    """One that no size counts either: an expanded weight may have any rank."""
    weight = torch.ones(1, 1).expand(rank, 1)
    arguments = {
        "hidden": torch.empty(2, 1, 0),
        "w_down": torch.empty(0, rank),
        "w_up_k": weight,
        "w_up_v": weight,
        "kv_heads": 1,
        "head_dim": 1,
    }
    with pytest.raises(KernelError, match=r"^out of memory for "):
        tried.run(arguments, torch.empty(2, 1, 2, 1, 1))


def test_tokens_without_an_output_cost_nothing(tried: Trial) -> None:
    sizes = {"batch": 2**20, "sequence": 2**20, "model": 0, "head_dim": 0}
    output = tried.run(tried.draw(**sizes), tried.output(**sizes))
    assert output.numel() == 0


def test_heads_that_no_product_counts_are_refused(tried: Trial) -> None:
    arguments = {**tried.draw(), "kv_heads": 2**32, "head_dim": 2**32}
    message = r"^kv_heads x head_dim is 4294967296 x 4294967296, too much for any tensor$"
    with pytest.raises(KernelError, match=message):
        tried.run(arguments, tried.output())
