"""The compiled peers: right at each shape, and never eager without saying so."""

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch

from perfci.checking.inputs import Arguments, load_reference
from perfci.kernel import Kernel

pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]

SHAPES = {
    "mla_kv_projection": [
        {"batch": 2, "sequence": 5, "model": 8, "rank": 3, "kv_heads": 2, "head_dim": 4},
        {"batch": 1, "sequence": 7, "model": 9, "rank": 5, "kv_heads": 3, "head_dim": 2},
    ],
    "mla_attention": [
        {"batch": 2, "sequence": 5, "heads": 2, "head_dim": 4, "rank": 3},
        {"batch": 1, "sequence": 7, "heads": 3, "head_dim": 2, "rank": 5},
    ],
}


@pytest.fixture(params=list(SHAPES))
def compiled(
    request: pytest.FixtureRequest,
    shipped: dict[str, Kernel],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[tuple[Kernel, ModuleType]]:
    """A kernel and a fresh import of its compiled variant; dynamo is left as it was found."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    kernel = shipped[request.param]
    (path,) = (each.path for each in kernel.variants if each.name == "torch_compile")
    assert path is not None
    name = f"fresh_{kernel.name}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with torch._dynamo.config.patch(recompile_limit=8, fail_on_recompile_limit_hit=False):
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        yield kernel, module
        torch._dynamo.reset()


def _drawn(kernel: Kernel, shape: dict[str, int]) -> Arguments:
    generator = torch.Generator().manual_seed(1)
    return load_reference(kernel).make_inputs(
        **shape, dtype=torch.float32, device="cpu", generator=generator
    )


def test_is_right_at_more_than_one_shape(compiled: tuple[Kernel, ModuleType]) -> None:
    kernel, module = compiled
    for shape in SHAPES[kernel.name]:
        drawn = _drawn(kernel, shape)
        expected = load_reference(kernel).reference(*drawn.values())
        torch.testing.assert_close(module.run(*drawn.values()), expected)


def test_a_shape_too_many_is_an_error(compiled: tuple[Kernel, ModuleType]) -> None:
    kernel, module = compiled
    assert torch._dynamo.config.recompile_limit >= 256
    first, second = (_drawn(kernel, shape) for shape in SHAPES[kernel.name])
    with torch._dynamo.config.patch(recompile_limit=1):
        module.run(*first.values())
        with pytest.raises(torch._dynamo.exc.FailOnRecompileLimitHit):
            module.run(*second.values())
