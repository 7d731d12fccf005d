"""Whether a variant computes the same, bit by bit, each time that it is called with the same."""

import torch
from torch import Tensor

from perfci import units
from perfci.checking.check import Subject, draw, output_templates, synchronise
from perfci.checking.inputs import as_tuple
from perfci.checking.outputs import GuardedOutputs

REPEATS = 20
_WORDS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def find_variation(subject: Subject, seed: int) -> str:
    """How one of twenty calls with the same inputs differs from the first; empty where none does.

    The variant must have been checked: what it returns is taken to be the reference's tensors.
    """
    outputs = GuardedOutputs(output_templates(subject))
    with torch.no_grad():
        call = subject.entry.bind(draw(subject, seed), outputs.tensors)
        first: tuple[Tensor, ...] = ()
        for count in range(1, REPEATS + 1):
            outputs.poison()
            again = as_tuple(call())
            synchronise(subject.device)
            first = first or tuple(each.clone() for each in again)
            for one, other in zip(first, again, strict=True):
                different = int((_bits(one) != _bits(other)).sum())
                if different:
                    elements = units.count_things(one.numel(), "element")
                    return (
                        f"call {count} of {REPEATS} with the same inputs differs from the first "
                        f"at {units.format_count(different)} of {elements}"
                    )
    return ""


def _bits(value: Tensor) -> Tensor:
    """A tensor's elements as the integers of their bits."""
    return value.reshape(-1).view(_WORDS.get(value.itemsize, torch.uint8))
