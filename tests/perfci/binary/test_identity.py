"""Which builds have the same code: each claim by real compilations."""

import json
import random
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import scratch

from perfci.binary.canonical import canonical
from perfci.binary.elf import ElfError
from perfci.binary.identity import Code, device_code, host_code, read_code
from perfci.build import Build, build
from perfci.config import load_config
from perfci.history.codec import read_run_file
from perfci.kernel import discover
from perfci.toolchain import find_compiler

_CUDA = """\
#include <cstdio>
#include <perfci_cuda.h>

namespace {
__device__ int counter;
__constant__ float table[4] = {1.0f, 2.0f, 3.0f, 4.0f};
__device__ __noinline__ float shifted(float x) { return x * table[int(x) & 3] + 1.0f; }

__global__ void hidden(float *x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = shifted(x[i]);
  if (i == 0) atomicAdd(&counter, 1);
}
}  // namespace

__global__ void reversed(float *x, int n) {
  __shared__ float kept[128];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  kept[threadIdx.x] = x[i];
  __syncthreads();
  if (i < n) x[i] = kept[127 - threadIdx.x];
  if (n < 0) printf("none of %d", n);
}

extern "C" int perfci_run(const perfci_call *call) {
  float *x = (float *)call->outputs[0].data;
  const int n = (int)call->outputs[0].shape[0];
  const int threads = 128;
  if (int code = perfci_launch(call, {n / threads, threads, 0}, hidden, x, n)) return code;
  return perfci_launch(call, {n / threads, threads, 0}, reversed, x, n);
}
"""
_HIDDEN, _REVERSED = "_ZN12_GLOBAL__N_16hiddenEPfi", "_Z8reversedPfi"
_NVCC = find_compiler("nvcc")
_with_nvcc = pytest.mark.skipif(_NVCC is None, reason="nvcc is not installed")


def _built(root: Path, **files: str) -> Build:
    """The one variant that a file makes, built in a folder of its own."""
    scratch.write_kernel(scratch.quick(root), **files)
    config = load_config(root, environment={}, cache=str(root.parent / f"{root.name}-cache"))
    (kernel,) = discover(root / "kernels")
    (only,) = build(kernel.variants, config, architectures=["sm_80", "sm_90"])
    assert only.message == ""
    return only


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Build:
    return _built(tmp_path_factory.mktemp("identity") / "root", fused__cu=_CUDA)


@pytest.mark.nvcc
@_with_nvcc
def test_each_kernel_is_known_by_its_symbol_for_each_architecture(built: Build) -> None:
    assert built.code.lack == ""
    assert {name: {*kernels} for name, kernels in built.code.device.items()} == {
        "sm_80": {_HIDDEN, _REVERSED},
        "sm_90": {_HIDDEN, _REVERSED},
    }
    digests = [each for kernels in built.code.device.values() for each in kernels.values()]
    assert len({*digests, built.code.host}) == 5


@pytest.mark.nvcc
@_with_nvcc
@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda source: source, id="folder"),
        pytest.param(lambda source: "// A comment.\n" + source + "/* Another. */\n", id="comment"),
        pytest.param(
            lambda source: '// perfci: flags = ["-lineinfo"]\n' + source, id="line-information"
        ),
        pytest.param(lambda source: source.replace("kept", "row"), id="a-variables-name"),
    ],
)
def test_code_is_the_same_whatever_does_not_change_it(
    built: Build, change: Callable[[str], str], tmp_path: Path
) -> None:
    again = _built(tmp_path / "another folder, with" / "a root", fused__cu=change(_CUDA))
    assert not again.cached
    assert again.code == built.code


@pytest.mark.nvcc
@_with_nvcc
def test_device_code_is_the_same_in_a_file_of_another_name(built: Build, tmp_path: Path) -> None:
    assert _built(tmp_path / "root", renamed_file__cu=_CUDA).code.device == built.code.device


@pytest.mark.nvcc
@_with_nvcc
def test_a_kernel_keeps_its_digest_beside_another(built: Build, tmp_path: Path) -> None:
    more = "__global__ void third(float *x) { x[0] = 1.0f; }\n"
    code = _built(tmp_path / "root", fused__cu=more + _CUDA).code
    assert {**built.code.device["sm_90"], "_Z5thirdPf": code.device["sm_90"]["_Z5thirdPf"]} == (
        code.device["sm_90"]
    )
    assert code.loaded_by("9.0") != built.code.loaded_by("9.0")


_CHANGES = {
    "instruction": ("kept[127 - threadIdx.x]", "kept[126 - threadIdx.x]", {_REVERSED}),
    "called-function": ("+ 1.0f", "+ 2.0f", {_HIDDEN}),
    "constant-of-the-file": ("3.0f, 4.0f", "3.0f, 5.0f", {_HIDDEN, _REVERSED}),
    "shared-memory": ("kept[128]", "kept[192]", {_REVERSED}),
    "launch-bounds": ("void reversed", "void __launch_bounds__(256) reversed", {_REVERSED}),
    "printed-text": ("none of", "some of", {_HIDDEN, _REVERSED}),
}


