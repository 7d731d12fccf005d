"""Every shipped variant is right, and every control is caught, by perfci's own check."""

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from perfci.checking.check import Subject, check
from perfci.checking.controls import REJECTIONS
from perfci.checking.inputs import load_reference
from perfci.entry import Entry
from perfci.history.model import Status
from perfci.kernel import Case, Kernel, Variant, discover, skip_reason
from perfci.outcome import Outcome

KERNELS = discover(Path(__file__).parents[2] / "kernels")
Load = Callable[[str, str], Entry]

# What a control of such a name is rejected as, whatever the kernel.
NAMED = {"broadcast_shape": Status.WRONG_SHAPE, "float64_output": Status.WRONG_DTYPE}
# The case that a control needs which is right on the beaten track.
RIGHT_AT_HEADLINE = {
    ("mla_kv_projection", "odd_tail"): "odd",
    ("mla_kv_projection", "strides_ignored"): "strided",
    ("mla_attention", "odd_tail"): "odd",
    ("mla_attention", "no_maximum"): "large",
}


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


def _cases(kernel: Kernel, variant: Variant) -> list[Case]:
    """The cases of a variant on a CPU, those that are only checked, and small, first."""
    cases = [
        case
        for case in kernel.cases
        if "cpu" in case.devices and not skip_reason(variant, case, "cpu")
    ]
    return sorted(cases, key=lambda case: case.timed)


@pytest.mark.parametrize(("kernel", "variant"), _with_variants("variants"))
def test_variant_is_right_at_every_case(kernel: Kernel, variant: Variant, load: Load) -> None:
    cases = _cases(kernel, variant)
    assert len(cases) > 10
    outcomes = _outcomes(kernel, variant, load, cases, range(10, 13))
    wrong = {case: o.message for case, o in outcomes.items() if o.status is not Status.PASSED}
    assert not wrong


@pytest.mark.parametrize(("kernel", "control"), _with_variants("controls"))
def test_control_is_rejected_by_a_case(kernel: Kernel, control: Variant, load: Load) -> None:
    accepted = []
    for case in _cases(kernel, control):
        (outcome,) = _outcomes(kernel, control, load, [case], range(2)).values()
        if outcome.status in REJECTIONS:
            assert outcome.status is NAMED.get(control.name, outcome.status), outcome.message
            return
        accepted.append(case.name)
    pytest.fail(f"accepted by {', '.join(accepted) or 'no case, since none is for it'}")


@pytest.mark.parametrize(("kernel", "control"), RIGHT_AT_HEADLINE)
def test_control_that_is_right_at_the_headline_needs_its_case(
    kernel: str, control: str, shipped: dict[str, Kernel], load: Load
) -> None:
    known = shipped[kernel]
    (variant,) = (each for each in known.controls if each.name == control)
    case = RIGHT_AT_HEADLINE[kernel, control]
    cases = [each for each in known.cases if each.name in (case, "headline")]
    outcomes = _outcomes(known, variant, load, cases, range(2))
    assert {name: each.status for name, each in outcomes.items()} == {
        "headline": Status.PASSED,
        case: Status.WRONG_VALUES,
    }


@pytest.mark.parametrize("kernel", [pytest.param(each, id=each.name) for each in KERNELS])
def test_controls_say_what_is_wrong_with_them(kernel: Kernel) -> None:
    for control in kernel.controls:
        assert control.path is not None
        head = control.path.read_text(encoding="utf-8").splitlines()[:5]
        assert any(line.startswith(("// Wrong: ", '"""Wrong: ')) for line in head), control.path
