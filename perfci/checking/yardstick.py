"""How far the library itself is from the float64 judge, at the worst of several inputs."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

from perfci.checking.check import BadCaseError, Problem, draw, find_truth
from perfci.checking.numerics import Truth
from perfci.error_bounds import OutputBound
from perfci.history.model import Status
from perfci.outcome import Outcome


def measure_yardstick(problem: Problem, seeds: Sequence[int]) -> Outcome:
    """The largest errors over inputs of those seeds, as metrics (perfci.error_bounds names them).

    Raises BadCaseError where the reference is none to judge by.
    """
    worst: dict[int, OutputBound] = {}
    with _one_thread():
        for seed in seeds:
            for index, found in enumerate(_bounds(problem, seed)):
                worst[index] = worst[index].widened(found) if index in worst else found
    metrics = [each for index, bound in worst.items() for each in bound.metrics(index)]
    return Outcome(status=Status.PASSED, metrics=tuple(metrics))


@contextmanager
def _one_thread() -> Iterator[None]:
    """Keep the library to one thread, so that what is found depends on no number of cores."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _bounds(problem: Problem, seed: int) -> list[OutputBound]:
    # A function of its own, so that no seed's tensors are kept while the next one's are made.
    return [_bound(each) for each in find_truth(problem, draw(problem, seed))]


def _bound(truth: Truth) -> OutputBound:
    own, allowed = truth.yardstick_errors, truth.allowed
    return OutputBound(
        largest=_over(own.max_abs, allowed.largest),
        rms=_over(own.rms, allowed.rms),
        max_abs_error=own.max_abs,
        rms_error=own.rms,
    )


def _over(error: float, allowed: float) -> float:
    """An error in units of what rounding allows; BadCaseError where that is nothing."""
    if error == 0:
        return 0.0
    if not 0 < allowed < math.inf or not math.isfinite(error):
        raise BadCaseError(
            f"the library is off by {error:.3g} where rounding allows {allowed:.3g}: "
            "no bound can be frozen of that"
        )
    return error / allowed
