"""The second clock: the events of a reading and the host's clock beside each other."""

import pytest

from perfci.timers import InvalidTimingError
from perfci.timers.cuda_stream import Blocker

_MS = 1e6


def _compare(blocker: Blocker, *pairs_ms: tuple[float, float]) -> None:
    for events_ms, host_ms in pairs_ms:
        blocker._compare_clocks(events_ms * _MS, host_ms * _MS)


@pytest.mark.parametrize("apart", [(2.0, 2.4), (2.4, 2.0), (100.0, 104.0), (100.0, 96.0)])
def test_clocks_that_agree_are_believed(apart: tuple[float, float]) -> None:
    _compare(Blocker(), *[apart] * 50)


@pytest.mark.parametrize("apart", [(2.0, 2.6), (0.001, 3.0), (100.0, 106.0), (100.0, 90.0)])
def test_clocks_that_never_agree_are_not(apart: tuple[float, float]) -> None:
    blocker = Blocker()
    _compare(blocker, *[apart] * 4)
    with pytest.raises(InvalidTimingError, match="neither is believed"):
        _compare(blocker, apart)


def test_a_host_that_was_kept_waiting_now_and_then_is_no_contradiction() -> None:
    _compare(Blocker(), *[(2.0, 9.0), (2.0, 9.0), (2.0, 9.0), (2.0, 9.0), (2.0, 2.1)] * 20)
