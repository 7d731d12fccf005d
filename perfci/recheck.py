"""What is looked at once a cell has been timed: whether what was timed was the kernel's work.

A variant that is right when it is checked may yet answer from memory when it is timed: its inputs
are few and come round again. Hence calls by themselves, on inputs that it has not seen, with all
outputs wiped before; and, to catch an answer by content, their latency beside that on inputs
which it has seen.
"""

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from perfci.check import Subject, WrongError, draw, find_truth, judge, synchronise
from perfci.entry import Call
from perfci.history.model import Status
from perfci.inputs import Arguments
from perfci.outputs import GuardedOutputs

_ALONE = 2
_SEED_BITS = 48
_MOST_ROUNDS = 15
_FEWEST_ROUNDS = 5
_BUDGET_S = 0.3
_REMEMBERED = 1.5
"""How many times as long a call on new inputs must take for the others to be from memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedSets:
    """The sets of arguments and outputs that took turns while a cell was timed, and their calls."""

    arguments: Sequence[Arguments]
    outputs: Sequence[GuardedOutputs]
    calls: Sequence[Call]


def recheck(subject: Subject, sets: TimedSets, left: Sequence[object]) -> None:
    """Judge what the timers left of the first set, then calls alone on inputs never seen before.

    ``left`` is what each timer's last call of the first set returned. Of the calls no two are of
    one set, so that one that does the work of all is not every one of them; which they are is
    chosen only now. Raises WrongError.
    """
    synchronise(subject.device)
    if left:
        truth = find_truth(subject, sets.arguments[0])
        for returned in left:
            judge(subject, returned, truth)
    for index in random.sample(range(len(sets.calls)), k=min(_ALONE, len(sets.calls))):
        refill(sets.arguments[index], draw(subject, random.getrandbits(_SEED_BITS)))
        for each in sets.outputs:
            each.poison()
        returned = sets.calls[index]()
        synchronise(subject.device)
        judge(subject, returned, find_truth(subject, sets.arguments[index]))
    if any(each.is_overrun() for each in sets.outputs):
        raise WrongError(Status.WRONG_VALUES, "writes outside of its output")


def find_memory(subject: Subject, sets: TimedSets, seen_seed: int) -> str:
    """How much longer a call takes on inputs never seen before; empty where it does not.

    Afterwards the first set is as it was.

    Both kinds are written to the same place right before the call, and follow a call on what was
    seen, so that they differ in nothing but whether the contents have been there before.
    """
    seen, given, call = draw(subject, seen_seed), sets.arguments[0], sets.calls[0]
    shortest_ns = {True: float("inf"), False: float("inf")}
    end_s = time.monotonic() + _BUDGET_S
    for count in range(_MOST_ROUNDS):
        if count >= _FEWEST_ROUNDS and time.monotonic() > end_s:
            break
        for is_new in (False, True):
            fresh = draw(subject, random.getrandbits(_SEED_BITS))
            refill(given, seen)
            call()
            refill(given, fresh if is_new else seen)
            taken_ns = _call_ns(subject, call)
            shortest_ns[is_new] = min(shortest_ns[is_new], taken_ns)
    refill(given, seen)
    call()
    ratio = shortest_ns[True] / shortest_ns[False]
    if ratio <= _REMEMBERED:
        return ""
    return f"takes {ratio:.1f} times as long on inputs that it has not seen: it remembers outputs"


def refill(arguments: Arguments, source: Arguments) -> None:
    """Write other contents to where arguments are."""
    for name, value in arguments.items():
        original = source[name]
        if isinstance(value, Tensor) and isinstance(original, Tensor):
            value.copy_(original)


def kept(returned: object) -> object:
    """A copy of what a call returned, as far as it is plain tensors, before it is overwritten."""
    if type(returned) is Tensor:
        return torch.clone(returned)
    if isinstance(returned, tuple | list):
        return tuple(kept(each) for each in returned)
    return returned


def _call_ns(subject: Subject, call: Call) -> float:
    synchronise(subject.device)
    start_ns = time.perf_counter_ns()
    call()
    synchronise(subject.device)
    return float(time.perf_counter_ns() - start_ns)
