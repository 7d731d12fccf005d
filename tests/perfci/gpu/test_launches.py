"""What is said of a launch beside what the driver says, and that no GPU means no launches."""

import pytest

from perfci.binary.ptxas import Compiled
from perfci.device import has_gpu_driver
from perfci.gpu.driver import KernelNode
from perfci.gpu.launches import _occupancy, _spill_bytes, find_launches


def _node(block: tuple[int, int, int], blocks_per_sm: int, architecture: int = 90) -> KernelNode:
    return KernelNode(
        symbol="_Z4axpbPf",
        architecture=architecture,
        grid=(1, 1, 1),
        block=block,
        registers=32,
        local_bytes=0,
        shared_bytes=0,
        blocks_per_sm=blocks_per_sm,
    )


@pytest.mark.parametrize(
    ("block", "blocks_per_sm", "occupancy"),
    [
        ((256, 1, 1), 8, 1.0),
        ((16, 16, 1), 4, 0.5),
        ((1, 1, 1), 32, 0.5),
        ((33, 1, 1), 32, 1.0),
        ((8, 8, 9), 3, 54 / 64),
        ((1024, 1, 1), 0, 0.0),
        ((1024, 1, 1), 3, 1.0),
    ],
)
def test_occupancy_is_the_share_of_the_warps_that_fit(
    block: tuple[int, int, int], blocks_per_sm: int, occupancy: float
) -> None:
    assert _occupancy(_node(block, blocks_per_sm), warp=32, most_threads=2048) == occupancy


def _compiled(architecture: str, spill_bytes: int, function: str = "_Z4axpbPf") -> Compiled:
    return Compiled(
        function=function, architecture=architecture, registers=32, spill_bytes=spill_bytes
    )


def test_spills_are_those_of_the_code_that_is_loaded() -> None:
    compiled = [
        _compiled("sm_90a", 1, function="_Z4axpbPd"),
        _compiled("sm_80", 2),
        _compiled("sm_90a", 3),
        _compiled("sm_100f", 4),
    ]
    found = [
        _spill_bytes(_node((1, 1, 1), 1, architecture), compiled) for architecture in (80, 90, 100)
    ]
    assert found == [2, 3, 4]
    assert _spill_bytes(_node((1, 1, 1), 1, architecture=120), compiled) is None
    assert _spill_bytes(_node((1, 1, 1), 1), ()) is None


@pytest.mark.skipif(has_gpu_driver(), reason="needs a machine without a CUDA device")
def test_without_a_gpu_nothing_is_called_and_nothing_is_launched() -> None:
    called: list[bool] = []
    assert find_launches(lambda: called.append(True)) == ()
    assert called == []
