"""perfci gate: a head judged by its base, as a user asks for it."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import scratch
from stores import make_store

from perfci.config import load_config
from perfci.error_bounds import Bounds, OutputBound, write_bounds
from perfci.errors import UsageError
from perfci.gate.changes import find_changes
from perfci.gate.sides import check_out, find_ends
from perfci.history.model import RunSummary
from perfci.history.stores import open_store
from perfci.kernel import discover


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return scratch.on_topic(tmp_path / "root")


def _stored(root: Path) -> list[RunSummary]:
    with open_store(f"sqlite:///{root}/.perfci/history.db") as store:
        return list(store.runs())


def _edit(root: Path, name: str, before: str, after: str) -> None:
    path = root / "kernels/axpb" / name
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))


def test_the_same_code_is_not_measured(root: Path, call: Callable[..., Any]) -> None:
    _edit(root, "plain.cpp", "#include", "// what it does\n#include")
    (root / "README.md").write_text("A kernel.\n")
    scratch.commit_all(root, "Comment")
    ended = call(root, "gate")
    assert ended.code == 0, ended.err
    assert "base · " in ended.out
    assert "merge base of HEAD and main · one" in ended.out
    assert "3 cells run the same code on both sides" in ended.out
    assert "nothing had to be timed" in ended.out
    assert _stored(root) == []


def test_cells_of_the_same_code_that_are_known_to_be_wrong_are_named_and_cost_nothing(
    root: Path,
) -> None:
    (root / "kernels/axpb/plain.cpp").write_text(
        scratch.PLAIN.replace("+ b;", "+ (x->shape[0] == 1001 ? 0 : b);")
    )
    scratch.git(root, "switch", "-q", "main")
    scratch.commit_all(root, "Break it at odd sizes")
    measured = scratch.perfci(root, "run", "--passes", "1")
    assert measured.returncode == 1, measured.stderr
    (run,) = _stored(root)
    (root / "README.md").write_text("A kernel.\n")
    ended = scratch.perfci(root, "gate", "--base", "HEAD")
    assert ended.returncode == 0, ended.stderr
    text = " ".join(ended.stdout.split())
    assert (
        "unchanged without being measured 1 of 3 cells of the same code failed when the base was "
        "last measured, and the head changes nothing of that: axpb/plain/odd: wrong values: "
    ) in text
    assert f"; run {run.run_id} " in text
    as_json = json.loads(scratch.perfci(root, "gate", "--base", "HEAD", "--json").stdout)
    (failed,) = as_json["gates"][0]["failed_at_base"]
    assert (failed["key"]["case"], failed["status"], failed["run_id"]) == (
        "odd",
        "wrong_values",
        run.run_id,
    )
    assert as_json["gates"][0]["exit_code"] == 0
    knows_nothing = scratch.perfci(root, "gate", "--base", "HEAD", "--out", root / ".perfci/out")
    assert knows_nothing.returncode == 0, knows_nothing.stderr
    assert "last measured" not in knows_nothing.stdout


def test_a_kernel_that_is_gone_or_changed_is_not_passed_over(
    root: Path, call: Callable[..., Any]
) -> None:
    scratch.write_kernel(root, "twin")
    scratch.write_kernel(root, "third")
    scratch.commit_all(root, "more kernels")
    scratch.git(root, "rm", "-qr", "kernels/twin")
    _edit(root, "cases.toml", "count = 65536", "count = 64")
    _edit(root, "cases.toml", 'name = "odd"\ntier = "smoke"', 'name = "odd"')
    reference = root / "kernels/third/reference.py"
    reference.write_text(reference.read_text().replace("return a * x + b", "return b + a * x"))
    (root / "pyproject.toml").write_text(
        (root / "pyproject.toml").read_text() + "threshold = 0.5\n"
    )
    scratch.commit_all(root, "less")
    ended = call(root, "gate", "--base", "HEAD~1")
    assert ended.code == 9, ended.err
    lines = ended.out.splitlines()
    rules = lines.index("The head changes the rules. Nothing of it counts here:")
    gone = lines.index("– missing · twin/plain · 3 cells: large cpu/1, odd, one")
    assert rules < gone
    assert lines[rules + 1 : rules + 6] == [
        "  · [tool.perfci] threshold: 0.05 → 0.5",
        "  · axpb: case large: arguments count = 65536 → count = 64",
        "  · axpb: case odd: tier smoke → full",
        "  · third: the reference is changed",
        "  · twin: the kernel is removed",
    ]
    assert lines[gone + 1] == "    the head has no such kernel"
    assert "≠ incomparable · axpb/plain/large cpu/1" in lines
    assert "    the head changes the case, and with it what is measured" in lines
    assert "≠ incomparable · third/plain · 3 cells: large cpu/1, odd, one" in lines
    assert max(map(len, lines)) <= 80


def test_a_head_without_kernels_misses_all_and_no_name_is_neither_sides(
    root: Path, call: Callable[..., Any]
) -> None:
    scratch.git(root, "rm", "-qr", "kernels")
    scratch.commit_all(root, "nothing left")
    assert call(root, "gate").code == 9
    assert "no kernel 'axpp' (did you mean 'axpb'?)" in call(root, "gate", "--kernel", "axpp").err


def test_what_a_side_has_wrong_is_said_of_that_side(root: Path, call: Callable[..., Any]) -> None:
    _edit(root, "cases.toml", "count = 1001", "cuont = 1001")
    scratch.commit_all(root, "misspelt")
    make_store(f"sqlite:///{root}/.perfci/history.db").close()
    ended = call(root, "gate")
    assert (ended.code, ended.err.count("\n")) == (3, 1)
    assert ended.err.startswith("perfci: the head: kernels/axpb/cases.toml: [[check]] 'odd': unk")
    _edit(root, "cases.toml", "cuont = 1001", "count = 1001")
    scratch.commit_all(root, "right")
    ended = call(root, "gate", "--base", "HEAD~1")
    assert ended.err.startswith("perfci: the base: kernels/axpb/cases.toml: ")


def test_a_module_of_the_working_tree_is_no_side_of_its_own(
    root: Path, call: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(root))
    (root / "mine.py").write_text(scratch.EAGER)
    scratch.write_kernel(root, variants__toml='[mine]\nfunction = "mine:run"\n')
    scratch.commit_all(root, "a function")
    (root / "mine.py").write_text(scratch.EAGER + "\n")
    scratch.commit_all(root, "changed")
    ended = call(root, "gate", "--base", "HEAD~1", "--variant", "mine")
    assert ended.code == 7, ended.err
    text = " ".join(ended.out.split())
    assert "the head changes mine, of which both sides would run the working tree's" in text
    scratch.commit_all(root, "nothing")
    unchanged = call(root, "gate", "--base", "HEAD~1", "--variant", "mine", "--budget", "0.0001")
    assert unchanged.code == 0, unchanged.err
    assert "1 inconclusive" in unchanged.out


def test_a_gate_as_json_says_what_a_script_needs(root: Path, call: Callable[..., Any]) -> None:
    scratch.git(root, "tag", "v1.0")
    scratch.commit_all(root, "Nothing")
    ended = call(root, "gate", "--json")
    assert ended.code == 0, ended.err
    (gate,) = json.loads(ended.out)["gates"]
    assert (gate["exit_code"], gate["passes"], gate["ending"]) == (0, 0, None)
    assert gate["base"]["sha"] == scratch.git(root, "rev-parse", "main")
    assert gate["found"] == "merge base of HEAD and main"
    assert gate["checked"] == 0
    assert [each["key"]["contract"] for each in gate["comparisons"]] == ["cpu/1", "", ""]
    for compared in gate["comparisons"]:
        assert (compared["verdict"], compared["accepted"]) == ("unchanged", False)
        assert compared["reason"] == "the same code: not measured"


@pytest.mark.parametrize("form", ["markdown", "github"])
def test_a_gate_as_markdown(root: Path, call: Callable[..., Any], form: str) -> None:
    scratch.commit_all(root, "Look at <this>")
    ended = call(root, "gate", "--format", form)
    assert ended.out.startswith("### perfci gate: 3 unchanged\n\n`")
    assert "(Look at &#60;this&#62;) against `" in ended.out


def test_bounds_and_tolerances_are_the_bases(root: Path, call: Callable[..., Any]) -> None:
    folder = root / "kernels" / "axpb"
    (kernel,) = discover(root / "kernels")
    case = kernel.cases[0]
    output = OutputBound(largest=0.5, rms=0.3, max_abs_error=0.0, rms_error=0.0)
    strict = Bounds(
        workload=kernel.workload_digest(case), seeds=20, torch="2", device="", outputs=(output,)
    )
    place = ("cpu", case.name)
    plain = (folder / "plain.cpp").read_text()
    (folder / "plain.cpp").write_text(f"// perfci: tolerance = {{ max_ratio = 2.0 }}\n{plain}")
    write_bounds(folder / "bounds.toml", {place: strict}, [case.name])
    scratch.commit_all(root, "bounds")
    (folder / "plain.cpp").write_text(plain.replace("+ b;", "* 1.00001f + b;"))
    loose = replace(strict, outputs=(replace(output, largest=1e4, rms=1e4),))
    write_bounds(folder / "bounds.toml", {place: loose}, [case.name])
    scratch.commit_all(root, "looser")
    ended = call(root, "gate", "--base", "HEAD~1", "--case", case.name)
    assert ended.code == 1, ended.err
    text = " ".join(ended.out.split())
    assert f"axpb: bounds of {case.name} on cpu: largest 2, rms 0.9 → largest 4e+04" in text
    assert "axpb: variant plain: tolerance max_ratio 2.0 → 4.0" in text
    assert f"✗ incorrect · axpb/plain/{case.name}" in text


def test_a_kernels_folder_is_taken_from_each_side(root: Path, call: Callable[..., Any]) -> None:
    scratch.git(root, "mv", "kernels", "ops")
    scratch.commit_all(root, "moved")
    assert call(root, "gate").code == 9  # the head has none under the name that is the default
    settings = (root / "pyproject.toml").read_text()
    (root / "pyproject.toml").write_text(settings + 'kernels = "ops"\n')
    scratch.commit_all(root, "configured")
    assert "3 cells run the same code" in call(root, "gate").out
    again = call(root, "gate", "--base", "HEAD~1", "--kernels", "ops")
    assert "3 cells run the same code" in again.out
    away = call(root, "gate", "--kernels", str(root.parent))
    assert (away.code, away.err.count("\n")) == (3, 1)
    assert "is outside of" in away.err


def test_a_first_commit_with_kernels_has_new_ones_only(
    root: Path, call: Callable[..., Any]
) -> None:
    scratch.git(root, "switch", "-q", "--orphan", "empty")
    scratch.commit_all(root, "nothing yet")
    scratch.git(root, "checkout", "-q", "main", "--", ".")
    scratch.write_kernel(root, broken__cpp="int perfci_run(\n")
    (root / "kernels/axpb/plain.cpp").unlink()
    scratch.commit_all(root, "the first")
    ended = call(root, "gate", "--base", "HEAD~1")
    assert ended.code == 9, ended.err
    assert "axpb: a new kernel, judged by its own reference" in ended.out
    said = (
        "– missing · axpb/broken · 3 cells: large cpu/1, odd, one\n"
        "    build failed: kernels/axpb/broken.cpp:1"
    )
    assert said in ended.out


def test_what_a_variant_may_is_the_base_s_to_say(root: Path, tmp_path: Path) -> None:
    _edit(root, "plain.cpp", "#include", "// perfci: nondeterministic = true\n#include")
    scratch.commit_all(root, "lenient")
    config = load_config(root, environment={"PERFCI_CACHE": str(tmp_path / "cache")})
    ends = find_ends(root, config, base=None, head=None)
    with check_out(config, root, ends) as sides:
        ((judged,),) = (each.variants for each in sides.contender)
        assert not judged.declaration.nondeterministic
        assert find_changes(sides) == ["axpb: variant plain: nondeterministic no → yes"]
    with (
        pytest.raises(UsageError, match="has changed while it was measured"),
        check_out(config, root, ends) as sides,
    ):
        (sides.contender[0].folder / "plain.cpp").write_text("changed")


def test_a_project_may_lie_inside_of_a_repository(tmp_path: Path, call: Callable[..., Any]) -> None:
    top = tmp_path / "top"
    project = scratch.quick(top / "inner", threshold=0.04)
    scratch.write_kernel(project)
    scratch.git(top, "init", "-q")
    scratch.commit_all(top, "one")
    (top / "README.md").write_text("Read me.\n")
    scratch.commit_all(top, "two")
    ended = call(project, "gate", "--base", "HEAD~1")
    assert ended.code == 0, ended.err
    assert "testbed · scratch" in ended.out
    assert "3 cells run the same code" in ended.out


_WRONG = scratch.PLAIN.replace("+ b;", "- b;")
_BROKEN = "int perfci_run(\n"


@pytest.mark.parametrize(
    ("before", "after", "code", "verdict"),
    [
        (scratch.PLAIN, _WRONG, 1, "1 incorrect"),
        (_WRONG, _WRONG + "int unused;\n", 0, "1 known incorrect"),
        (scratch.PLAIN, _BROKEN, 9, "1 missing"),
        (_BROKEN, _BROKEN + "int unused;\n", 9, "1 missing"),
    ],
    ids=["wrong", "wrong on both sides", "not built", "not built on both sides"],
)
def test_where_no_cell_can_be_timed_the_first_pass_is_the_last(
    tmp_path: Path, before: str, after: str, code: int, verdict: str
) -> None:
    root = scratch.quick(tmp_path / "anchored", anchors=True)
    scratch.write_kernel(root, plain__cpp=before)
    scratch.git(root, "init", "-q")
    scratch.commit_all(root, "one")
    (root / "kernels/axpb/plain.cpp").write_text(after)
    ended = scratch.perfci(root, "gate", "--base", "HEAD", "--case", "large")
    assert ended.returncode == code, ended.stdout + ended.stderr
    assert verdict in ended.stdout
    assert "1 pass in " in ended.stdout
    assert ": nothing is left that could be timed on both sides" in ended.stdout
    assert "pass 2:" not in ended.stderr


def test_what_is_checked_alone_is_checked_once_and_no_anchor_is_timed(root: Path) -> None:
    settings = (root / "pyproject.toml").read_text()
    (root / "pyproject.toml").write_text(settings.replace("anchors = false", "anchors = true"))
    scratch.commit_all(root, "Anchors")
    (root / "kernels/axpb/plain.cpp").write_text(_WRONG)
    ended = scratch.perfci(root, "gate", "--base", "HEAD", "--case", "odd")
    assert ended.returncode == 1, ended.stderr
    assert "nothing is left that could be timed on both sides" in ended.stdout
    assert ("pass 1:" in ended.stderr, "pass 2:" in ended.stderr) == (True, False)
    assert "perfci_copy" not in ended.stderr
    (root / "kernels/axpb/plain.cpp").write_text(scratch.PLAIN + "int unused;\n")
    right = scratch.perfci(root, "gate", "--base", "HEAD", "--case", "odd")
    assert right.returncode == 9, right.stderr  # a comparison of nothing is no success
    text = " ".join(right.stdout.split())
    assert "nothing is left that could be timed on both sides, and nothing was compared" in text


@pytest.mark.parametrize("broken", [_WRONG, _BROKEN], ids=["wrong", "not built"])
def test_a_gate_of_a_broken_head_leaves_its_base_what_it_was(root: Path, broken: str) -> None:
    for subject in ("one", "two"):
        (root / "notes").write_text(subject)
        scratch.commit_all(root, subject)
        measured = scratch.perfci(root, "run", "--passes", "6", "--case", "large")
        assert measured.returncode == 0, measured.stderr
    (root / "kernels/axpb/plain.cpp").write_text(broken)
    ended = scratch.perfci(root, "gate", "--base", "HEAD", "--case", "large")
    assert ended.returncode in {1, 9}, ended.stderr
    before = json.loads(scratch.perfci(root, "compare", "HEAD~1", "HEAD", "--json").stdout)
    assert {each["verdict"] for each in before["comparisons"]}.isdisjoint({"missing", "incorrect"})
    shown = scratch.perfci(root, "show", "HEAD")
    assert "1 passed, 0 failed" in shown.stdout
