"""What is the same code, and what only looks like it."""

from dataclasses import replace
from pathlib import Path

import pytest
import scratch
import sided

from perfci.build import Build, build
from perfci.config import load_config
from perfci.kernel import discover
from perfci.sameness import is_same_code
from perfci.toolchain import find_compiler

_LOOP = scratch.body("for (volatile int i = 0; i < 100; i = i + 1) {}")
_CUDA = """\
#include <perfci.h>

constexpr int kThreads = 128;

__global__ void axpb(const float *x, float *y, int64_t count, float a, float b) {
  for (int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    y[i] = a * x[i] + b;
}

extern "C" int perfci_run(const perfci_call *call) {
  const perfci_tensor *x = &call->inputs[0], *y = &call->outputs[0];
  axpb<<<16, kThreads, 0, (cudaStream_t)call->stream>>>(
      (const float *)x->data, (float *)y->data, x->shape[0], (float)call->scalars[0].real,
      (float)call->scalars[1].real);
  return 0;
}
"""
_MINE = "import helper_of_mine\n"
_HELPED = "from pathlib import Path\nWIDTH = int((Path(__file__).parent / 'w').read_text())\n"


def _build(folder: Path, cache: Path, name: str, text: str) -> Build:
    scratch.write_kernel(folder, **{name: text})
    (kernel,) = discover(folder / "kernels")
    config = load_config(folder, environment={}, cache=str(cache))
    (built,) = build(kernel.variants, config, architectures=("sm_90",))
    return built


def _is_same(tmp_path: Path, suffix: str, before: str, after: str) -> bool:
    sides = (("before", before), ("after", after))
    one, other = (
        _build(tmp_path / side, tmp_path / "cache", f"plain__{suffix}", text)
        for side, text in sides
    )
    return is_same_code(one, other)


@pytest.mark.parametrize(
    ("before", "after", "is_same"),
    [
        (scratch.PLAIN, scratch.PLAIN, True),
        (scratch.PLAIN, "// A comment, lines and all.\n\n" + scratch.PLAIN, True),
        (_LOOP, _LOOP.replace("i < 100", "i < 101"), False),
        (scratch.PLAIN, scratch.PLAIN.replace("is not float32", "is no float32"), False),
        (scratch.PLAIN, '// perfci: flags = ["-O2"]\n' + scratch.PLAIN, False),
        (scratch.PLAIN, '// perfci: libraries = ["m"]\n' + scratch.PLAIN, False),
        ("int perfci_run(\n", "int perfci_run(\n", False),
    ],
    ids=["equal", "comment", "loop bound", "message", "flags", "libraries", "broken"],
)
def test_compiled_code(tmp_path: Path, before: str, after: str, is_same: bool) -> None:
    assert _is_same(tmp_path, "cpp", before, after) is is_same


def test_what_is_linked_from_a_folder_may_be_another_on_each_side(tmp_path: Path) -> None:
    linked = '// perfci: flags = ["-L/usr/lib"]\n' + scratch.PLAIN
    assert not _is_same(tmp_path, "cpp", linked, linked)


@pytest.mark.nvcc
@pytest.mark.skipif(find_compiler("nvcc") is None, reason="nvcc is not installed")
def test_a_block_size_is_the_launch_s_and_not_the_same_code(tmp_path: Path) -> None:
    wider = _CUDA.replace("kThreads = 128", "kThreads = 64")
    one, other = (
        _build(tmp_path / name, tmp_path / "cache", "plain__cu", text)
        for name, text in (("one", _CUDA), ("other", wider))
    )
    assert one.code.device == other.code.device != {}
    assert not is_same_code(one, other)
    assert _is_same(tmp_path, "cu", _CUDA, "// A comment.\n" + _CUDA)


@pytest.mark.parametrize(
    ("before", "after", "is_same"),
    [
        (scratch.EAGER, "# A comment.\n" + scratch.EAGER, True),
        ("import torch\n" + scratch.EAGER, "import torch\n\n\n" + scratch.EAGER, True),
        (scratch.EAGER, scratch.EAGER.replace("a * x", "x * a"), False),
        (
            "import helper_of_mine\n" + scratch.EAGER,
            "import helper_of_mine\n" + scratch.EAGER,
            False,
        ),
        (_HELPED + scratch.EAGER, _HELPED + scratch.EAGER, False),
        ("from . import own\n" + scratch.EAGER, "from . import own\n" + scratch.EAGER, False),
        ("def run(:\n", "def run(:\n", False),
    ],
    ids=["comment", "installed", "changed", "not installed", "reads a file", "relative", "broken"],
)
def test_python(tmp_path: Path, before: str, after: str, is_same: bool) -> None:
    assert _is_same(tmp_path, "py", before, after) is is_same


@pytest.mark.parametrize("suffix", ["cpp", "py"])
def test_in_another_environment_no_code_is_the_same(tmp_path: Path, suffix: str) -> None:
    text = {"cpp": scratch.PLAIN, "py": scratch.EAGER}[suffix]
    built = _build(tmp_path, tmp_path / "cache", f"plain__{suffix}", text)
    here, one, other = (
        replace(built, variant=replace(built.variant, installation=place))
        for place in (None, sided.installation("one"), sided.installation("other"))
    )
    assert is_same_code(one, one)
    assert not is_same_code(one, other)
    assert not is_same_code(here, one)


def test_a_function_is_the_same_where_it_is_installed(tmp_path: Path) -> None:
    numpy = '[plain]\nfunction = "numpy.linalg:norm"\n'
    other = '[plain]\nfunction = "numpy.linalg:det"\n'
    nowhere = '[plain]\nfunction = "helper_of_mine:norm"\n'
    builds = [
        _build(tmp_path / f"{number}", tmp_path / "cache", "variants__toml", text)
        for number, text in enumerate((numpy, numpy, other, nowhere, nowhere))
    ]
    assert is_same_code(builds[0], builds[1])
    assert not is_same_code(builds[0], builds[2])
    assert not is_same_code(builds[3], builds[4])
