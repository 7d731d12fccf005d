"""Places in memory: where a variant's code, its arguments and its outputs lie.

How long a small kernel takes whose code and data the L2 no longer has depends on where they lie.
On an H200 copies of one cubin lay 0.01 to 0.04 µs apart, each as far in the next process. A kernel
of 5.8 µs lay 0.01 to 0.04 µs apart with one of its inputs elsewhere, and with its output in one
place of four, in another process of ten, it took 0.05 to 0.44 µs more (2026-11-30). In one place a
figure would be that place's, and of two sides one would seem slower.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from time import monotonic

from perfci.binary.jit import is_compiled_as_it_is
from perfci.checking.check import draw, is_sound, synchronise
from perfci.entry import Entry, load_again
from perfci.shortage import is_shortage
from perfci.workers.side import Side, SideError, blaming

PLACES = 8
"""In how many a variant is read where it and its data can be had so often."""
_MOST_S = 3.0
"""How long loading may take: a library that computes tables when it is loaded has fewer."""
_SMALL_BYTES = 2**24
"""How much the arguments and outputs of a place take at most for each place to have its own."""

Modules = Callable[[], AbstractContextManager[None]]
"""Where one side is loaded, without what another has imported."""


class Places:
    """What has been loaded again in this process, for the next cells of the same variants."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._loaded: dict[tuple[Entry, ...], list[tuple[Entry, ...]]] = {}

    def add(self, sides: Sequence[Side], seeds: Sequence[int], modules: Modules) -> None:
        """Give sides, which are laid out, as many further places each as there could be of all.

        Code that cannot be loaded again stays where it is. ``seeds`` are those of the arguments.
        Raises SideError where a call of a copy leaves a device that nothing can be judged on.
        """
        entries = tuple(side.subject.entry for side in sides)
        if not all(map(_can_be_copied, sides)):
            for _ in range(PLACES - 1 if _is_small(sides[0]) else 0):
                if not _bind(sides, entries, seeds):
                    return
        elif entries in self._loaded:
            for copies in self._loaded[entries]:
                if not _bind(sides, copies, seeds):
                    return
        else:
            self._loaded[entries] = []
            self._loaded[entries].extend(self._load(sides, seeds, modules))

    def _load(
        self, sides: Sequence[Side], seeds: Sequence[int], modules: Modules
    ) -> Iterator[tuple[Entry, ...]]:
        """Copies that have been called once, until one cannot be had.

        A GPU's driver loads code at its first launch. The sides take turns at it, so that their
        code lies in the same part of memory.
        """
        end_s = monotonic() + _MOST_S
        for _ in range(PLACES - 1):
            copies: list[Entry] = []
            for side in sides:
                with suppress(Exception), modules():  # what can be there only once is, once
                    copies.append(load_again(side.build))
            if len(copies) < len(sides) or not self._run(sides, copies, seeds):
                return
            yield tuple(copies)
            if monotonic() > end_s:
                return

    def _run(self, sides: Sequence[Side], copies: Sequence[Entry], seeds: Sequence[int]) -> bool:
        """Whether a copy of each side could be called; the sides have them then."""
        if not _bind(sides, copies, seeds):
            return False
        for side in sides:
            try:
                side.places[-1].calls[0]()
                synchronise(self._device)
            except Exception:
                if not is_sound(self._device):
                    with blaming(side):
                        raise
                for each in sides:
                    each.places.pop()
                return False
        return True


def _bind(sides: Sequence[Side], entries: Sequence[Entry], seeds: Sequence[int]) -> bool:
    """Give each side a place, all on the same memory where that is small; whether there was any."""
    first = sides[0]
    if not _is_small(first):
        for side, entry in zip(sides, entries, strict=True):
            side.add_place(entry, side.places[0].arguments, side.places[0].outputs)
        return True
    try:
        arguments = [draw(first.subject, seed) for seed in seeds]
        outputs = first.make_outputs()
    except Exception as error:
        if is_shortage(error.__cause__ or error):
            return False
        raise SideError(first, error) from error
    for side, entry in zip(sides, entries, strict=True):
        side.add_place(entry, arguments, outputs)
    return True


def _is_small(side: Side) -> bool:
    return len(side.places[0].arguments) * side.set_bytes <= _SMALL_BYTES


def _can_be_copied(side: Side) -> bool:
    """Whether a variant is the same code when it is loaded again, and nothing but that.

    So it is with a library, and a module whose Triton functions are its own and compiled as they
    are. An autotuner or ``torch.compile`` would choose anew, and extensions may register by name
    what a process can have only once.
    """
    kind = side.build.variant.kind
    namespace = side.subject.entry.namespace
    return kind == "c" or (kind == "python" and is_compiled_as_it_is(namespace))
