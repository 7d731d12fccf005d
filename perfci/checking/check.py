"""Output against reference: one verdict a case, with its figures. Method: docs/method.md.

Outputs are poisoned before each call, the kernel runs before and after the reference, each time
on inputs that it has not seen, and its inputs must be unchanged after.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from perfci import units
from perfci.checking.inputs import (
    Arguments,
    Reference,
    as_float64,
    as_tuple,
    call_wanted,
    case_arguments,
    describe,
    draw_inputs,
    empty_like,
    snapshot,
)
from perfci.checking.numerics import (
    Allowance,
    Bound,
    Errors,
    Truth,
    allowance,
    errors,
    fault,
    frozen_bound,
    pinned_precision,
    sizes,
    yardstick_bound,
)
from perfci.checking.outputs import GuardedOutputs, kept
from perfci.declaration import GENERAL_RULE, Tolerance
from perfci.entry import Entry, KernelError
from perfci.error_bounds import BOUNDS_FILE, Bounds
from perfci.history.model import Direction, Metric, Status
from perfci.kernel import Case, Kernel
from perfci.outcome import Outcome
from perfci.shortage import is_shortage

_PRODUCER_CYCLES = 1_000_000
_REPEATABLE = 0.05
"""How far, of its largest value, a reference may be from itself: sums in another order, no more."""
REFUSALS = (ValueError, RuntimeError, TypeError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What should be computed: a kernel's reference, at which case, on what."""

    reference: Reference
    kernel: Kernel
    case: Case
    device: str
    tf32: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject(Problem):
    """What is checked: a loaded variant, and the ``tolerance`` that it declares."""

    entry: Entry
    tolerance: Tolerance = GENERAL_RULE

    @property
    def frozen(self) -> Bounds | None:
        """What is frozen of the case here; None where the library has TF32 on purpose."""
        kind = "cpu" if self.device == "cpu" else "cuda"
        return None if self.tf32 else self.kernel.frozen.get((kind, self.case.name))


