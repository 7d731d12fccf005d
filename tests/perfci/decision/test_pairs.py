"""Two sides of one cell in the same passes: what becomes of both, whatever one of them does."""

from pathlib import Path

import pytest
import scratch

from perfci.build import build
from perfci.config import load_config
from perfci.device import cpu
from perfci.entry import load_again, load_entry
from perfci.history.model import Measurement, Status
from perfci.kernel import discover
from perfci.plan import Target
from perfci.progress import LineObserver
from perfci.run import measure_pair
from perfci.selection import Selection, select, variants_of
from perfci.workers.passes import PassServer

_SLOW = scratch.body("for (volatile int i = 0; i < 400000; i = i + 1) {}")
_WRONG = scratch.PLAIN.replace("+ b;", "- b;")
_LATE = scratch.body("static int calls = 0; if (++calls > 400) *(volatile int *)8 = 1;")
_LATE_RAISE = """\
calls = []


def run(x, a, b):
    calls.append(None)
    if len(calls) > 45:  # checked, warm, and about to be read
        raise ValueError("no more of it")
    return a * x + b
"""
_INLINE = scratch.PLAIN.replace(
    'extern "C"', 'inline int &calls() { static int count = 0; return count; }\n\nextern "C"', 1
).replace("  for (int64_t", "  ((float *)y->data)[0] = (float)++calls(); return 0;\n  for (int64_t")
_COUNTS = scratch.body("static int calls = 0; ((float *)y->data)[0] = (float)++calls; return 0;")


def _measured(
    folder: Path, baseline: dict[str, str], contender: dict[str, str], *, passes: int = 2
) -> tuple[dict[str, Measurement], dict[str, Measurement]]:
    """The rows of each side by case."""
    sides = []
    for name, files in (("baseline", baseline), ("contender", contender)):
        root = scratch.quick(folder / name, timeout_s=60)
        scratch.write_kernel(root, **files)
        kernels = discover(root / "kernels")
        sides.append(select(kernels, Selection(cases=("large", "one")), "cpu"))
    config = load_config(folder / "baseline", environment={}, cache=str(folder / "cache"))
    measured = measure_pair(
        *sides,
        config,
        target=Target(name="cpu", device=cpu()),
        server=PassServer({}),
        passes=passes,
        observer=LineObserver(),
    )
    first, second = ({row.case: row for row in side.measurements} for side in measured)
    return first, second


def test_both_sides_have_the_same_passes_and_their_own_latencies(tmp_path: Path) -> None:
    quick, slow = _measured(tmp_path, {"plain__cpp": scratch.PLAIN}, {"plain__cpp": _SLOW})
    before, after = quick["large"], slow["large"]
    assert [each.index for each in before.passes] == [each.index for each in after.passes] == [0, 1]
    for a, b in zip(before.passes, after.passes, strict=True):
        assert len(a.samples_ns) > 4
        assert min(b.samples_ns) > min(a.samples_ns)
    assert before.source_digest != after.source_digest
    assert quick["one"].status is slow["one"].status is Status.PASSED


@pytest.mark.parametrize("kind", ["cpp", "py"])
def test_the_same_code_is_loaded_twice(tmp_path: Path, kind: str) -> None:
    text = {"cpp": scratch.PLAIN, "py": scratch.EAGER}[kind]
    first, second = _measured(tmp_path, {f"same__{kind}": text}, {f"same__{kind}": text})
    assert first["large"].passes
    assert second["large"].passes
    assert first["large"].source_digest == second["large"].source_digest


@pytest.mark.parametrize("text", [_COUNTS, _INLINE], ids=["static", "inline"])
def test_code_that_is_loaded_twice_has_its_state_twice(tmp_path: Path, text: str) -> None:
    import torch  # noqa: PLC0415

    scratch.write_kernel(tmp_path, counts__cpp=text)
    config = load_config(tmp_path, environment={}, cache=str(tmp_path / "cache"))
    (built,) = build(variants_of(select(discover(config.kernels), Selection(), "cpu")), config)
    x, y = torch.ones(1), torch.zeros(1)
    first, again = (
        entry.bind({"x": x, "a": 1.0, "b": 1.0}, [y])
        for entry in (load_entry(built), load_again(built))
    )
    seen = []
    for call in (first, first, again, first):
        call()
        seen.append(y.item())
    assert seen == [1.0, 2.0, 1.0, 3.0]
    assert built.library is not None
    assert not list(built.library.parent.glob(".again*"))


