"""A GPU is held by one process at a time, and another one waits and says so."""

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from perfci import lock
from perfci.errors import DeviceError
from perfci.history.model import Device
from perfci.lock import lock_device

_ANOTHER = """\
import sys

from perfci.history.model import Device
from perfci.lock import lock_device

with lock_device(Device(kind="cuda", model="Some GPU", uuid=sys.argv[1])):
    print("held")
"""


@pytest.fixture
def gpu() -> Iterator[Device]:
    """A GPU that nobody else has, whose lock is removed afterwards."""
    device = Device(kind="cuda", model="Some GPU", uuid=f"GPU-{uuid.uuid4()}")
    yield device
    (lock._FOLDER / f"perfci-{device.uuid}.lock").unlink(missing_ok=True)


def test_another_process_waits_and_says_so(gpu: Device, tmp_path: Path) -> None:
    with lock_device(gpu):
        another = subprocess.Popen(
            [sys.executable, "-c", _ANOTHER, str(gpu.uuid)],
            env={**os.environ, "TMPDIR": str(tmp_path)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert another.stderr is not None
        assert another.stderr.readline() == f"waiting for {gpu.uuid}, which is being measured\n"
    assert another.communicate() == ("held\n", "")


def test_a_lock_is_given_back_and_a_cpu_needs_none(
    gpu: Device, capsys: pytest.CaptureFixture[str]
) -> None:
    with lock_device(gpu), lock_device(Device(kind="cpu", model="Some CPU")):
        pass
    with lock_device(gpu):
        assert capsys.readouterr().err == ""


def test_a_lock_that_leads_elsewhere_is_not_followed(
    gpu: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "_FOLDER", tmp_path)
    (tmp_path / f"perfci-{gpu.uuid}.lock").symlink_to(tmp_path / "victim")
    with pytest.raises(DeviceError, match="cannot be opened to lock the GPU"), lock_device(gpu):
        pass
    assert not (tmp_path / "victim").exists()
