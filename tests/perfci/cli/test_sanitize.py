"""perfci check --sanitize without a GPU; tests/perfci/tools/test_sanitizer_gpu.py has one."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import scratch

from perfci.cli.sanitize import inspection_exit_code, own_cells, sanitize
from perfci.config import Config, load_config
from perfci.errors import ConfigurationError, ExitCode
from perfci.history.model import Device
from perfci.kernel import discover
from perfci.plan import Target
from perfci.selection import Cell, Selection, select
from perfci.tools.sanitizer import Inspection, State
from perfci.workers.passes import PassServer


def test_a_cpu_is_refused_before_anything_is_built(
    tmp_path: Path, call: Callable[..., Any]
) -> None:
    root = scratch.quick(tmp_path / "root")
    scratch.write_kernel(root)
    ended = call(root, "check", "--sanitize", "--device", "cpu")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == (
        "perfci: --sanitize is for CUDA kernels, and this is a CPU: name a GPU with --device\n"
    )
    assert not (tmp_path / "root-cache").exists()


@pytest.mark.parametrize(
    ("states", "code"),
    [
        ([State.CLEAN, State.SKIPPED], ExitCode.FINE),
        ([State.CLEAN, State.UNPROVED], ExitCode.DEVICE),
        ([State.UNPROVED, State.FOUND, State.CLEAN], ExitCode.REGRESSION_OR_INCORRECT),
        ([State.CLEAN, State.FAILED], ExitCode.REGRESSION_OR_INCORRECT),
    ],
)
def test_the_worst_is_told_to_scripts(states: list[State], code: ExitCode) -> None:
    rows = [
        Inspection(kernel="rope", variant="tiled", tool="memcheck", case=str(index), state=state)
        for index, state in enumerate(states)
    ]
    assert inspection_exit_code(rows) == code


def _cells(tmp_path: Path) -> tuple[Config, list[Cell]]:
    root = scratch.quick(tmp_path / "root")
    peer = "# perfci: peer = true\n" + scratch.EAGER
    scratch.write_kernel(root, plain__cpp=scratch.PLAIN, library__py=peer)
    config = load_config(root, environment={})
    return config, select(discover(config.kernels), Selection(), "cpu")


def test_peers_are_left_out(tmp_path: Path) -> None:
    _, cells = _cells(tmp_path)
    assert {each.variant.name for each in cells} == {"plain", "library"}
    assert {each.variant.name for each in own_cells(cells)} == {"plain"}


def test_a_selection_of_which_nothing_can_run_proves_nothing(tmp_path: Path) -> None:
    config, cells = _cells(tmp_path)
    target = Target(name="cuda", device=Device(kind="cuda", model="Some GPU"))
    server = PassServer({})
    with pytest.raises(ConfigurationError, match="nothing to sanitize on Some GPU"):
        sanitize(own_cells(cells), config, target=target, server=server, as_json=False)