@pytest.mark.nvcc
@_with_nvcc
@pytest.mark.parametrize("name", _CHANGES)
def test_what_a_kernel_would_execute_is_seen(built: Build, name: str, tmp_path: Path) -> None:
    before, after, expected = _CHANGES[name]
    assert before in _CUDA
    code = _built(tmp_path / "root", fused__cu=_CUDA.replace(before, after)).code
    for architecture, kernels in built.code.device.items():
        changed = {each for each in kernels if kernels[each] != code.device[architecture][each]}
        assert changed == expected


@pytest.mark.nvcc
@_with_nvcc
def test_a_block_size_in_host_code_is_seen_there_alone(built: Build, tmp_path: Path) -> None:
    source = _CUDA.replace("threads = 128", "threads = 64")
    code = _built(tmp_path / "root", fused__cu=source).code
    assert code.device == built.code.device
    assert code.host != built.code.host


@pytest.mark.nvcc
@_with_nvcc
def test_code_linked_from_several_parts_is_read(tmp_path: Path) -> None:
    source = '// perfci: flags = ["-rdc=true"]\n' + _CUDA
    codes = [_built(tmp_path / name, fused__cu=source).code for name in ("one", "two")]
    assert codes[0].lack == ""
    assert _REVERSED in codes[0].device["sm_90"]
    assert codes[0] == codes[1]


@pytest.mark.nvcc
@_with_nvcc
def test_a_source_that_tells_its_path_is_the_same_in_every_folder(tmp_path: Path) -> None:
    source = "#include <cassert>\n" + _CUDA.replace("kept[threadIdx.x] =", "assert(n); \\\n&")
    codes = [_built(tmp_path / name, fused__cu=source).code for name in ("one", "a/longer, one")]
    assert codes[0] == codes[1]


@pytest.mark.nvcc
@_with_nvcc
def test_compressed_code_is_not_guessed_at(tmp_path: Path) -> None:
    assert _NVCC is not None
    source = tmp_path / "k.cu"
    source.write_text("__global__ void k(float *x) { x[threadIdx.x] = 1.0f; }\n")
    library = tmp_path / "k.so"
    for mode, flag in (("plain", "-no-compress"), ("compressed", "-compress-mode=size")):
        command = [_NVCC.path, "-arch=sm_90", flag, "-Xcompiler", "-fPIC", "-shared"]
        subprocess.run([*command, str(source), "-o", str(library)], check=True)
        if mode == "plain":
            assert {*device_code(library.read_bytes())["sm_90"]} == {"_Z1kPf"}
    with pytest.raises(ElfError, match="what is for sm_90 is compressed; compile with -no-comp"):
        device_code(library.read_bytes())
    code = read_code(library, library)
    assert not code.device
    assert dict(code.texts("9.0"))["code not read"].startswith("device code: what is for sm_90")


@pytest.mark.nvcc
@_with_nvcc
def test_damaged_files_are_errors_of_their_own(built: Build) -> None:
    assert built.library is not None
    whole = built.library.read_bytes()
    source = random.Random(1)
    start = whole.index(b"\x50\xed\x55\xba")
    for _ in range(200):
        damaged = bytearray(whole)
        for _ in range(20):
            damaged[source.randrange(start, start + 40_000)] = source.randrange(256)
        for image in (bytes(damaged), whole[: source.randrange(len(whole))]):
            try:
                device_code(image)
            except ElfError:
                continue


def test_host_code_is_the_same_in_every_folder_and_comments_are_not_in_it(tmp_path: Path) -> None:
    first = _built(tmp_path / "first", plain__cpp=scratch.PLAIN).code
    other = _built(tmp_path / "an other", plain__cpp="// A comment.\n" + scratch.PLAIN).code
    assert first.host
    assert (first.device, first.lack) == ({}, "")
    assert other == first
    assert first.texts(None) == (("host code", first.host),)


@pytest.mark.parametrize(
    ("before", "after"), [("= a *", "= 2.0f * a *"), ("not float32", "no float32"), ("+ b", "- b")]
)
def test_changed_host_code_is_seen(before: str, after: str, tmp_path: Path) -> None:
    assert before in scratch.PLAIN
    first = _built(tmp_path / "first", plain__cpp=scratch.PLAIN).code
    assert _built(tmp_path / "b", plain__cpp=scratch.PLAIN.replace(before, after)).code != first


