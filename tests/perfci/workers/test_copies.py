"""Which variants are loaded to further places, and that these are the same code once more."""

from pathlib import Path

import pytest
import scratch
import torch

from perfci.build import Build, build
from perfci.config import load_config
from perfci.entry import load_entry
from perfci.kernel import discover
from perfci.workers.copies import COPIES, load_copies

_COUNTS = scratch.body("static int calls = 0; ++calls;").replace("+ b;", "+ calls;")
_EXTENSION = """\
#include <torch/extension.h>

torch::Tensor run(torch::Tensor x, double a, double b) { return a * x + b; }

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("run", &run); }
"""


def _built(root: Path, **variant: str) -> Build:
    scratch.write_kernel(root, **variant)
    config = load_config(root, environment={}, cache=str(root / "cache"))
    (kernel,) = discover(config.kernels)
    (built,) = build(kernel.variants, config)
    return built


def test_a_library_is_loaded_to_as_many_places_each_with_its_state(tmp_path: Path) -> None:
    built = _built(tmp_path, counts__cpp=_COUNTS)
    entry = load_entry(built)
    x, y = torch.ones(1), torch.zeros(1)
    entries = [entry, *load_copies(built, entry)]
    calls = [each.bind({"x": x, "a": 0.0, "b": 0.0}, [y]) for each in entries]
    seen = []
    for call in [calls[0], *calls]:
        call()
        seen.append(y.item())
    assert seen == [1.0, 2.0] + [1.0] * (COPIES - 1)
    assert built.library is not None
    assert not list(built.library.parent.glob(".again*"))


@pytest.mark.parametrize(("kind", "text"), [("py", scratch.EAGER), ("cpp", _EXTENSION)])
def test_what_may_choose_anew_or_be_registered_once_is_not(
    tmp_path: Path, kind: str, text: str
) -> None:
    built = _built(tmp_path, **{f"variant__{kind}": text})
    assert built.variant.kind in {"python", "extension"}
    assert load_copies(built, load_entry(built)) == []
