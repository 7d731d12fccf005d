"""Several GPUs at once, with a stand-in for perfci: no GPU is needed to see who is run."""

from pathlib import Path

import pytest

from perfci.cli.side_by_side import run_side_by_side
from perfci.history.model import Device
from perfci.plan import Target

_STAND_IN = """\
import sys

device = sys.argv[sys.argv.index("--device") + 1]
print("measured", *sys.argv[1:])
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
    assert capsys.readouterr().out.splitlines() == [
        "GPU-a",
        "measured run --passes 3 --device GPU-a",
        "",
        "GPU-b",
        "measured run --passes 3 --device GPU-b",
        "",
    ]


@pytest.mark.usefixtures("stand_in")
def test_a_wrong_result_on_one_gpu_outweighs_what_is_missing_on_another() -> None:
    assert run_side_by_side(_targets("GPU-b", "GPU-c", "GPU-a"), ["run"]) == 1
