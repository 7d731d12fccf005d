"""The reference of the attention against other ways to write it down."""

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from perfci.checking.inputs import Arguments, Reference, case_arguments, draw_inputs, load_reference
from perfci.kernel import Case, Kernel

HEADLINE = {
    "batch": 2,
    "sequence": 32,
    "heads": 4,
    "head_dim": 16,
    "rank": 24,
    "dtype": torch.float32,
}
ROUNDOFF = 2.0**-24
Matrix = NDArray[np.float64]


@pytest.fixture
def reference(shipped: dict[str, Kernel]) -> Reference:
    return load_reference(shipped["mla_attention"])


def _cases(shipped: dict[str, Kernel]) -> list[Case]:
    cases = shipped["mla_attention"].cases
    return [case for case in cases if "cpu" in case.devices and case.dtype == "float32"]


def _doubles(drawn: Arguments) -> list[torch.Tensor]:
    return [each.double() for each in drawn.values() if isinstance(each, torch.Tensor)]


def _output(reference: Reference, drawn: list[torch.Tensor]) -> torch.Tensor:
    output = reference.reference(*drawn)
    assert isinstance(output, torch.Tensor)
    return output


def _one_query(query: Matrix, latents: Matrix, up_k: Matrix, up_v: Matrix) -> Matrix:
    """Attention on the latents themselves: keys and values are never formed."""
    logits = latents @ (up_k @ query) / math.sqrt(len(query))
    weights = np.exp(logits - logits.max())
    return np.asarray((weights / weights.sum()) @ latents @ up_v)


def test_agrees_with_attention_on_the_latents_query_by_query(
    shipped: dict[str, Kernel], reference: Reference
) -> None:
    for case in _cases(shipped):
        if case.name == "long":
            continue
        drawn = _doubles(draw_inputs(reference, case, device="cpu", seed=1))
        q, kv_latent, w_up_k, w_up_v = (each.numpy() for each in drawn)
        expected = np.empty(q.shape)
        for b, t, h in np.ndindex(q.shape[:3]):
            expected[b, t, h] = _one_query(
                q[b, t, h], kv_latent[b, : t + 1], w_up_k[:, h], w_up_v[:, h]
            )
        np.testing.assert_allclose(
            _output(reference, drawn), expected, rtol=1e-7, atol=1e-9 * np.abs(expected).max()
        )


def test_a_query_sees_nothing_of_the_future(reference: Reference) -> None:
    generator = torch.Generator().manual_seed(2)
    drawn = _doubles(reference.make_inputs(**HEADLINE, device="cpu", generator=generator))
    before = _output(reference, drawn)
    drawn[1][:, 20:] += 1.0
    after = _output(reference, drawn)
    assert torch.equal(before[:, :20], after[:, :20])
    assert bool((before[:, 20:] != after[:, 20:]).any())


def test_the_first_query_takes_its_own_value(reference: Reference) -> None:
    generator = torch.Generator().manual_seed(3)
    drawn = _doubles(reference.make_inputs(**HEADLINE, device="cpu", generator=generator))
    own = torch.tensordot(drawn[1][:, 0], drawn[3], dims=1)
    torch.testing.assert_close(_output(reference, drawn)[:, 0], own)


def test_counts_bytes_and_operations_of_the_headline_shape(reference: Reference) -> None:
    assert reference.bytes_moved(**HEADLINE) == 4 * (2 * 4_096 + 1_536 + 2 * 1_536)
    up_projections, pairs = 2 * (64 * 24 * 64), 2 * 4 * (32 * 33 // 2)
    assert reference.flops(**HEADLINE) == 2 * (up_projections + pairs * 16 * 2)
    half = {**HEADLINE, "dtype": torch.bfloat16}
    assert 2 * reference.bytes_moved(**half) == reference.bytes_moved(**HEADLINE)


def test_counts_the_cheaper_of_latents_and_keys(reference: Reference) -> None:
    narrow = {**HEADLINE, "rank": 8}
    up_projections, pairs = 2 * (64 * 8 * 64), 2 * 4 * (32 * 33 // 2)
    assert reference.flops(**narrow) == 2 * (up_projections + pairs * 8 * 2)


def test_every_case_draws_inputs_that_the_reference_takes(
    shipped: dict[str, Kernel], reference: Reference
) -> None:
    for case in shipped["mla_attention"].cases:
        if "cpu" not in case.devices:
            continue
        known = dict(case.arguments)
        output = reference.reference(*draw_inputs(reference, case, device="cpu", seed=4).values())
        assert isinstance(output, torch.Tensor)
        assert output.shape == tuple(
            known[key] for key in ("batch", "sequence", "heads", "head_dim")
        )
        assert bool(torch.isfinite(output).all()), case.name


def test_magnitude_bounds_the_error_of_float32(
    shipped: dict[str, Kernel], reference: Reference
) -> None:
    assert reference.magnitude is not None
    assert reference.depth is not None
    for case in _cases(shipped):
        drawn = draw_inputs(reference, case, device="cpu", seed=5)
        exact = _doubles(drawn)
        error = (reference.reference(*drawn.values()) - _output(reference, exact)).abs()
        magnitude = reference.magnitude(*exact)
        assert isinstance(magnitude, torch.Tensor)
        depth = reference.depth(**case_arguments(case))
        assert bool((error <= depth * ROUNDOFF * magnitude).all()), case.name


def test_magnitude_bounds_what_a_shift_of_the_logits_does(reference: Reference) -> None:
    """A relative change of w_up_k by e changes each logit by at most e times its magnitude."""
    assert reference.magnitude is not None
    relative = 1e-7
    for seed in range(5):
        generator = torch.Generator().manual_seed(seed)
        drawn = _doubles(reference.make_inputs(**HEADLINE, device="cpu", generator=generator))
        before = _output(reference, drawn)
        signs = torch.randint(0, 2, drawn[2].shape, generator=generator) * 2.0 - 1.0
        drawn[2] *= 1.0 + relative * signs
        magnitude = reference.magnitude(*drawn)
        assert isinstance(magnitude, torch.Tensor)
        moved = (_output(reference, drawn) - before).abs()
        assert bool((moved <= 1.01 * relative * magnitude + 1e-13).all())
        assert float(moved.max()) > 1e-3 * relative


def test_magnitude_leaves_no_room_for_a_wrong_result(
    shipped: dict[str, Kernel], reference: Reference
) -> None:
    assert reference.magnitude is not None
    assert reference.depth is not None
    for case in _cases(shipped):
        drawn = _doubles(draw_inputs(reference, case, device="cpu", seed=6))
        bound = reference.magnitude(*drawn)
        assert isinstance(bound, torch.Tensor)
        bound = bound * ROUNDOFF * reference.depth(**case_arguments(case)) ** 0.5
        scale = _output(reference, drawn).square().mean().sqrt()
        assert bool((bound < 1e-3 * scale).any()), case.name