class WrongError(Exception):
    """A kernel's output is wrong: the status, the reason and the errors of its row."""

    def __init__(
        self, status: Status, message: str, figures: Mapping[str, float] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.figures = figures or {}


class BadCaseError(Exception):
    """The case itself cannot be judged: its reference is not finite, or fails."""


def check(subject: Subject, seeds: Iterable[int]) -> Outcome:
    """Judge a variant at a case, once for each seed."""
    case = subject.case
    worst: dict[str, float] = {}
    try:
        templates = output_templates(subject)
        for seed in seeds:
            _check_once(subject, seed, templates, worst)
    except WrongError as wrong:
        _raise_to(worst, wrong.figures)
        return Outcome(status=wrong.status, message=wrong.message, metrics=_metrics(subject, worst))
    except BadCaseError as bad:
        return Outcome(status=Status.RUNTIME_ERROR, message=str(bad))
    except REFUSALS as refusal:
        layout_matters = case.layout != "contiguous" and not is_shortage(refusal)
        if layout_matters and is_sound(subject.device):
            message = f"refuses {case.layout} inputs: {describe(refusal)}"
            return Outcome(status=Status.SKIPPED, message=message)
        message = str(refusal) if isinstance(refusal, KernelError) else describe(refusal)
        return Outcome(status=Status.RUNTIME_ERROR, message=message)
    return Outcome(status=Status.PASSED, metrics=_metrics(subject, worst))


def _check_once(
    subject: Subject, seed: int, templates: Sequence[Tensor], worst: dict[str, float]
) -> None:
    """Judge calls on the inputs of one seed, of which no tensor outlives this."""
    arguments = draw(subject, seed)
    before = _called(subject, arguments, templates)
    truths = find_truth(subject, arguments)
    after = _called(subject, arguments, templates, delayed=True)
    for outputs in (before, after):
        _raise_to(worst, judge(subject, outputs, truths))


def output_templates(problem: Problem) -> tuple[Tensor, ...]:
    """Outputs of the right shapes and dtypes, computed from inputs that are not used again.

    Raises BadCaseError where the reference is none to judge by: where it changes its inputs, or
    computes something else the second time.
    """
    arguments = draw(problem, 0)
    kept = snapshot(arguments)
    outputs = tuple(each.clone() for each in refer(problem, arguments))
    if changed := changed_input(arguments, kept):
        raise BadCaseError(f"the reference changes its input '{changed}'")
    for first, again in zip(outputs, refer(problem, arguments), strict=True):
        if not _alike(first, again):
            raise BadCaseError("the reference computes something else the second time")
    return tuple(torch.empty_like(each) for each in outputs)


def find_truth(problem: Problem, arguments: Arguments) -> tuple[Truth, ...]:
    """What each output should be for some arguments; BadCaseError where that is not usable."""
    yardsticks = refer(problem, arguments)
    exact = refer(problem, as_float64(arguments))
    judges = tuple(each.double() for each in exact)
    if [each.shape for each in judges] != [each.shape for each in yardsticks]:
        raise BadCaseError("the reference returns other shapes in float64 than in the case's dtype")
    for truth, yard in zip(judges, yardsticks, strict=True):
        if bool((torch.isfinite(truth) != torch.isfinite(yard)).any()):
            raise BadCaseError("the reference is finite in float64 and not in the case's dtype")
    dtypes = [each.dtype for each in yardsticks]
    allowed = _allowances(problem, arguments, judges, dtypes)
    return tuple(
        Truth(judge=truth, yardstick=yard, allowed=each)
        for truth, yard, each in zip(judges, yardsticks, allowed, strict=True)
    )


def _allowances(
    problem: Problem,
    arguments: Arguments,
    judges: Sequence[Tensor],
    dtypes: Sequence[torch.dtype],
) -> list[Allowance]:
    """What rounding allows each output; BadCaseError where the reference does not say so."""
    reference, depth = problem.reference, 1
    magnitudes: Sequence[Tensor | None] = [None] * len(judges)
    # What the reference raises is its own, and no refusal of the variant's.
    try:
        if reference.magnitude is not None:
            stated = as_tuple(reference.magnitude(*as_float64(arguments).values()))
            magnitudes = [each.expand_as(own) for each, own in zip(stated, judges, strict=True)]
        if reference.depth is not None:
            depth = call_wanted(reference.depth, case_arguments(problem.case))
        return [
            allowance(judge, magnitude, depth=depth, dtype=dtype)
            for judge, magnitude, dtype in zip(judges, magnitudes, dtypes, strict=True)
        ]
    except Exception as error:
        raise BadCaseError(
            f"the reference's magnitude or depth cannot be gone by: {describe(error)}"
        ) from error


def judge(subject: Subject, outputs: object, truths: Sequence[Truth]) -> dict[str, float]:
    """The errors of outputs by metric name; WrongError where they are not right."""
    actual = _plain_tensors(outputs, [each.yardstick for each in truths])
    figures: dict[str, float] = {}
    for index, (each, truth) in enumerate(zip(actual, truths, strict=True)):
        own = errors(each, truth.judge)
        _widen(figures, "", own)
        _widen(figures, "yardstick_", truth.yardstick_errors)
        if wrong := fault(each, truth, own=own, bound=bound_at(subject, truths, index)):
            prefix = f"output {index}: " if len(actual) > 1 else ""
            raise WrongError(Status.WRONG_VALUES, prefix + wrong, figures)
    return figures


def bound_at(subject: Subject, truths: Sequence[Truth], index: int) -> Bound:
    """How far one output may be off at the inputs that the truths are of."""
    tolerance = subject.kernel.tolerance(subject.case.dtype).tightened(subject.tolerance)
    frozen = subject.frozen
    if frozen is None:
        outliers = subject.case.distribution == "outliers"
        return yardstick_bound(truths[index], tolerance=tolerance, outliers=outliers)
    if len(frozen.outputs) != len(truths):
        bounded = units.count_things(len(frozen.outputs), "output")
        raise BadCaseError(
            f"{BOUNDS_FILE} bounds {bounded}, the reference has "
            f"{len(truths)}; freeze again: perfci check --freeze"
        )
    return frozen_bound(frozen.outputs[index], truths[index].allowed, tolerance=tolerance)


def refer(problem: Problem, arguments: Arguments) -> tuple[Tensor, ...]:
    """What the reference returns for arguments; BadCaseError where it fails."""
    try:
        with pinned_precision(tf32=problem.tf32), torch.no_grad():
            return as_tuple(problem.reference.reference(*arguments.values()))
    except Exception as error:
        raise BadCaseError(f"the reference fails: {describe(error)}") from error


def _called(
    subject: Subject,
    arguments: Arguments,
    templates: Sequence[Tensor],
    *,
    delayed: bool = False,
) -> object:
    """What the variant returns for arguments; WrongError where it wrote what is not its own.

    With ``delayed``, on a GPU, it is called on a side stream before its inputs are there, so that
    work on any other stream reads the wrong ones.
    """
    outputs = GuardedOutputs(templates)
    with torch.no_grad():
        if delayed and subject.device != "cpu" and subject.case.layout == "contiguous":
            given, kept = empty_like(arguments), arguments
            returned = _call_behind_producer(subject, given, arguments, outputs)
        else:
            given, kept = arguments, snapshot(arguments)
            returned = subject.entry.bind(given, outputs.tensors)()
    synchronise(subject.device)
    if changed := changed_input(given, kept):
        raise WrongError(Status.WRONG_VALUES, f"changes its input '{changed}'")
    if outputs.is_overrun():
        raise WrongError(Status.WRONG_VALUES, "writes outside of its output")
    return returned


def _call_behind_producer(
    subject: Subject, given: Arguments, source: Arguments, outputs: GuardedOutputs
) -> object:
    """Call on a side stream that first waits and then fills the given inputs from the source."""
    side = torch.cuda.Stream(subject.device)
    side.wait_stream(torch.cuda.current_stream(subject.device))
    with torch.cuda.stream(side):
        call = subject.entry.bind(given, outputs.tensors)
        torch.cuda._sleep(_PRODUCER_CYCLES)  # noqa: SLF001
        for name, value in given.items():
            original = source[name]
            if isinstance(value, Tensor) and isinstance(original, Tensor):
                value.copy_(original)
        # As whoever comes next on this stream finds it, which is too early for work on another.
        returned: object = kept(call())
    torch.cuda.current_stream(subject.device).wait_stream(side)
    return returned


def draw(problem: Problem, seed: int) -> Arguments:
    """The case's arguments of a seed; BadCaseError where they cannot be made."""
    try:
        return draw_inputs(problem.reference, problem.case, device=problem.device, seed=seed)
    except Exception as error:
        raise BadCaseError(f"the inputs cannot be made: {describe(error)}") from error


def changed_input(given: Arguments, kept: Arguments) -> str:
    """The name of the first argument that is not what was kept of it; empty where all are."""
    for name, value in given.items():
        original = kept[name]
        if (
            isinstance(value, Tensor)
            and isinstance(original, Tensor)
            and not (value.shape == original.shape and _identical(value, original))
        ):
            return name
    return ""


def _alike(first: Tensor, again: Tensor) -> bool:
    """Whether two outputs of one reference differ by no more than the order of its sums."""
    if first.shape != again.shape or first.dtype != again.dtype:
        return False
    if not bool((torch.isfinite(first) == torch.isfinite(again)).all()):
        return False
    return errors(again, first).max_abs <= _REPEATABLE * sizes(first).max_abs


def _identical(value: Tensor, original: Tensor) -> bool:
    """Whether all elements are equal, NaN to NaN."""
    same = (value == original) | ((value != value) & (original != original))  # noqa: PLR0124
    return bool(same.all())


def synchronise(device: str) -> None:
    """Wait until the device has done what it was given."""
    if device != "cpu":
        torch.cuda.synchronize(device)


def is_sound(device: str) -> bool:
    """Whether the device can go on in this process; after a fault on a GPU it cannot."""
    try:
        synchronise(device)
    except RuntimeError:
        return False
    return True


def _plain_tensors(outputs: object, expected: Sequence[Tensor]) -> tuple[Tensor, ...]:
    actual = (outputs,) if isinstance(outputs, Tensor) else outputs
    if not isinstance(actual, tuple | list) or len(actual) != len(expected):
        count = len(actual) if isinstance(actual, tuple | list) else type(outputs).__name__
        wanted_count = units.count_things(len(expected), "tensor")
        raise WrongError(Status.WRONG_SHAPE, f"returned {count}, not {wanted_count}")
    for each, wanted in zip(actual, expected, strict=True):
        if type(each) is not Tensor:
            raise WrongError(
                Status.WRONG_SHAPE, f"returned a {type(each).__name__}, not a plain tensor"
            )
        _same(Status.WRONG_SHAPE, "shape", tuple(each.shape), tuple(wanted.shape))
        _same(Status.WRONG_DTYPE, "dtype", each.dtype, wanted.dtype)
        _same(Status.WRONG_SHAPE, "device", each.device, wanted.device)
        _same(Status.WRONG_SHAPE, "layout", each.layout, torch.strided)
    return tuple(actual)


def _same(status: Status, what: str, actual: object, wanted: object) -> None:
    if actual != wanted:
        raise WrongError(status, f"returned {what} {actual}, not {wanted}")


def _widen(figures: dict[str, float], prefix: str, own: Errors) -> None:
    named = {
        "max_abs_error": own.max_abs,
        "mean_abs_error": own.mean_abs,
        "rms_error": own.rms,
        "max_rel_error": own.max_rel,
    }
    _raise_to(figures, {prefix + name: value for name, value in named.items()})


def _raise_to(worst: dict[str, float], figures: Mapping[str, float]) -> None:
    for name, value in figures.items():
        known = worst.get(name, 0.0)
        # NaN is larger than nothing, and yet the worst of all.
        worst[name] = value if math.isnan(value) or value > known else known


def _metrics(subject: Subject, worst: dict[str, float]) -> tuple[Metric, ...]:
    """The largest errors over all seeds, and what the case moves and does at the least."""
    known = case_arguments(subject.case)
    counted: dict[str, tuple[Callable[..., int], str]] = {
        "bytes_moved": (subject.reference.bytes_moved, "B"),
        "flops": (subject.reference.flops, ""),
    }
    figures = [
        Metric(name=name, value=value, unit="")
        for name, value in worst.items()
        if math.isfinite(value)
    ]
    return (
        *figures,
        *(
            Metric(
                name=name,
                value=_counted(name, call_wanted(count, known)),
                unit=unit,
                direction=Direction.NEUTRAL,
            )
            for name, (count, unit) in counted.items()
        ),
    )


def _counted(name: str, value: object) -> float:
    """A count as a metric's value; BadCaseError where it is none."""
    if not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise BadCaseError(f"{name} returned {value!r}, which counts nothing")
    return float(value)
