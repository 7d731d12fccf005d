"""One measurement at a time on a GPU: a lock a UUID, across all processes of the host."""

import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from perfci.errors import DeviceError
from perfci.history.model import Device

_FOLDER = Path("/tmp")  # noqa: S108 — the same for all jobs, whatever their TMPDIR


@contextmanager
def lock_device(device: Device) -> Iterator[None]:
    """Hold a GPU for oneself; wait, and say so, while another process holds it.

    A CPU is not locked: its cores are shared with everything else anyway.
    """
    if device.uuid is None:
        yield
        return
    with _opened(_FOLDER / f"perfci-{device.uuid}.lock") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"waiting for {device.uuid}, which is being measured", file=sys.stderr)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    """The descriptor of a file that is made where it is not there; another user's will do."""
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        try:
            lock = os.open(path, flags)
        except FileNotFoundError:
            lock = os.open(path, flags | os.O_CREAT, 0o644)
    except OSError as error:
        raise DeviceError(
            f"{path}: cannot be opened to lock the GPU ({error.strerror}); remove it"
        ) from None
    try:
        yield lock
    finally:
        os.close(lock)
