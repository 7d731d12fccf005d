"""What the C++ projections say to arguments that they were not made for."""

from collections.abc import Callable

import pytest
import torch

from perfci.entry import Entry, KernelError
from perfci.inputs import Arguments, load_reference
from perfci.kernel import Kernel

Load = Callable[[str, str], Entry]
SHAPE = {"batch": 2, "sequence": 3, "model": 5, "rank": 4, "kv_heads": 2, "head_dim": 3}


@pytest.fixture(params=["cpp_serial", "cpp_threads"])
def entry(request: pytest.FixtureRequest, load: Load) -> Entry:
    return load("mla_kv_projection", request.param)


def _drawn(shipped: dict[str, Kernel], **changes: int) -> dict[str, torch.Tensor | int | float]:
    reference = load_reference(shipped["mla_kv_projection"])
    generator = torch.Generator().manual_seed(1)
    shape = {**SHAPE, **changes}
    return dict(
        reference.make_inputs(**shape, dtype=torch.float32, device="cpu", generator=generator)
    )


def _run(entry: Entry, drawn: Arguments, output: torch.Tensor) -> torch.Tensor:
    entry.bind(drawn, (output,))()
    return output


def _output(*shape: int) -> torch.Tensor:
    return torch.full(shape or (2, 3, 2, 2, 3), float("nan"))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("hidden", torch.zeros(2, 3, 5, dtype=torch.float64), "hidden must be float32"),
        ("w_up_v", torch.zeros(4, 6, dtype=torch.bfloat16), "w_up_v must be float32"),
        ("hidden", torch.zeros(6, 5), "hidden has 2 dimensions, must have 3"),
        ("w_down", torch.zeros(5), "w_down has 1 dimensions, must have 2"),
        ("w_down", torch.zeros(6, 4), "w_down has size 6 in dimension 0, must have 5"),
        ("w_up_k", torch.zeros(3, 6), "w_up_k has size 3 in dimension 0, must have 4"),
        ("w_up_k", torch.zeros(4, 7), "w_up_k has size 7 in dimension 1, must have 6"),
        ("w_up_v", torch.zeros(4, 5), "w_up_v has size 5 in dimension 1, must have 6"),
        ("head_dim", 4, "w_up_k has size 6 in dimension 1, must have 8"),
        ("kv_heads", -2, "kv_heads and head_dim are -2 and 3, must not be negative"),
    ],
)
def test_refuses_what_does_not_fit(
    entry: Entry,
    shipped: dict[str, Kernel],
    name: str,
    value: torch.Tensor | int,
    message: str,
) -> None:
    drawn = _drawn(shipped)
    drawn[name] = value
    output = _output()
    with pytest.raises(KernelError, match=f"^{message}$"):
        _run(entry, drawn, output)
    assert bool(output.isnan().all())


def test_refuses_a_wrong_number_of_arguments(entry: Entry, shipped: dict[str, Kernel]) -> None:
    drawn = _drawn(shipped)
    del drawn["head_dim"]
    with pytest.raises(KernelError, match="needs 1 output, 4 inputs and 2 scalars; has 1, 4 and 1"):
        _run(entry, drawn, _output())


def test_refuses_an_output_of_another_shape_or_layout(
    entry: Entry, shipped: dict[str, Kernel]
) -> None:
    drawn = _drawn(shipped)
    with pytest.raises(KernelError, match="output has size 1 in dimension 2, must have 2"):
        _run(entry, drawn, _output(2, 3, 1, 2, 3))
    with pytest.raises(KernelError, match="output must be contiguous"):
        _run(entry, drawn, _output(2, 3, 2, 3, 2).transpose(3, 4))
    with pytest.raises(KernelError, match="output must be float32"):
        _run(entry, drawn, _output().double())


@pytest.mark.parametrize("empty", ["batch", "sequence", "kv_heads", "head_dim"])
def test_an_empty_output_is_left_alone(
    entry: Entry, shipped: dict[str, Kernel], empty: str
) -> None:
    shape = {**SHAPE, empty: 0}
    sizes = (shape["batch"], shape["sequence"], 2, shape["kv_heads"], shape["head_dim"])
    output = _run(entry, _drawn(shipped, **{empty: 0}), _output(*sizes))
    assert output.numel() == 0


@pytest.mark.parametrize("empty", ["model", "rank"])
def test_an_empty_sum_is_zero(entry: Entry, shipped: dict[str, Kernel], empty: str) -> None:
    output = _run(entry, _drawn(shipped, **{empty: 0}), _output())
    assert torch.equal(output, torch.zeros(2, 3, 2, 2, 3))


def test_takes_transposed_expanded_and_reversed_views(
    entry: Entry, shipped: dict[str, Kernel]
) -> None:
    drawn = _drawn(shipped)
    hidden = torch.randn(5, 3, 1, generator=torch.Generator().manual_seed(2))
    drawn["hidden"] = hidden.permute(2, 1, 0).expand(2, 3, 5)
    for name in ("w_down", "w_up_k", "w_up_v"):
        value = drawn[name]
        assert isinstance(value, torch.Tensor)
        drawn[name] = value.t().contiguous().t()
    expected = load_reference(shipped["mla_kv_projection"]).reference(*drawn.values())
    torch.testing.assert_close(_run(entry, drawn, _output()), expected)
