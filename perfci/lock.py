"""One measurement at a time on a GPU: a lock a UUID, across all processes of the host."""

import contextlib
import fcntl
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from perfci.errors import DeviceError
from perfci.history.model import Device


@contextmanager
def lock_device(device: Device) -> Iterator[None]:
    """Hold a GPU for oneself; wait, and say so, while another process holds it.

    A CPU is not locked: its cores are shared with everything else anyway.
    """
    if device.uuid is None:
        yield
        return
    path = Path(tempfile.gettempdir()) / f"perfci-{device.uuid}.lock"
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise DeviceError(
            f"{path}: cannot be opened to lock the GPU ({error.strerror}); remove it"
        ) from None
    with contextlib.closing(os.fdopen(descriptor, "r+b", buffering=0)):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"waiting for {device.uuid}, which is being measured", file=sys.stderr)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
