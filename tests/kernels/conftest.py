"""The shipped kernels as perfci reads, builds and loads them."""

import functools
from collections.abc import Callable
from pathlib import Path

import pytest

from perfci.build import Build, build
from perfci.config import Config
from perfci.entry import Entry, load_entry
from perfci.kernel import Kernel, Variant, discover

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def shipped() -> dict[str, Kernel]:
    return {kernel.name: kernel for kernel in discover(ROOT / "kernels")}


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Variant], Build]:
    """Build a variant, once a session, in a cache of the tests' own."""
    config = Config(
        root=ROOT,
        kernels=ROOT / "kernels",
        store="sqlite://",
        cache=tmp_path_factory.mktemp("cache"),
    )

    @functools.cache
    def build_one(variant: Variant) -> Build:
        (one,) = build([variant], config)
        assert not one.failed, one.message
        return one

    return build_one


@pytest.fixture
def load(
    shipped: dict[str, Kernel], built: Callable[[Variant], Build]
) -> Callable[[str, str], Entry]:
    """Load a variant or a control by the names of its kernel and its own."""

    def load_one(kernel: str, name: str) -> Entry:
        known = (*shipped[kernel].variants, *shipped[kernel].controls)
        return load_entry(built(next(each for each in known if each.name == name)))

    return load_one
