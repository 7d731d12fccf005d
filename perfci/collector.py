"""Python's collector of rubbish, which runs whenever it likes: kept from running for a while."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Without the collector: its time is in no reading, and what it destroys in no capture.

    PyTorch ends the process where a pool of memory is destroyed while another is in use, and CUDA
    a capture where an event is.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
