"""What torch.compile has made, for real on a CPU: told apart by what it does, not where it lies."""

import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import scratch
import torch
from records import cell

from perfci.binary import inductor
from perfci.binary.inductor import find_generated
from perfci.checking.inputs import load_module
from perfci.reports.differences import describe_differences

_FUNCTION = """\
import torch


def f(x, w):
    y = torch.tanh(x @ w)
    return y * 2
"""
_RENAMED = """\
import torch

CONSTANT = 2


def another(first, second):
    # The same, in other words.
    squashed = torch.tanh(first @ second)
    return squashed * CONSTANT


f = another
"""
_VARIANT = """\
# perfci: compiles = true
import torch


def _f(x, a, b):
    return a * x + b


_compiled = torch.compile(_f, dynamic=False)


def run(x, a, b):
    return _compiled(x, a, b)
"""


@pytest.fixture
def generated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., dict[str, str]]]:
    """What a call of a source's compiled ``f`` tells, written and compiled in a folder by name."""

    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))

    def told(source: str, folder: str) -> dict[str, str]:
        path = tmp_path / folder / "source.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(source)
        torch._dynamo.reset()
        compiled = torch.compile(load_module("source", str(path)).f, dynamic=False)
        x, w = torch.ones(8, 4), torch.ones(4, 2)
        # Written anew each time, however alike: what is found in the cache has no other comments.
        with torch._inductor.config.patch(fx_graph_cache=False):
            compiled(x, w)
        return dict(find_generated(lambda: compiled(x, w)))

    yield told
    torch._dynamo.reset()


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_code_is_told_by_what_it_does(generated: Callable[..., dict[str, str]]) -> None:
    told = generated(_FUNCTION, "here")
    assert told.keys() == {"generated calls", "generated code"}
    assert re.fullmatch(r"extern_kernels\.mm, cpp_fused_\w+", told["generated calls"])
    assert generated(_RENAMED, "there") == told
    other = generated(_FUNCTION.replace("* 2", "* 3"), "here")
    assert other["generated calls"] == told["generated calls"]
    assert other["generated code"] != told["generated code"]


@pytest.mark.long
def test_a_run_keeps_it_and_compare_says_what_differs(tmp_path: Path) -> None:
    root = scratch.quick(tmp_path / "root", passes=2)
    folder = scratch.write_kernel(root, compiled__py=_VARIANT)
    (root / ".gitignore").write_text(".perfci/\n")
    scratch.git(root, "init", "-q")
    scratch.commit_all(root, "one")
    runs = ("run", "--device", "cpu", "--case", "large", "--json")
    first = scratch.rows(json.loads(scratch.perfci(root, *runs).stdout))
    (folder / "compiled.py").write_text(
        _VARIANT.replace("a * x + b", "(a * x + b).clamp(-1e9, 1e9)")
    )
    scratch.commit_all(root, "two")
    second = scratch.rows(json.loads(scratch.perfci(root, *runs).stdout))
    told, tells = (dict(each["compiled", "large"]["identity"]) for each in (first, second))
    assert re.fullmatch(r"cpp_fused_\w+", told["generated calls"])
    assert told["generated code"] != tells["generated code"]
    compared = scratch.perfci(root, "compare", "HEAD~1", "HEAD", "--json")
    (row,) = json.loads(compared.stdout)["comparisons"]
    assert "generated code changed" in row["differences"]


def test_nothing_is_told_of_what_is_not_compiled() -> None:
    called: list[int] = []
    assert find_generated(lambda: called.append(1)) == ()
    assert called == [1]


def test_a_profiler_that_was_there_stays_also_where_the_call_raises() -> None:
    def profiler(*_: object) -> None:
        pass

    before = sys.getprofile()
    sys.setprofile(profiler)
    try:
        with pytest.raises(ZeroDivisionError):
            find_generated(lambda: 1 / 0)
        assert sys.getprofile() is profiler
    finally:
        sys.setprofile(before)


