"""What the C++ attentions say to arguments that they were not made for."""

from collections.abc import Callable

import pytest
import torch

from perfci.entry import Entry, KernelError
from perfci.inputs import Arguments, load_reference
from perfci.kernel import Kernel

Load = Callable[[str, str], Entry]
SHAPE = {"batch": 2, "sequence": 5, "heads": 3, "head_dim": 4, "rank": 6}


@pytest.fixture(params=["cpp_serial", "cpp_threads"])
def entry(request: pytest.FixtureRequest, load: Load) -> Entry:
    return load("mla_attention", request.param)


def _drawn(shipped: dict[str, Kernel], **changes: int) -> dict[str, torch.Tensor | int | float]:
    reference = load_reference(shipped["mla_attention"])
    generator = torch.Generator().manual_seed(1)
    shape = {**SHAPE, **changes}
    return dict(
        reference.make_inputs(**shape, dtype=torch.float32, device="cpu", generator=generator)
    )


def _run(entry: Entry, drawn: Arguments, output: torch.Tensor) -> torch.Tensor:
    entry.bind(drawn, (output,))()
    return output


def _output(*shape: int) -> torch.Tensor:
    return torch.full(shape or (2, 5, 3, 4), float("nan"))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("q", torch.zeros(2, 5, 3, 4, dtype=torch.float16), "q must be float32"),
        ("w_up_k", torch.zeros(6, 3, 4, dtype=torch.float64), "w_up_k must be float32"),
        ("q", torch.zeros(10, 3, 4), "q has 3 dimensions, must have 4"),
        ("kv_latent", torch.zeros(10, 6), "kv_latent has 2 dimensions, must have 3"),
        ("w_up_v", torch.zeros(6, 12), "w_up_v has 2 dimensions, must have 3"),
        ("kv_latent", torch.zeros(1, 5, 6), "kv_latent has size 1 in dimension 0, must have 2"),
        ("kv_latent", torch.zeros(2, 4, 6), "kv_latent has size 4 in dimension 1, must have 5"),
        ("w_up_k", torch.zeros(5, 3, 4), "w_up_k has size 5 in dimension 0, must have 6"),
        ("w_up_k", torch.zeros(6, 2, 4), "w_up_k has size 2 in dimension 1, must have 3"),
        ("w_up_v", torch.zeros(6, 3, 5), "w_up_v has size 5 in dimension 2, must have 4"),
    ],
)
def test_refuses_what_does_not_fit(
    entry: Entry, shipped: dict[str, Kernel], name: str, value: torch.Tensor, message: str
) -> None:
    drawn = _drawn(shipped)
    drawn[name] = value
    output = _output()
    with pytest.raises(KernelError, match=f"^{message}$"):
        _run(entry, drawn, output)
    assert bool(output.isnan().all())


def test_refuses_a_wrong_number_of_arguments(entry: Entry, shipped: dict[str, Kernel]) -> None:
    drawn = _drawn(shipped)
    drawn["scale"] = 0.5
    with pytest.raises(KernelError, match="needs 1 output, 4 inputs and no scalars; has 1, 4 and"):
        _run(entry, drawn, _output())


def test_refuses_an_output_of_another_shape_or_layout(
    entry: Entry, shipped: dict[str, Kernel]
) -> None:
    drawn = _drawn(shipped)
    with pytest.raises(KernelError, match="output has size 4 in dimension 1, must have 5"):
        _run(entry, drawn, _output(2, 4, 3, 4))
    with pytest.raises(KernelError, match="output must be contiguous"):
        _run(entry, drawn, _output(2, 5, 4, 3).transpose(2, 3))
    with pytest.raises(KernelError, match="output must be float32"):
        _run(entry, drawn, _output().double())


@pytest.mark.parametrize("empty", ["batch", "sequence", "heads", "head_dim"])
def test_an_empty_output_is_left_alone(
    entry: Entry, shipped: dict[str, Kernel], empty: str
) -> None:
    shape = {**SHAPE, empty: 0}
    sizes = (shape[key] for key in ("batch", "sequence", "heads", "head_dim"))
    assert _run(entry, _drawn(shipped, **{empty: 0}), _output(*sizes)).numel() == 0


def test_a_latent_of_no_rank_gives_zeros(entry: Entry, shipped: dict[str, Kernel]) -> None:
    output = _run(entry, _drawn(shipped, rank=0), _output())
    assert torch.equal(output, torch.zeros(2, 5, 3, 4))


def test_takes_transposed_expanded_and_offset_views(
    entry: Entry, shipped: dict[str, Kernel]
) -> None:
    drawn = _drawn(shipped)
    generator = torch.Generator().manual_seed(2)
    drawn["q"] = torch.randn(4, 3, 5, 2, generator=generator).permute(3, 2, 1, 0)
    drawn["kv_latent"] = torch.randn(6, 6, generator=generator).t()[1:].expand(2, 5, 6)
    drawn["w_up_k"] = torch.randn(4, 6, 3, generator=generator).permute(1, 2, 0)
    expected = load_reference(shipped["mla_attention"]).reference(*drawn.values())
    torch.testing.assert_close(_run(entry, drawn, _output()), expected)


@pytest.mark.parametrize("poison", [float("nan"), float("inf")])
def test_a_position_that_is_not_finite_shows_in_the_queries_that_see_it(
    entry: Entry, shipped: dict[str, Kernel], poison: float
) -> None:
    drawn = _drawn(shipped)
    latent = drawn["kv_latent"]
    assert isinstance(latent, torch.Tensor)
    latent[0, 3] = poison
    output = _run(entry, drawn, _output())
    assert bool(output[0, 3:].isnan().all())
    assert bool(output[1].isfinite().all())
