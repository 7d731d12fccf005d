"""Every shipped variant is right, and every control is caught, by perfci's own check."""

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from perfci.check import Subject, check
from perfci.entry import Entry
from perfci.history.model import Status
from perfci.inputs import load_reference
from perfci.kernel import Case, Kernel, Variant, discover, skip_reason
from perfci.outcome import Outcome

KERNELS = discover(Path(__file__).parents[2] / "kernels")
Load = Callable[[str, str], Entry]

# A case that catches each control, and as what.
CAUGHT = {
    ("mla_kv_projection", "broadcast_shape"): ("headline", Status.WRONG_SHAPE),
    ("mla_kv_projection", "changes_input"): ("headline", Status.WRONG_VALUES),
    ("mla_kv_projection", "float64_output"): ("headline", Status.WRONG_DTYPE),
    ("mla_kv_projection", "low_precision"): ("headline", Status.WRONG_VALUES),
    ("mla_kv_projection", "odd_tail"): ("odd", Status.WRONG_VALUES),
    ("mla_kv_projection", "rounded_latent"): ("headline", Status.WRONG_VALUES),
    ("mla_kv_projection", "same_weights"): ("headline", Status.WRONG_VALUES),
    ("mla_kv_projection", "stale_output"): ("headline", Status.WRONG_VALUES),
    ("mla_kv_projection", "strides_ignored"): ("strided", Status.WRONG_VALUES),
    ("mla_kv_projection", "swapped_slots"): ("headline", Status.WRONG_VALUES),
    ("mla_kv_projection", "transposed_heads"): ("headline", Status.WRONG_VALUES),
    ("mla_kv_projection", "zeros"): ("headline", Status.WRONG_VALUES),
    ("mla_attention", "broadcast_shape"): ("headline", Status.WRONG_SHAPE),
    ("mla_attention", "changes_input"): ("headline", Status.WRONG_VALUES),
    ("mla_attention", "float64_output"): ("headline", Status.WRONG_DTYPE),
    ("mla_attention", "keys_as_values"): ("headline", Status.WRONG_VALUES),
    ("mla_attention", "low_precision"): ("headline", Status.WRONG_VALUES),
    ("mla_attention", "mask_after_softmax"): ("headline", Status.WRONG_VALUES),
    ("mla_attention", "mask_off_by_one"): ("headline", Status.WRONG_VALUES),
    ("mla_attention", "no_mask"): ("headline", Status.WRONG_VALUES),
    ("mla_attention", "no_maximum"): ("large", Status.WRONG_VALUES),
    ("mla_attention", "no_scale"): ("headline", Status.WRONG_VALUES),
    ("mla_attention", "odd_tail"): ("odd", Status.WRONG_VALUES),
    ("mla_attention", "shifted_heads"): ("headline", Status.WRONG_VALUES),
    ("mla_attention", "stale_output"): ("headline", Status.WRONG_VALUES),
    ("mla_attention", "zeros"): ("headline", Status.WRONG_VALUES),
}
# Wrong only off the beaten track.
RIGHT_AT_HEADLINE = ("odd_tail", "strides_ignored", "no_maximum")


def _outcomes(
    kernel: Kernel, variant: Variant, load: Load, cases: Iterable[Case], seeds: range
) -> dict[str, Outcome]:
    reference, entry = load_reference(kernel), load(kernel.name, variant.name)
    return {
        case.name: check(
            Subject(entry=entry, reference=reference, kernel=kernel, case=case, device="cpu"),
            seeds,
        )
        for case in cases
    }


def _with_variants(kind: str) -> list[ParameterSet]:
    """All pairs of a kernel and one of its variants, or of its controls, that run on a CPU."""
    return [
        pytest.param(kernel, each, id=f"{kernel.name}-{each.name}")
        for kernel in KERNELS
        for each in getattr(kernel, kind)
        if "cpu" in each.declaration.devices and not each.declaration.compiles
    ]


@pytest.mark.parametrize(("kernel", "variant"), _with_variants("variants"))
def test_variant_is_right_at_every_case(kernel: Kernel, variant: Variant, load: Load) -> None:
    cases = [
        case
        for case in kernel.cases
        if "cpu" in case.devices and not skip_reason(variant, case, "cpu")
    ]
    assert len(cases) > 10
    outcomes = _outcomes(kernel, variant, load, cases, range(10, 13))
    wrong = {case: o.message for case, o in outcomes.items() if o.status is not Status.PASSED}
    assert not wrong


def test_every_control_has_a_case_that_catches_it() -> None:
    controls = {
        (kernel.name, each.name)
        for kernel in KERNELS
        for each in kernel.controls
        if "cpu" in each.declaration.devices
    }
    assert controls == set(CAUGHT)


@pytest.mark.parametrize(("kernel", "variant"), _with_variants("controls"))
def test_control_is_caught(kernel: Kernel, variant: Variant, load: Load) -> None:
    case, status = CAUGHT[kernel.name, variant.name]
    cases = [each for each in kernel.cases if each.name in (case, "headline")]
    outcomes = _outcomes(kernel, variant, load, cases, range(2))
    assert outcomes[case].status is status, outcomes[case].message
    if variant.name in RIGHT_AT_HEADLINE:
        assert outcomes["headline"].status is Status.PASSED, outcomes["headline"].message


@pytest.mark.parametrize("kernel", [pytest.param(each, id=each.name) for each in KERNELS])
def test_controls_say_what_is_wrong_with_them(kernel: Kernel) -> None:
    for control in kernel.controls:
        assert control.path is not None
        head = control.path.read_text(encoding="utf-8").splitlines()[:5]
        assert any(line.startswith(("// Wrong: ", '"""Wrong: ')) for line in head), control.path
