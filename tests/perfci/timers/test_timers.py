"""The list of timers: each is there, on a device that there is, under a label of its own."""

from importlib.util import find_spec

from perfci.declaration import DEVICE_KINDS
from perfci.timers import TIMERS, timers_on


def test_every_timer_is_a_module_for_a_kind_of_device() -> None:
    assert [name for name, entry in TIMERS.items() if find_spec(entry.module) is None] == []
    assert sorted(name for kind in DEVICE_KINDS for name in timers_on(kind)) == sorted(TIMERS)


def test_no_two_timers_have_the_same_label() -> None:
    labels = {entry.contract.label for entry in TIMERS.values()}
    assert len(labels) == len(TIMERS)


def test_the_primary_timer_comes_first() -> None:
    assert timers_on("cpu") == ("cpu",)
    assert timers_on("cuda") == ("cuda_cold", "cuda_hot", "host")
    assert timers_on("tpu") == ()
