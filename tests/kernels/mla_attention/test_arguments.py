"""What the attentions alone say to arguments that they were not made for."""

from collections.abc import Callable

import pytest
from trial import Trial

from perfci.entry import Entry, KernelError
from perfci.kernel import Kernel
from perfci.toolchain import find_compiler

Load = Callable[[str, str], Entry]
NAME = "mla_attention"


@pytest.fixture(params=["cpp_serial", "cpp_threads"])
def tried(request: pytest.FixtureRequest, load: Load, shipped: dict[str, Kernel]) -> Trial:
    return Trial(kernel=shipped[NAME], entry=load(NAME, request.param))


def test_batches_without_an_output_cost_nothing(tried: Trial) -> None:
    sizes = {"batch": 2**40, "sequence": 0}
    assert tried.run(tried.draw(**sizes), tried.output(**sizes)).numel() == 0


@pytest.mark.parametrize("poison", [float("nan"), float("inf")])
def test_a_position_that_is_not_finite_shows_in_the_queries_that_see_it(
    tried: Trial, poison: float
) -> None:
    drawn = tried.draw()
    drawn["kv_latent"][0, 3] = poison
    output = tried.run(drawn, tried.output())
    assert bool(output[0, 3:].isnan().all())
    assert bool(output[1].isfinite().all())


@pytest.mark.nvcc
@pytest.mark.skipif(find_compiler("nvcc") is None, reason="nvcc is not installed")
@pytest.mark.parametrize(
    ("name", "sizes", "message"),
    [
        ("absorbed", {"rank": 129}, "rank is 129, at most 128"),
        ("shared_weights", {"rank": 8193, "heads": 1}, "rank is 8193, at most 8192"),
        ("online_softmax", {"rank": 8193, "heads": 1}, "rank is 8193, at most 8192"),
        ("shared_weights", {"head_dim": 8193}, "head_dim is 8193, at most 8192"),
        ("online_softmax", {"head_dim": 8193}, "head_dim is 8193, at most 8192"),
    ],
)
def test_names_the_limit_of_its_own(
    name: str, sizes: dict[str, int], message: str, load_on_host: Load, shipped: dict[str, Kernel]
) -> None:
    tried = Trial(kernel=shipped[NAME], entry=load_on_host(NAME, name))
    with pytest.raises(KernelError, match=f"^{message}$"):
        tried.run(tried.draw(**sizes), tried.output(**sizes))
