"""Python's collector of rubbish stands still where it would disturb, and runs again after."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from perfci.collector import uncollected


class _Ring:
    """Something that only the collector can take away."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(params=[True, False], ids=["collecting", "not collecting"])
def is_collecting(request: pytest.FixtureRequest) -> Iterator[bool]:
    before = gc.isenabled()
    (gc.enable if request.param else gc.disable)()
    yield request.param
    (gc.enable if before else gc.disable)()


def test_nothing_is_collected_meanwhile(is_collecting: bool) -> None:
    with uncollected():
        ring = weakref.ref(_Ring())
        kept = [_Ring() for _ in range(10 * gc.get_threshold()[0])]
        assert ring() is not None
    assert gc.isenabled() is is_collecting
    assert kept


def test_it_is_as_it_was_after_an_error(is_collecting: bool) -> None:
    with pytest.raises(ValueError, match="no"), uncollected():
        raise ValueError("no")
    assert gc.isenabled() is is_collecting
