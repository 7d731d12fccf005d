"""How many graphs there are. On a real GPU: tests/perfci/timers/test_cuda_hot_gpu.py."""

import pytest

from perfci.timers.cuda_hot import _count_graphs

_MIB, _GIB, _MS = 2**20, 2**30, 1e6


@pytest.mark.parametrize(
    ("taken_bytes", "free_bytes", "replay_ns", "count"),
    [
        (2 * _MIB, 100 * _GIB, 0.4 * _MS, 8),
        (0, 100 * _GIB, 0.4 * _MS, 8),
        (256 * _MIB, 100 * _GIB, 0.4 * _MS, 4),
        (2 * _GIB, 100 * _GIB, 0.4 * _MS, 1),
        (256 * _MIB, 1 * _GIB, 0.4 * _MS, 2),  # a capture that finds no room spoils the process
        (20 * _MIB, 30 * _MIB, 0.4 * _MS, 1),
        (0, 0, 0.4 * _MS, 1),
        (2 * _MIB, 100 * _GIB, 500 * _MS, 6),
        (2 * _MIB, 100 * _GIB, 4000 * _MS, 2),
    ],
)
def test_there_are_eight_where_they_have_room_and_take_no_more_than_seconds(
    taken_bytes: int, free_bytes: int, replay_ns: float, count: int
) -> None:
    counted = _count_graphs(taken_bytes=taken_bytes, free_bytes=free_bytes, replay_ns=replay_ns)
    assert counted == count
