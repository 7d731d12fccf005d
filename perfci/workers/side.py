"""One side of a cell while it is timed: what is called, what was read, and what was its fault."""

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from torch import Tensor

from perfci.build import Build
from perfci.checking.check import Subject, output_templates, synchronise
from perfci.checking.inputs import Arguments, count_bytes
from perfci.checking.outputs import GuardedOutputs, kept, wipe
from perfci.checking.recheck import Place
from perfci.entry import Entry
from perfci.outcome import Outcome, Timing
from perfci.timers import TIMERS, Reader, Where, Workload, timer
from perfci.workers.footprint import add_footprint

_LEFT_BYTES = 2**24
"""How much of what one timer has left is kept, but for one call's outputs, however large."""


@dataclass(slots=True, kw_only=True)
class Side:
    """One build of a cell while it is timed: what is called, and what was read."""

    number: int
    build: Build
    subject: Subject
    templates: tuple[Tensor, ...] = ()
    places: list[Place] = field(default_factory=list)
    set_bytes: int = 0
    timings: list[Timing] = field(default_factory=list)
    invalid: list[tuple[str, str]] = field(default_factory=list)
    left: list[object] = field(default_factory=list)
    where: Sequence[Where] = ()

    def lay_out(self, arguments: Sequence[Arguments]) -> None:
        """Bind arguments, which another side may have too, to outputs of its own."""
        self.templates = output_templates(self.subject)
        self.set_bytes = count_bytes([*arguments[0].values(), *self.templates])
        outputs = [GuardedOutputs(self.templates) for _ in arguments]
        self.add_place(self.subject.entry, arguments, outputs)

    def make_outputs(self) -> list[GuardedOutputs]:
        """Where calls of another place may write."""
        return [GuardedOutputs(self.templates) for _ in self.places[0].outputs]

    def add_place(
        self, entry: Entry, arguments: Sequence[Arguments], outputs: Sequence[GuardedOutputs]
    ) -> None:
        """Have the calls of an entry on arguments and outputs, behind those that are there."""
        calls = [
            entry.bind(each, into.tensors) for each, into in zip(arguments, outputs, strict=True)
        ]
        self.places.append(Place(arguments=arguments, outputs=outputs, calls=calls))

    def open_reader(self, name: str) -> Reader:
        """What reads this side by a timer; what goes wrong in it is this side's."""
        first, *others = self.places
        workload = Workload(
            calls=first.calls,
            set_bytes=self.set_bytes,
            device=self.subject.device,
            poison=lambda returned: _wipe(first.outputs[0], returned, first.arguments[0]),
            elsewhere=[each.calls for each in others],
        )
        with blaming(self):
            reader = timer(name).open_reader(workload)

        def call() -> None:
            with blaming(self):
                reader.call()

        def read() -> list[float]:
            with blaming(self):
                return reader.read()

        return replace(reader, call=call, read=read)

    def keep_left(self, reader: Reader) -> None:
        """Keep what a timer has left of the first set, to be judged once all have read, and where.

        Of graphs it is what each writes alone; of large outputs, of some that are chosen only now.
        """
        synchronise(self.subject.device)
        if not reader.replays and self.subject.entry.writes_outputs:
            self.left.append(kept(self.places[0].outputs[0].tensors))
        fitting = max(1, _LEFT_BYTES // max(1, count_bytes(self.templates)))
        for replay in random.sample(reader.replays, k=min(fitting, len(reader.replays))):
            self.left.append(kept(replay()))
        self.where = reader.where or self.where

    def places_as_read(self) -> list[Place]:
        """The places, each with the streams that it was read on.

        The first once more as it is, where other timers read it: on the stream of whoever calls.
        """
        if not self.where:
            return self.places
        on_streams = [
            replace(place, where=each) for place, each in zip(self.places, self.where, strict=True)
        ]
        return [*on_streams, self.places[0]]

    def add_footprint(self, checked: Outcome) -> Outcome:
        """The outcome with what a call launches, and whatever else its run has left to see."""
        return add_footprint(
            checked,
            self.places[0].calls[0],
            entry=self.subject.entry,
            build=self.build,
            outputs=self.templates,
            on_gpu=self.subject.device != "cpu",
        )


class SideError(Exception):
    """What went wrong, and with which side."""

    def __init__(self, side: Side, cause: Exception) -> None:
        super().__init__(str(cause))
        self.side = side
        self.cause = cause


@contextmanager
def blaming(side: Side) -> Iterator[None]:
    """Say of what goes wrong that it is a side's."""
    try:
        yield
    except Exception as error:
        raise SideError(side, error) from error


def said_of(side: Side, blamed: SideError) -> str:
    """What a row says of a reason for which its cell has no latency: whose it is."""
    return str(blamed) if side is blamed.side else said_by_other(str(blamed))


def said_by_other(reason: str) -> str:
    """What a row says of a reason that is the other side's."""
    return f"the other side {reason}"


def refuse(side: Side, names: Sequence[str], reason: str) -> None:
    """Drop what was read of a cell, and say why of each timer."""
    side.timings.clear()
    side.left.clear()
    side.invalid[:] = [(TIMERS[name].contract.label, reason) for name in names]


def _wipe(outputs: GuardedOutputs, returned: object, arguments: Arguments) -> None:
    """Poison what a call has written and what it returned, but for views of its arguments."""
    outputs.poison()
    given = {
        each.untyped_storage().data_ptr() for each in arguments.values() if isinstance(each, Tensor)
    }
    for each in returned if isinstance(returned, tuple | list) else (returned,):
        if isinstance(each, Tensor) and each.untyped_storage().data_ptr() not in given:
            wipe(each)
