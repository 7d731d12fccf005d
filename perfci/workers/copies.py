"""Copies of a variant's code at other places in memory.

How long a kernel takes whose code the L2 no longer has depends on where that code lies: on an H200
copies of one cubin lay 0.01 to 0.04 µs apart, some 0.1 µs, each as far in the next process
(2026-11-30). In one place a figure would be that place's, and of two sides one would seem slower.
"""

from collections.abc import Sequence

from perfci.binary.jit import is_compiled_as_it_is
from perfci.build import Build
from perfci.entry import Entry, load_again

COPIES = 8
"""In how many places, the first among them."""


def load_copies(build: Build, entry: Entry) -> Sequence[Entry]:
    """A variant that is loaded, again at so many other places.

    None of what an autotuner or ``torch.compile`` would choose anew each time, nor of extensions,
    which may register by name what a process can have only once. Raises what loading raises.
    """
    if build.variant.kind == "c" or is_compiled_as_it_is(entry.namespace):
        return [load_again(build) for _ in range(COPIES - 1)]
    return []
