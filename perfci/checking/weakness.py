"""Whether a case could tell wrong from right: outputs that are wrong in a common way, judged by it.

Zeros, a constant, the transposed output and the output of other inputs must each be rejected; a
case that accepts one of them proves nothing of a kernel that passes it.
"""

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from perfci.checking.check import Subject, bound_at, draw, find_truth, output_templates, refer
from perfci.checking.numerics import errors, fault, is_rounded
from perfci.declaration import GENERAL_RULE


def find_weakness(subject: Subject, seed: int, other_seed: int) -> str:
    """What the case would accept that is wrong; empty where it rejects all that it should.

    What happens to be right, as a constant where all rows are alike, is not held against it.
    Raises BadCaseError where the reference is none to judge by.
    """
    own = replace(subject, tf32=False, tolerance=GENERAL_RULE)
    output_templates(own)  # which sees that the reference can be gone by
    stale = refer(own, draw(own, other_seed))
    truths = find_truth(own, draw(own, seed))
    for index, truth in enumerate(truths):
        if truth.yardstick.numel() == 0:
            continue
        bound = bound_at(own, truths, index)
        for name, wrong in _wrong_outputs(truth.yardstick, stale[index]):
            off = errors(wrong, truth.judge)
            accepted = not fault(wrong, truth, own=off, bound=bound)
            if accepted and not is_rounded(wrong, truth.yardstick):
                return name
    return ""


def _wrong_outputs(right: Tensor, stale: Tensor) -> Iterator[tuple[str, Tensor]]:
    yield "all zeros", right.new_zeros(()).expand(right.shape)
    # Of all constants the mean is the nearest to what is right.
    mean = right.mean(dtype=torch.float64).to(right.dtype)
    yield "a constant", mean.expand(right.shape)
    yield _moved(right)
    if stale.shape == right.shape:
        yield "the output of other inputs", stale


def _moved(right: Tensor) -> tuple[str, Tensor]:
    """All values at the place of another: the last two dimensions swapped, or shifted by one."""
    if right.dim() > 1:
        transposed = right.transpose(-1, -2).reshape(right.shape)
        if not is_rounded(transposed, right):
            return "the transposed output", transposed
    return "the output shifted by one", right.flatten().roll(1).view(right.shape)
