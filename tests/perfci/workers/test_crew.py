"""Sides in processes of their own: they take turns, and what ends one is no fault of the other."""

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
import scratch
import sided
import torch

from perfci.config import load_config
from perfci.device import cpu
from perfci.gate.environments import put_into
from perfci.history.model import Measurement, Status
from perfci.kernel import discover
from perfci.plan import Target
from perfci.progress import LineObserver
from perfci.run import measure, measure_pair
from perfci.selection import Selection, select
from perfci.workers.passes import PassServer

_CASES = scratch.CASES.rpartition("\n[[check]]")[0]
_WHERE = """\
import atexit
import sys
from time import monotonic_ns

told = open("{log}", "a", buffering=1)
told.write(f"# {{sys.path}}\\n")


def run(x, a, b):
    began_ns = monotonic_ns()
    y = a * x + b
    told.write(f"{{began_ns}} {{monotonic_ns()}}\\n")
    return y
"""
_LATE = """\
calls = []


def run(x, a, b):
    calls.append(None)
    if len(calls) > 45:  # checked, warm, and about to be read
        {statement}
    return a * x + b
"""
_FORGES = """\
import os
import stat


def run(x, a, b):
    for fd in range(3, 100):
        try:
            if stat.S_ISFIFO(os.fstat(fd).st_mode):
                os.write(fd, b'["turn", 900, {"block": true}]\\n')
        except OSError:
            pass
    return a * x + b
"""
BAD: dict[str, tuple[str, str, str]] = {
    "wrong.py": ("def run(x, a, b):\n    return x\n", "wrong_values", ""),
    "raises_late.py": (_LATE.format(statement="raise ValueError('no')"), "runtime_error", "no"),
    "dies.cpp": (scratch.body("*(volatile int *)8 = 1;"), "runtime_error", "SIGSEGV"),
    "dies_late.py": (
        "import os\n" + _LATE.format(statement="os._exit(3)"),
        "runtime_error",
        "exited with code 3",
    ),
    "hangs_late.py": (
        "import signal\n" + _LATE.format(statement="while True: signal.pause()"),
        "timeout",
        "no answer within 8 s",
    ),
    "imports_nothing.py": ("import nowhere\n", "build_failed", "No module named 'nowhere'"),
    "forges.py": (_FORGES, "runtime_error", "pipe was written to"),
}
"""What the second side does, what becomes of it, and what is said."""


@dataclass(frozen=True)
class Passed:
    """The rows of both sides by variant and case, and where they ran."""

    baseline: Mapping[tuple[str, str], Measurement]
    contender: Mapping[tuple[str, str], Measurement]
    folder: Path


@pytest.fixture(scope="module")
def passed(tmp_path_factory: pytest.TempPathFactory) -> Passed:
    """Two passes of sides in two environments of this Python, of which many do not get far."""
    folder = tmp_path_factory.mktemp("crew")
    good = {name.replace(".", "__"): scratch.EAGER for name in BAD if name.endswith(".py")}
    sides = []
    for number, name in enumerate(("baseline", "contender")):
        root = scratch.quick(folder / name, timeout_s=8, cell_budget_s=0.05)
        bad = {each.replace(".", "__"): text for each, (text, _, _) in BAD.items()}
        scratch.write_kernel(
            root,
            cases__toml=_CASES,
            **({"dies__cpp": scratch.PLAIN, **good} if number == 0 else bad),
            plain__cpp=scratch.PLAIN,
            where__py=_WHERE.format(log=folder / name / "log"),
        )
        kernels = put_into(sided.installation(name), discover(root / "kernels"))
        sides.append(select(kernels, Selection(), "cpu"))
    measured = measure_pair(
        *sides,
        load_config(folder / "baseline", environment={}, cache=str(folder / "cache")),
        target=Target(name="cpu", device=cpu()),
        server=PassServer({}),
        passes=2,
        observer=LineObserver(),
    )
    first, second = (
        {(row.variant, row.case): row for row in each.measurements} for each in measured
    )
    return Passed(first, second, folder)


@pytest.mark.parametrize("variant", ["plain", "where"])
def test_both_sides_have_the_same_passes(passed: Passed, variant: str) -> None:
    before, after = passed.baseline[variant, "large"], passed.contender[variant, "large"]
    assert before.status is after.status is Status.PASSED, (before.message, after.message)
    assert [each.index for each in before.passes] == [each.index for each in after.passes] == [0, 1]
    assert all(len(each.samples_ns) > 4 for row in (before, after) for each in row.passes)
    assert passed.contender[variant, "one"].status is Status.PASSED