@pytest.mark.parametrize(
    ("name", "text", "status", "words"),
    [
        ("plain.cpp", "int perfci_run(\n", Status.BUILD_FAILED, "error"),
        ("plain.cpp", _WRONG, Status.WRONG_VALUES, ""),
        ("plain.cpp", _LATE, Status.RUNTIME_ERROR, "killed by SIGSEGV"),
    ],
    ids=["build", "wrong", "dies while it is timed"],
)
@pytest.mark.parametrize("bad_first", [True, False])
def test_beside_a_side_that_fails_the_other_is_not_timed(
    tmp_path: Path, name: str, text: str, status: Status, words: str, bad_first: bool
) -> None:
    files = [{name.replace(".", "__"): each} for each in (text, scratch.PLAIN)]
    sides = _measured(tmp_path, *(files if bad_first else files[::-1]))
    bad, good = sides if bad_first else sides[::-1]
    assert bad["large"].status is status
    assert words in bad["large"].message
    assert good["large"].status is Status.MISSING
    assert good["large"].message == (
        f"not timed: the other side has nothing to pair with ({status.value.replace('_', ' ')})"
    )
    assert good["one"].status is Status.PASSED  # what is only checked needs no other side


def test_what_a_side_raises_while_it_is_timed_is_its_own(tmp_path: Path) -> None:
    late, good = _measured(tmp_path, {"a__py": _LATE_RAISE}, {"a__py": scratch.EAGER})
    assert late["large"].status is Status.RUNTIME_ERROR
    assert "no more of it" in late["large"].message
    assert good["large"].status is Status.MISSING


_EASES = """\
calls = []


def run(x, a, b):
    calls.append(None)
    if 45 < len(calls) < LAST:
        x.zero_()
    return a * x + b
"""


@pytest.mark.parametrize("bad_first", [True, False])
def test_a_side_that_changes_the_inputs_of_both_is_told_from_the_other(
    tmp_path: Path,
    bad_first: bool,
) -> None:
    files = ({"a__py": _EASES.replace("LAST", "10**9")}, {"a__py": scratch.EAGER})
    sides = _measured(tmp_path, *(files if bad_first else files[::-1]), passes=1)
    bad, good = sides if bad_first else sides[::-1]
    assert bad["large"].status is Status.WRONG_VALUES
    assert "changes its input 'x'" in bad["large"].message
    assert good["large"].status is Status.MISSING


def test_where_a_change_of_inputs_is_nobodys_for_sure_neither_is_timed(tmp_path: Path) -> None:
    files = ({"a__py": _EASES.replace("LAST", "60")}, {"a__py": scratch.EAGER})
    for side in _measured(tmp_path, *files, passes=1):
        assert side["large"].status is Status.INVALID_TIMING
        assert "one of the two sides changes its input 'x'" in side["large"].message


_HELPED = """\
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "parts"))
import sums


def run(x, a, b):
    return sums.add(a * x, b)
"""
_SUMS = "def add(x, y):\n    return x + y + {more}\n"


@pytest.mark.parametrize("bad_first", [True, False])
def test_each_side_has_the_modules_beside_it(tmp_path: Path, bad_first: bool) -> None:
    for name, is_bad in (("baseline", bad_first), ("contender", not bad_first)):
        parts = tmp_path / name / "kernels/axpb/parts"
        parts.mkdir(parents=True)
        (parts / "sums.py").write_text(_SUMS.format(more=int(is_bad)))
    sides = _measured(tmp_path, {"helped__py": _HELPED}, {"helped__py": _HELPED}, passes=1)
    bad, good = sides if bad_first else sides[::-1]
    assert bad["one"].status is Status.WRONG_VALUES
    assert good["one"].status is Status.PASSED
