"""How many streams are called on first. On a real GPU: test_cuda_cold_gpu.py beside this."""

import pytest

from perfci.timers.cuda_cold import _are_enough


@pytest.mark.parametrize(
    ("spans_s", "are_enough"),
    [
        ([], False),
        ([0.001] * 70, False),
        ([30.0, *[0.001] * 70], False),  # a first call may load, or the host be held up
        ([0.1] * 28, False),
        ([0.1] * 30, True),
        ([60.0] * 14, False),
        ([60.0] * 15, True),  # with the first, what a round of two sides is read on
    ],
)
def test_slow_calls_are_made_on_no_more_streams_than_they_will_be_read_on(
    spans_s: list[float], are_enough: bool
) -> None:
    assert _are_enough(spans_s) is are_enough