_GRAPH = '''\
# AOT ID: ['0_inference']
from types import SimpleNamespace


def nothing(*_, **__):
    pass


torch = SimpleNamespace(ops=SimpleNamespace(sort=nothing))
extern_kernels = SimpleNamespace(mm=nothing, addmm=nothing)
triton_mine = SimpleNamespace(run=nothing, launchers=[], text="""
import triton
# Source Nodes: [y]
@triton.jit
def triton_mine(x, XBLOCK : tl.constexpr):
    pass  # nothing
""")
cpp_native = nothing
native = """
#include "/tmp/someone/c/2r/c2rnilspx43ivnzu4uieul65kx65dfhfbptbh5og4wk6rqebuxoo.h"
void kernel() { a(); /* why */ b(); } // then
"""


class Runner:
    def partition_0(self, args):
        triton_mine.run(args[0], stream=0)
        extern_kernels.mm(args[0], args[0], out=args[0])

    def call(self, args):
        self.partition_0(args)
        cpp_native(args)
        torch.ops.sort(args[0])


call = Runner().call


def benchmark(args):
    extern_kernels.addmm(args)
'''


def _graph(path: Path, text: str) -> Callable[[], object]:
    """A call of a double of a module that inductor writes, whose kernels do nothing."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    names: dict[str, Any] = {"__name__": f"{inductor._MODULES}{path.stem}"}
    exec(compile(text, str(path), "exec"), names)
    return lambda: names["call"]([1])


def test_a_graph_in_partitions_is_told_in_order_and_what_is_not_called_is_not(
    tmp_path: Path,
) -> None:
    told = dict(find_generated(_graph(tmp_path / "a.py", _GRAPH)))
    assert told["generated calls"] == "triton_mine, extern_kernels.mm, cpp_native, torch.ops.sort"
    assert told["triton_mine configuration not read"].startswith("ValueError")


@pytest.mark.parametrize(
    ("before", "after", "is_same"),
    [
        ("/tmp/someone/c/2r/c2rnilspx43ivnzu4uieul65kx65dfhfbptbh5og4wk6rqebuxoo", "/x/c", True),
        ("/* why */", "", True),
        (" // then", "", True),
        ("    pass  # nothing", "    pass", True),
        ("Source Nodes: [y]", "Source Nodes: [z]", True),
        ("AOT ID: ['0_inference']", "AOT ID: ['3_inference']", True),
        ("b();", "c();", False),
        ("XBLOCK : tl", "YBLOCK : tl", False),
        ("cpp_native(args)", "cpp_native(args, 1)", False),
    ],
)
def test_comments_and_paths_are_no_code(
    tmp_path: Path, before: str, after: str, is_same: bool
) -> None:
    one = dict(find_generated(_graph(tmp_path / "one" / "a.py", _GRAPH)))
    assert before in _GRAPH
    other = dict(find_generated(_graph(tmp_path / "b.py", _GRAPH.replace(before, after))))
    assert (one["generated code"] == other["generated code"]) == is_same


def test_a_graph_that_is_gone_is_said_to_be_not_read(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    call = _graph(path, _GRAPH)
    path.unlink()
    ((name, text),) = find_generated(call)
    assert name == "generated code not read"
    assert text.startswith(f"torch {torch.__version__}: FileNotFoundError")


def test_another_choice_is_told_by_compare() -> None:
    def chosen(calls: str, code: str, **more: str) -> Any:
        told = {"generated calls": calls, "generated code": code, **more}
        return replace(cell((1.0,)), identity=tuple(told.items()))

    library = chosen("extern_kernels.mm, triton_add", "a" * 16)
    own = chosen("triton_tem_mm, triton_add", "b" * 16)
    said = describe_differences(library, own)
    assert said == (
        "generated calls extern_kernels.mm → triton_tem_mm",
        "generated code changed",
    )
    names = {
        "triton_add configuration": "num_warps 4, XBLOCK 128",
        "triton_add registers": "used 32",
    }
    wider = {
        "triton_add configuration": "num_warps 4, XBLOCK 256",
        "triton_add registers": "used 40",
    }
    said = describe_differences(chosen("x", "a", **names), chosen("x", "a", **wider))
    assert said == (
        "triton_add configuration XBLOCK 128 → 256",
        "triton_add registers used 32 → 40",
    )
