"""What is looked at once a cell has been timed: whether what was timed was the kernel's work.

A variant that is right when it is checked may yet answer from memory when it is timed: its inputs
are few and come round again. Hence calls by themselves, on inputs that it has not seen, with all
outputs wiped before; and, to catch an answer by content, their latency beside that on inputs
which it has seen.
"""

import math
import random
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from time import monotonic, perf_counter_ns

from torch import Tensor

from perfci.checking.check import (
    Subject,
    WrongError,
    changed_input,
    draw,
    find_truth,
    judge,
    synchronise,
)
from perfci.checking.inputs import Arguments
from perfci.checking.numerics import Truth
from perfci.checking.outputs import GuardedOutputs
from perfci.entry import Call
from perfci.history.model import Status

_ALONE = 2
_SEED_BITS = 48
_MOST_ROUNDS = 15
_FEWEST_ROUNDS = 5
_LOOKS = 3
_BUDGET_S = 0.3
_REMEMBERED = 1.5
"""How many times as long a call on new inputs must take for the others to be from memory."""
_OVERRUN = "writes outside of its output"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where code and data lie while a cell is timed: sets of arguments, and a call on each.

    Some variants write to ``outputs``, which several places may have in common, as arguments.
    ``where`` is on which stream calls are made, as a context: another one each time.
    """

    arguments: Sequence[Arguments]
    outputs: Sequence[GuardedOutputs]
    calls: Sequence[Call]
    where: Callable[[], AbstractContextManager[None]] = nullcontext


def find_trespass(subject: Subject, places: Sequence[Place], seeds: Sequence[int]) -> str:
    """What was written to while a cell was timed that is no output, in words; empty where nothing.

    An argument that is no longer what was drawn from its seed, or memory beside an output. What a
    variant leaves alone when it is checked it may yet make easier for itself when timed. Of the
    first place's outputs, which are of one side, ``judge_alone`` tells.
    """
    synchronise(subject.device)
    for index, seed in enumerate(seeds):
        given = [place.arguments[index] for place in places]
        if changed := _changed_anywhere(given, draw(subject, seed)):
            return f"changes its input '{changed}'"
    return _OVERRUN if _is_overrun(places[1:]) else ""


def _changed_anywhere(given: Sequence[Arguments], kept: Arguments) -> str:
    """The name of an argument that is not what was kept, of those that several places may share."""
    distinct = {id(each): each for each in given}
    return next(filter(None, (changed_input(each, kept) for each in distinct.values())), "")


def judge_left(subject: Subject, left: Sequence[object], seed: int) -> None:
    """Judge what each timer's last call of the first set returned, whose inputs are of a seed.

    Raises WrongError.
    """
    if left:
        truths = find_truth(subject, draw(subject, seed))
        for returned in left:
            judge(subject, returned, truths)


def judge_alone(subject: Subject, places: Sequence[Place]) -> None:
    """Judge calls by themselves on inputs never seen before.

    In every place one, on outputs that are wiped before. In the first place one more, of another
    set, so that one that does the work of all is not both; its output is right before, but of other
    inputs, for those that leave alone what is there already. Which sets they are is chosen only
    now. They are made where calls were timed: a call can know the stream that it is made on.
    What was written beside outputs while others took turns on them is nobody's to answer for: the
    first place has its own. Raises WrongError.
    """
    first = places[0]
    _require_inside(first)
    count = len(first.arguments)
    wiped, *written = random.sample(range(count), k=min(_ALONE, count))
    _judge_wiped(subject, places, wiped)
    for index in written:
        _judge_written(subject, first, index)


def _judge_wiped(subject: Subject, places: Sequence[Place], index: int) -> None:
    """Judge a call in every place, on outputs that are wiped before."""
    fresh = draw(subject, random.getrandbits(_SEED_BITS))
    truths = find_truth(subject, fresh)
    for place in places:
        _wipe(place)
        _judge_call(subject, place, index, fresh, truths)


def _judge_written(subject: Subject, place: Place, index: int) -> None:
    """Judge a call in one place, on an output that is right, but of other inputs."""
    fresh = draw(subject, random.getrandbits(_SEED_BITS))
    truths = find_truth(subject, fresh)
    with place.where():
        place.calls[index]()
    _judge_call(subject, place, index, fresh, truths)


def _judge_call(
    subject: Subject, place: Place, index: int, fresh: Arguments, truths: Sequence[Truth]
) -> None:
    """Judge one call on contents that are written to its arguments before. Raises WrongError."""
    given = place.arguments[index]
    refill(given, fresh)
    with place.where():
        returned = place.calls[index]()
    synchronise(subject.device)
    if changed := changed_input(given, fresh):
        raise WrongError(Status.WRONG_VALUES, f"changes its input '{changed}'")
    judge(subject, returned, truths)
    _require_inside(place)


def _wipe(place: Place) -> None:
    for each in place.outputs:
        each.poison()


def _require_inside(place: Place) -> None:
    """WrongError where something was written before or behind an output."""
    if _is_overrun([place]):
        raise WrongError(Status.WRONG_VALUES, _OVERRUN)


def _is_overrun(places: Sequence[Place]) -> bool:
    """Whether something was written before or behind an output."""
    outputs = {id(each): each for place in places for each in place.outputs}
    return any(each.is_overrun() for each in outputs.values())


def find_memory(subject: Subject, places: Sequence[Place], seen_seed: int) -> str:
    """How much longer a call takes on inputs never seen before; empty where it does not.

    It is a call in a place that is chosen only now. What else the machine does can look
    so once, but not three times in a row.
    """
    seen, ratio = draw(subject, seen_seed), math.inf
    (place,) = random.sample(places, k=1)
    for _ in range(_LOOKS):
        ratio = min(ratio, _ratio_of_new_to_seen(subject, place, seen))
        if ratio <= _REMEMBERED:
            break
    if ratio <= _REMEMBERED:
        return ""
    return f"takes {ratio:.1f} times as long on inputs that it has not seen: it remembers outputs"


def _ratio_of_new_to_seen(subject: Subject, place: Place, seen: Arguments) -> float:
    """How long a call takes on new contents, over how long on what was seen; the shortest of each.

    Both kinds are written to the same place right before the call, and follow a call on what was
    seen, so that they differ in nothing but whether the contents have been there before.
    """
    given, call = place.arguments[0], place.calls[0]
    shortest_ns = {True: math.inf, False: math.inf}
    end_s = monotonic() + _BUDGET_S
    for count in range(_MOST_ROUNDS):
        if count >= _FEWEST_ROUNDS and monotonic() > end_s:
            break
        for is_new in (False, True):
            fresh = draw(subject, random.getrandbits(_SEED_BITS))
            with place.where():
                refill(given, seen)
                call()
                refill(given, fresh if is_new else seen)
                shortest_ns[is_new] = min(shortest_ns[is_new], _call_ns(subject, call))
    return shortest_ns[True] / shortest_ns[False]


def refill(arguments: Arguments, source: Arguments) -> None:
    """Write other contents to where arguments are."""
    for name, value in arguments.items():
        original = source[name]
        if isinstance(value, Tensor) and isinstance(original, Tensor):
            value.copy_(original)


def _call_ns(subject: Subject, call: Call) -> float:
    synchronise(subject.device)
    start_ns = perf_counter_ns()
    call()
    synchronise(subject.device)
    return float(perf_counter_ns() - start_ns)