def _calls(passed: Passed, name: str) -> list[tuple[int, int, str]]:
    """When each call of a side began and ended."""
    lines = (passed.folder / name / "log").read_text().splitlines()
    calls = [line.split() for line in lines if not line.startswith("#")]
    return [(int(began), int(ended), name) for began, ended in calls]


def test_no_side_runs_while_the_other_does_and_they_take_many_turns(passed: Passed) -> None:
    calls = sorted(_calls(passed, "baseline") + _calls(passed, "contender"))
    pairs = list(pairwise(calls))
    assert all(one[1] <= other[0] for one, other in pairs)
    assert sum(one[2] != other[2] for one, other in pairs) > 20


def test_perfci_is_all_that_an_environment_gets_of_where_perfci_is(passed: Passed) -> None:
    lines = (passed.folder / "contender" / "log").read_text().splitlines()
    (path,) = {line for line in lines if line.startswith("#")}
    folders = ast.literal_eval(path.removeprefix("#").strip())
    assert str(Path(torch.__file__).parents[1]) in folders
    assert str(Path(__file__).parents[3]) not in folders


@pytest.mark.parametrize("file", BAD)
def test_what_one_side_does_is_its_own_row(passed: Passed, file: str) -> None:
    variant, (_, status, message) = file.partition(".")[0], BAD[file]
    before, after = passed.baseline[variant, "large"], passed.contender[variant, "large"]
    assert (after.status.value, after.passes) == (status, ())
    assert message in after.message
    assert before.status is Status.MISSING
    assert before.message.startswith("not timed: the other side has nothing to pair with")


@pytest.mark.parametrize("file", BAD)
def test_a_case_that_is_only_checked_is_each_side_s_own(passed: Passed, file: str) -> None:
    assert passed.baseline[file.partition(".")[0], "one"].status is Status.PASSED


def test_a_row_says_of_which_environment_it_is(passed: Passed) -> None:
    for side, digest in ((passed.baseline, "baseline"), (passed.contender, "contender")):
        assert dict(side["plain", "large"].identity)["own environment"] == digest


def test_sides_of_one_environment_share_its_process(tmp_path: Path) -> None:
    told = tmp_path / "told"
    asks = f"import os\n\nopen({str(told)!r}, 'a').write(f'{{os.getpid()}} ')\n\n\n{scratch.EAGER}"
    sides = []
    for name in ("one", "other"):
        root = scratch.quick(tmp_path / name)
        scratch.write_kernel(root, cases__toml=_CASES, asks__py=f"# {name}\n{asks}")
        kernels = put_into(sided.installation("shared"), discover(root / "kernels"))
        sides.append(select(kernels, Selection(), "cpu"))
    measured = measure_pair(
        *sides,
        load_config(tmp_path / "one", environment={}, cache=str(tmp_path / "cache")),
        target=Target(name="cpu", device=cpu()),
        server=PassServer({}),
        passes=1,
        observer=LineObserver(),
    )
    rows = [row for each in measured for row in each.measurements]
    assert {row.status for row in rows} == {Status.PASSED}, [row.message for row in rows]
    pids = told.read_text().split()
    assert (len(pids), len(set(pids))) == (2, 1)


def test_one_side_alone_is_measured_in_its_environment(tmp_path: Path) -> None:
    root = scratch.quick(tmp_path / "root")
    dies = scratch.body("*(volatile int *)8 = 1;")
    scratch.write_kernel(root, cases__toml=_CASES, plain__cpp=scratch.PLAIN, dies__cpp=dies)
    kernels = put_into(sided.installation("own"), discover(root / "kernels"))
    measured = measure(
        select(kernels, Selection(), "cpu"),
        load_config(root, environment={}, cache=str(tmp_path / "cache")),
        target=Target(name="cpu", device=cpu()),
        server=PassServer({}),
        passes=1,
        observer=LineObserver(),
    )
    rows = {(row.variant, row.case): row for row in measured.measurements}
    assert {rows["plain", case].status for case in ("large", "one")} == {Status.PASSED}
    assert {rows["dies", case].status for case in ("large", "one")} == {Status.RUNTIME_ERROR}
    assert "SIGSEGV" in rows["dies", "large"].message