def test_python_code_is_known_by_what_it_says(tmp_path: Path) -> None:
    first = _built(tmp_path / "first", eager__py=scratch.EAGER).code
    other = _built(tmp_path / "other", eager__py="# A comment.\n" + scratch.EAGER).code
    assert first.source
    assert other == first
    assert _built(tmp_path / "b", eager__py=scratch.EAGER.replace("+", "-")).code != first
    broken = _built(tmp_path / "c", eager__py="def run(\n").code
    assert broken.texts(None) == (("code not read", "source: does not parse"),)


@pytest.mark.nvcc
@_with_nvcc
def test_a_build_shows_its_code(tmp_path: Path, call: Callable[..., Any]) -> None:
    root = scratch.quick(tmp_path / "root")
    scratch.write_kernel(root, fused__cu=_CUDA)
    first, again = (
        json.loads(call(root, "build", "--device", "cuda", "--json").out)[0] for _ in range(2)
    )
    assert first["code"] == again["code"]
    assert {*first["code"]["device"]["sm_80"]} == {_HIDDEN, _REVERSED}
    assert re.fullmatch("[0-9a-f]{16}", first["code"]["host"])


def test_a_run_records_the_code_with_every_cell(tmp_path: Path) -> None:
    root = scratch.quick(tmp_path / "root")
    scratch.write_kernel(root, plain__cpp=scratch.PLAIN, eager__py=scratch.EAGER)
    out = tmp_path / "run.json.gz"
    ran = scratch.call(root, "run", "--commit", "0123456789", "--out", out)
    assert ran.returncode == 0, ran.stderr
    names = {
        (each.variant, name)
        for each in read_run_file(out).measurements
        for name, _ in each.identity
        if name not in ("deterministic", "bounds")
    }
    assert names == {("plain", "host code"), ("eager", "source")}


def test_code_that_is_made_when_it_is_linked_is_not_guessed_at(tmp_path: Path) -> None:
    source = '// perfci: flags = ["-flto"]\n' + scratch.PLAIN
    code = _built(tmp_path / "root", plain__cpp=source).code
    assert code.texts(None) == (
        ("code not read", "host code: its code is made when it is linked (-flto)"),
    )


def test_what_is_built_already_keeps_its_code(tmp_path: Path) -> None:
    first = _built(tmp_path / "root", plain__cpp=scratch.PLAIN)
    again = _built(tmp_path / "root", plain__cpp=scratch.PLAIN)
    assert (first.cached, again.cached) == (False, True)
    assert again.code == first.code


@pytest.mark.parametrize("image", [b"", b"\x7fELF\x01\x01", b"\x7fELF\x02\x01" + bytes(100)])
def test_what_is_no_library_is_an_error(image: bytes) -> None:
    for read in (device_code, host_code):
        with pytest.raises(ElfError):
            read(image)


@pytest.mark.parametrize(
    ("capability", "loaded"),
    [("8.0", "sm_80"), ("8.6", "sm_80"), ("8.9", "sm_89"), ("9.0", "sm_90"), ("12.1", "sm_120")],
)
def test_a_gpu_loads_the_nearest_code_of_its_own_generation(capability: str, loaded: str) -> None:
    code = Code(device={f"sm_{each}": {"k": f"{each}"} for each in (80, 89, 90, 120)})
    assert code.loaded_by(capability).startswith(f"{loaded} ")


@pytest.mark.parametrize("capability", [None, "7.5", "10.0"])
def test_a_device_that_can_load_nothing_has_no_device_code(capability: str | None) -> None:
    code = Code(device={"sm_80": {"k": "1"}, "sm_90": {"k": "2"}, "sm_103": {"k": "3"}})
    assert code.loaded_by(capability) == ""


@pytest.mark.parametrize(
    ("symbol", "expected"),
    [
        ("_Z3addPf", "_Z3addPf"),
        ("_ZN36_GLOBAL__N__c3ffe3a5_4_a_cu_4d11ce8d3addEv", "_ZN12_GLOBAL__N_13addEv"),
        ("_ZN46_GLOBAL__N__134eec5a_13_other_name_cu_4d11ce8d3addEv", "_ZN12_GLOBAL__N_13addEv"),
        ("_ZN34_INTERNAL_c3ffe3a5_4_a_cu_4d11ce873tabE", "_ZN12_GLOBAL__N_13tabE"),
        (
            "_ZN34_INTERNAL_c3ffe3a5_4_a_cu_4d11ce8736_GLOBAL__N__c3ffe3a5_4_a_cu_4d11ce873tabE",
            "_ZN12_GLOBAL__N_112_GLOBAL__N_13tabE",
        ),
        ("PyInit_perfci_0123456789abcdef", "PyInit_perfci_0000000000000000"),
        ("_GLOBAL__N__c3ffe3a5_99_short", "_GLOBAL__N__c3ffe3a5_99_short"),
    ],
)
def test_symbols_lose_what_is_made_of_paths(symbol: str, expected: str) -> None:
    assert canonical(symbol) == expected
