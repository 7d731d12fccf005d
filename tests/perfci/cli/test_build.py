"""perfci build: what is compiled, what is not again, and that nothing is started for nothing."""

import json
from collections.abc import Callable
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import pytest
import scratch

_COMPILES = "# perfci: compiles = true\n" + scratch.EAGER


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """One kernel with a variant to compile and one with nothing to."""
    root = scratch.quick(tmp_path / "root")
    scratch.write_kernel(root, plain__cpp=scratch.PLAIN, eager__py=scratch.EAGER)
    return root


@pytest.fixture
def no_fork_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no GPU driver, and a fork server that starts is a fault."""

    def refuse() -> None:
        raise AssertionError("a fork server was started")

    monkeypatch.setattr("perfci.device.has_gpu_driver", lambda: False)
    monkeypatch.setattr(forkserver._forkserver, "ensure_running", refuse)


def _built(ended: Any) -> dict[str, bool]:
    """Variant → whether it was there already."""
    return {each["variant"]: each["cached"] for each in json.loads(ended.out)}


@pytest.mark.usefixtures("no_fork_server")
def test_what_is_unchanged_is_not_compiled_again(root: Path, call: Callable[..., Any]) -> None:
    first = call(root, "build", "--json")
    assert (first.code, _built(first)) == (0, {"eager": False, "plain": False})
    assert _built(call(root, "build", "--json")) == {"eager": False, "plain": True}
    words = call(root, "build").out
    assert "  axpb    plain        unchanged  " in words
    assert "  axpb    eager    nothing to do  " in words
    assert "\n0 compiled, 0 prepared at their first call, in " in words


@pytest.mark.usefixtures("no_fork_server")
def test_what_does_not_compile_is_told_and_the_others_are_built(
    root: Path, call: Callable[..., Any]
) -> None:
    scratch.write_kernel(root, broken__cpp="int perfci_run(\n")
    ended = call(root, "build")
    assert ended.code == 1
    assert "\n1 compiled, 0 prepared" in ended.out
    assert "\naxpb/broken:\n" in ended.err
    assert "error: " in ended.err


@pytest.mark.usefixtures("no_fork_server")
def test_a_variant_that_compiles_at_its_first_call_needs_a_fork_server(
    root: Path, call: Callable[..., Any]
) -> None:
    scratch.write_kernel(root, late__py=_COMPILES)
    assert call(root, "build", "--variant", "plain").code == 0
    ended = call(root, "build")
    assert (ended.code, "a fork server was started" in ended.err) == (70, True)
    assert call(root, "build", "--device", "cuda", "--variant", "late").code == 0


@pytest.mark.usefixtures("no_fork_server")
def test_a_mistake_is_told_before_any_device_is_looked_for(
    root: Path, call: Callable[..., Any]
) -> None:
    (root / "kernels/axpb/cases.toml").write_text("[[bench]]\nname = 5\n")
    ended = call(root, "build", "--device", "9")
    assert (ended.code, ended.err.count("\n")) == (3, 1)
    assert "cases.toml: " in ended.err
