"""The shipped kernels as perfci reads, builds and loads them."""

import fcntl
import functools
from collections.abc import Callable
from dataclasses import replace
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
def built(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Variant], Build]:
    """Build a variant, once a session, in a cache of the tests' own."""
    # One that all workers of pytest-xdist have in common.
    folder = tmp_path_factory.getbasetemp()
    if hasattr(request.config, "workerinput"):
        folder = folder.parent
    config = Config(
        root=ROOT, kernels=ROOT / "kernels", store="sqlite://", cache=folder / "kernels-cache"
    )

    @functools.cache
    def build_one(variant: Variant) -> Build:
        with (folder / f"{variant.kernel}-{variant.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
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


@pytest.fixture
def load_on_host(
    shipped: dict[str, Kernel], built: Callable[[Variant], Build]
) -> Callable[[str, str], Entry]:
    """Load a variant as though it took the CPU's tensors.

    What a CUDA variant says before it touches a device can then be heard without one.
    """

    def load_one(kernel: str, name: str) -> Entry:
        one = built(next(each for each in shipped[kernel].variants if each.name == name))
        declaration = replace(one.variant.declaration, devices=("cpu",))
        return load_entry(replace(one, variant=replace(one.variant, declaration=declaration)))

    return load_one
