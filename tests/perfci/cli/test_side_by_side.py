"""Several GPUs at once, with a stand-in for perfci: no GPU is needed to see who is run."""

import subprocess
import sys
from pathlib import Path

import pytest

from perfci.cli.side_by_side import run_side_by_side
from perfci.history.model import Device
from perfci.plan import Target

_STAND_IN = """\
import os
import signal
import sys

device = sys.argv[sys.argv.index("--device") + 1]
if device == "GPU-waits":
    try:
        os.kill(os.getppid(), signal.SIGINT)
        signal.pause()
    except KeyboardInterrupt:
        print("kept")
        sys.exit(130)
print("measured", *sys.argv[1:], flush=True)
if device == "GPU-killed":
    os.kill(os.getpid(), signal.SIGKILL)
sys.exit({"GPU-a": 0, "GPU-b": 9, "GPU-c": 1}[device])
"""


def _targets(*uuids: str) -> list[Target]:
    return [
        Target(name="cuda:0", device=Device(kind="cuda", model="Some GPU", uuid=uuid))
        for uuid in uuids
    ]


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "perfci").mkdir()
    (tmp_path / "perfci" / "__init__.py").touch()
    (tmp_path / "perfci" / "__main__.py").write_text(_STAND_IN)
    # `python -m` looks in the current folder first.
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("stand_in")
def test_each_gpu_has_its_own_run_of_the_same_command_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = ["run", "--device", "all", "--passes", "3", "--device=0,1"]
    assert run_side_by_side(_targets("GPU-a", "GPU-b"), arguments) == 9
    printed = capsys.readouterr()
    assert printed.out.splitlines() == [
        "measured run --passes 3 --device GPU-a",
        "measured run --passes 3 --device GPU-b",
    ]
    assert printed.err.splitlines() == ["GPU-a", "GPU-b"]


@pytest.mark.usefixtures("stand_in")
def test_a_wrong_result_on_one_gpu_outweighs_what_is_missing_on_another() -> None:
    assert run_side_by_side(_targets("GPU-b", "GPU-c", "GPU-a"), ["run"]) == 1


@pytest.mark.usefixtures("stand_in")
def test_a_run_that_was_killed_is_not_fine() -> None:
    assert run_side_by_side(_targets("GPU-a", "GPU-killed"), ["run"]) == 70


_INTERRUPTED = """\
import os
import sys

from perfci.cli.side_by_side import run_side_by_side
from perfci.history.model import Device
from perfci.plan import Target

targets = [Target(name="cuda:0", device=Device(kind="cuda", model="", uuid="GPU-waits"))]
os.chdir(sys.argv[1])
try:
    run_side_by_side(targets, ["run"])
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.usefixtures("stand_in")
def test_being_interrupted_is_passed_on(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED, tmp_path],
        cwd="/",
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout == "kept\ninterrupted\n"
