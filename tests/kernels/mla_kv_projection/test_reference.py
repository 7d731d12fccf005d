"""The reference of the projection against other ways to write it down."""

import numpy as np
import pytest
import torch

from perfci.checking.inputs import Reference, case_arguments, draw_inputs, load_reference
from perfci.kernel import Case, Kernel

HEADLINE = {
    "batch": 4,
    "sequence": 96,
    "model": 256,
    "rank": 48,
    "kv_heads": 4,
    "head_dim": 32,
    "dtype": torch.float32,
}
ROUNDOFF = 2.0**-24


@pytest.fixture
def reference(shipped: dict[str, Kernel]) -> Reference:
    return load_reference(shipped["mla_kv_projection"])


def _cases(shipped: dict[str, Kernel]) -> list[Case]:
    cases = shipped["mla_kv_projection"].cases
    return [case for case in cases if "cpu" in case.devices and case.dtype == "float32"]


def test_agrees_with_one_contraction_over_both_weights(
    shipped: dict[str, Kernel], reference: Reference
) -> None:
    for case in _cases(shipped):
        drawn = draw_inputs(reference, case, device="cpu", seed=1)
        tensors = [each for each in drawn.values() if isinstance(each, torch.Tensor)]
        hidden, w_down, w_up_k, w_up_v = (each.double().numpy() for each in tensors)
        shape = (w_down.shape[1], drawn["kv_heads"], drawn["head_dim"])
        ups = np.stack((w_up_k.reshape(shape), w_up_v.reshape(shape)))
        expected = np.einsum("bsm,mr,urhd->bsuhd", hidden, w_down, ups, optimize=True)
        actual = reference.reference(
            *(each.double() if isinstance(each, torch.Tensor) else each for each in drawn.values())
        )
        np.testing.assert_allclose(
            actual, expected, rtol=1e-10, atol=1e-12 * np.abs(expected).max()
        )


def test_keys_come_before_values(reference: Reference) -> None:
    hidden, w_down = torch.tensor([[[2.0]]]), torch.tensor([[3.0]])
    w_up_k, w_up_v = torch.tensor([[1.0, 2.0]]), torch.tensor([[5.0, 7.0]])
    output = reference.reference(hidden, w_down, w_up_k, w_up_v, 1, 2)
    assert output.tolist() == [[[[[6.0, 12.0]], [[30.0, 42.0]]]]]


def test_counts_bytes_and_operations_of_the_headline_shape(reference: Reference) -> None:
    assert reference.bytes_moved(**HEADLINE) == 4 * (98_304 + 12_288 + 2 * 6_144 + 98_304)
    assert reference.flops(**HEADLINE) == 2 * (384 * 256 * 48 + 2 * 384 * 48 * 128)
    half = {**HEADLINE, "dtype": torch.bfloat16}
    assert 2 * reference.bytes_moved(**half) == reference.bytes_moved(**HEADLINE)


def test_every_case_draws_inputs_that_the_reference_takes(
    shipped: dict[str, Kernel], reference: Reference
) -> None:
    for case in shipped["mla_kv_projection"].cases:
        if "cpu" not in case.devices:
            continue
        known = dict(case.arguments)
        output = reference.reference(*draw_inputs(reference, case, device="cpu", seed=2).values())
        assert isinstance(output, torch.Tensor)
        assert output.shape == tuple(
            known[key] if isinstance(key, str) else key
            for key in ("batch", "sequence", 2, "kv_heads", "head_dim")
        )
        assert bool(torch.isfinite(output).all()), case.name


def test_inputs_are_drawn_from_the_generator_alone(reference: Reference) -> None:
    drawn = [
        reference.make_inputs(
            **HEADLINE, device="cpu", generator=torch.Generator().manual_seed(seed)
        )
        for seed in (3, 3, 4)
    ]
    same, other = (
        torch.equal(drawn[0]["hidden"], drawn[i]["hidden"])  # type: ignore[arg-type]
        for i in (1, 2)
    )
    assert same
    assert not other


def test_magnitude_bounds_the_error_of_float32(
    shipped: dict[str, Kernel], reference: Reference
) -> None:
    assert reference.magnitude is not None
    assert reference.depth is not None
    for case in _cases(shipped):
        drawn = draw_inputs(reference, case, device="cpu", seed=5)
        exact = [x.double() if isinstance(x, torch.Tensor) else x for x in drawn.values()]
        judge = reference.reference(*exact)
        magnitude = reference.magnitude(*exact)
        assert isinstance(judge, torch.Tensor)
        assert isinstance(magnitude, torch.Tensor)
        error = (reference.reference(*drawn.values()) - judge).abs()
        depth = reference.depth(**case_arguments(case))
        assert bool((error <= depth * ROUNDOFF * magnitude).all()), case.name
        assert bool((judge.abs() <= magnitude).all()), case.name


def test_magnitude_leaves_no_room_for_a_wrong_result(
    shipped: dict[str, Kernel], reference: Reference
) -> None:
    assert reference.magnitude is not None
    assert reference.depth is not None
    for case in _cases(shipped):
        drawn = list(draw_inputs(reference, case, device="cpu", seed=6).values())
        bound = reference.magnitude(*drawn)
        assert isinstance(bound, torch.Tensor)
        bound = bound * ROUNDOFF * reference.depth(**case_arguments(case)) ** 0.5
        output = reference.reference(*drawn)
        assert isinstance(output, torch.Tensor)
        assert bool((bound < 1e-3 * output.double().square().mean().sqrt()).any()), case.name
