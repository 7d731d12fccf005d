"""Every shipped variant is right, and every control is caught, by perfci's own check."""

from collections.abc import Callable
from pathlib import Path

import pytest

from perfci.check import Subject, check
from perfci.entry import Entry
from perfci.history.model import Status
from perfci.inputs import load_reference
from perfci.kernel import Kernel, discover, skip_reason
from perfci.outcome import Outcome

KERNELS = discover(Path(__file__).parents[2] / "kernels")
Load = Callable[[str, str], Entry]

# The case that catches a control, where not every case does, and as what.
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
RIGHT_AT_HEADLINE = ("odd_tail", "strides_ignored", "no_maximum")


def _outcomes(kernel: Kernel, name: str, load: Load, seeds: range) -> dict[str, Outcome]:
    known = (*kernel.variants, *kernel.controls)
    variant = next(each for each in known if each.name == name)
    reference, entry = load_reference(kernel), load(kernel.name, name)
    return {
        case.name: check(
            Subject(entry=entry, reference=reference, kernel=kernel, case=case, device="cpu"),
            seeds,
        )
        for case in kernel.cases
        if "cpu" in case.devices and not skip_reason(variant, case, "cpu")
    }


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        pytest.param(kernel, each.name, id=f"{kernel.name}-{each.name}")
        for kernel in KERNELS
        for each in kernel.variants
        if "cpu" in each.declaration.devices and not each.declaration.compiles
    ],
)
def test_variant_is_right_at_every_case(kernel: Kernel, name: str, load: Load) -> None:
    outcomes = _outcomes(kernel, name, load, range(10, 13))
    assert len(outcomes) > 10
    wrong = {case: o.message for case, o in outcomes.items() if o.status is not Status.PASSED}
    assert not wrong


def test_every_control_has_a_case_that_catches_it() -> None:
    controls = {(kernel.name, each.name) for kernel in KERNELS for each in kernel.controls}
    assert controls == set(CAUGHT)


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        pytest.param(kernel, each.name, id=f"{kernel.name}-{each.name}")
        for kernel in KERNELS
        for each in kernel.controls
    ],
)
def test_control_is_caught(kernel: Kernel, name: str, load: Load) -> None:
    case, status = CAUGHT[kernel.name, name]
    outcomes = _outcomes(kernel, name, load, range(2))
    assert outcomes[case].status is status, outcomes[case].message
    if name in RIGHT_AT_HEADLINE:
        assert outcomes["headline"].status is Status.PASSED, outcomes["headline"].message


@pytest.mark.parametrize("kernel", [pytest.param(each, id=each.name) for each in KERNELS])
def test_controls_say_what_is_wrong_with_them(kernel: Kernel) -> None:
    for control in kernel.controls:
        assert control.path is not None
        head = control.path.read_text(encoding="utf-8").splitlines()[0]
        assert head.startswith(("// Wrong: ", '"""Wrong: ')), control.path
