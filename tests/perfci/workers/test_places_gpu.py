"""On a real GPU: copies of the code are timed, and judged as the first is."""

import json
from contextlib import nullcontext
from pathlib import Path

import pytest
import scratch
from subjects import build_subject

from perfci.checking.check import draw
from perfci.device import has_gpu_driver
from perfci.workers.places import PLACES, Places
from perfci.workers.side import Side

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.long,
    pytest.mark.skipif(not has_gpu_driver(), reason="needs a CUDA device"),
]

_TRITON = """\
# perfci: devices = ["cuda"]
# perfci: compiles = true
import torch
import triton
import triton.language as tl


DECORATED
def axpb(x, y, a, b, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    tl.store(y + at, a * tl.load(x + at, mask=inside) + b, mask=inside)


def run(x, a, b):
    y = torch.empty_like(x)
    axpb[(triton.cdiv(x.numel(), 256),)](x, y, a, b, x.numel(), BLOCK=256)
    return y
"""
_CHOOSES = '@triton.autotune([triton.Config({}, num_warps=2)], key=["count"])\n@triton.jit'
_KNOWS_COPIES = scratch.CUDA.replace(
    "#include <perfci_cuda.h>",
    "#include <dlfcn.h>\n#include <cstring>\n#include <perfci_cuda.h>",
).replace(
    "  const int64_t count = x->shape[0];\n",
    "  const int64_t count = x->shape[0];\n"
    "  Dl_info where{};\n"
    "  const bool known = dladdr((void *)perfci_run, &where);\n"
    "  const bool copy = known && strstr(where.dli_fname, AGAIN);\n"
    "  static int calls = 0;\n"
    "  calls += copy;\n",
)
_WRONG = _KNOWS_COPIES.replace(
    "(float)call->scalars[1].real", "(float)call->scalars[1].real + (copy ? 1.0f : 0.0f)"
)
_WRITES_BESIDE_ONCE = _KNOWS_COPIES.replace(
    "  return perfci_launch(",
    "  float *behind = (float *)call->outputs[0].data + count;\n"
    "  if (copy && calls == 3) cudaMemsetAsync(behind, 0, 4, perfci_stream(call));\n"
    "  return perfci_launch(",
)


@pytest.mark.parametrize(("decorator", "count"), [("@triton.jit", PLACES), (_CHOOSES, 1)])
def test_a_triton_variant_has_copies_where_nothing_chooses_for_it(
    tmp_path: Path, decorator: str, count: int
) -> None:
    scratch.write_kernel(tmp_path, programs__py=_TRITON.replace("DECORATED", decorator))
    built, subject = build_subject(tmp_path, device="cuda:0")
    side, places = Side(number=0, build=built, subject=subject), Places("cuda:0")
    side.lay_out([draw(subject, seed) for seed in (1, 2)])
    places.add([side], (1, 2), nullcontext)
    assert len(side.places) == PLACES
    loaded = [subject.entry, *(entry for (entry,) in places._loaded.get((subject.entry,), []))]
    assert len({id(entry.namespace["axpb"]) for entry in loaded}) == count


@pytest.mark.parametrize(
    ("source", "again", "said"),
    [
        (_WRONG, ".again-", "error"),
        (_WRITES_BESIDE_ONCE, ".again-", "writes outside of its output"),
        (_WRONG, "no file of that name", ""),
        (_WRITES_BESIDE_ONCE, "no file of that name", ""),
    ],
    ids=["wrong", "writes beside once", "right", "writes nowhere"],
)
def test_a_copy_that_is_wrong_is_found(tmp_path: Path, source: str, again: str, said: str) -> None:
    """What is written beside an output in a copy's third call, nobody has judged by itself."""
    root = scratch.quick(tmp_path / "root")
    scratch.write_kernel(root, fused__cu=source.replace("AGAIN", json.dumps(again)))
    arguments = ("run", "--device", "0", "--passes", "3", "--commit", "abcdef1", "--json")
    ended = scratch.perfci(root, *arguments, "--out", root / "run.json.gz")
    rows = json.loads(ended.stdout)["measurements"]
    timed = [row for row in rows if row["case"] == "large"]
    assert {row["status"] for row in timed} == {"wrong_values" if said else "passed"}, timed
    assert all(said in row["message"] for row in timed), timed
