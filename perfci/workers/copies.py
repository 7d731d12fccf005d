"""Copies of a variant's code at other places in memory.

How long a kernel takes whose code the L2 no longer has depends on where that code lies: on an H200
copies of one cubin lay 0.01 to 0.04 µs apart, some 0.1 µs, each as far in the next process
(2026-11-30). In one place a figure would be that place's, and of two sides one would seem slower.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from time import monotonic

from perfci.binary.jit import is_compiled_as_it_is
from perfci.checking.check import is_sound, synchronise
from perfci.entry import Entry, load_again
from perfci.workers.side import Side, blaming

COPIES = 8
"""In how many places code is read, the first among them."""
_MOST_S = 3.0
"""How long loading may take: a library that computes tables when it is loaded has fewer."""

Modules = Callable[[], AbstractContextManager[None]]
"""Where one side is loaded, without what another has imported."""


class Copies:
    """What has been loaded again in this process, for the next cells of the same variants."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._loaded: dict[tuple[Entry, ...], list[tuple[Entry, ...]]] = {}

    def add(self, sides: Sequence[Side], modules: Modules) -> None:
        """Give sides, which are laid out, as many copies each as there could be of all.

        Raises SideError where a call of a copy leaves a device that nothing can be judged on.
        """
        entries = tuple(side.subject.entry for side in sides)
        if not all(map(_can_be_copied, sides)):
            return
        if entries in self._loaded:
            for copies in self._loaded[entries]:
                _bind(sides, copies)
            return
        self._loaded[entries] = []
        self._loaded[entries].extend(self._load(sides, modules))

    def _load(self, sides: Sequence[Side], modules: Modules) -> Iterator[tuple[Entry, ...]]:
        """Copies that have been called once, until one cannot be had.

        A GPU's driver loads code at its first launch. The sides take turns at it, so that their
        code lies in the same part of memory.
        """
        end_s = monotonic() + _MOST_S
        for _ in range(COPIES - 1):
            copies: list[Entry] = []
            for side in sides:
                with suppress(Exception), modules():  # what can be there only once is, once
                    copies.append(load_again(side.build))
            if len(copies) < len(sides) or not self._run(sides, copies):
                return
            yield tuple(copies)
            if monotonic() > end_s:
                return

    def _run(self, sides: Sequence[Side], copies: Sequence[Entry]) -> bool:
        """Whether a copy of each side could be called; the sides have them then."""
        _bind(sides, copies)
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


def _bind(sides: Sequence[Side], copies: Sequence[Entry]) -> None:
    for side, entry in zip(sides, copies, strict=True):
        side.add_copy(entry)


def _can_be_copied(side: Side) -> bool:
    """Whether a variant is the same code when it is loaded again, and nothing but that.

    So it is with a library, and a module whose Triton functions are its own and compiled as they
    are. An autotuner or ``torch.compile`` would choose anew, and extensions may register by name
    what a process can have only once.
    """
    kind = side.build.variant.kind
    namespace = side.subject.entry.namespace
    return kind == "c" or (kind == "python" and is_compiled_as_it_is(namespace))
