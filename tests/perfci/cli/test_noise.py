"""A testbed against itself, as a user asks for it."""

import json
import shutil
from pathlib import Path

import pytest
import scratch

from perfci.history.codec import read_run_file
from perfci.history.stores import open_store


@pytest.fixture(scope="module")
def studied(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A repository with a run and a later study of the same commit, and what the study said."""
    root = scratch.quick(tmp_path_factory.mktemp("noise") / "root", anchors=True)
    scratch.write_kernel(
        root, plain__cpp=scratch.PLAIN, wrong__py="def run(x, a, b):\n    return x\n"
    )
    (root / ".gitignore").write_text(".perfci/\n")
    scratch.git(root, "init", "-q")
    scratch.commit_all(root, "first")
    assert scratch.call(root, "run", "--variant", "plain", "--passes", "3").returncode == 0
    ended = scratch.call(root, "noise", "--passes", "3")
    assert ended.returncode == 1, ended.stderr
    return root, ended.stdout


def test_a_study_says_what_lies_between_the_sides_and_what_could_be_seen(
    studied: tuple[Path, str],
) -> None:
    root, said = studied
    assert said.startswith("noise · 3 passes · ")
    runs = said.splitlines()[1].removeprefix("runs ").split(" and ")
    for run_id in runs:
        assert f"run {run_id} " in scratch.call(root, "show", run_id).stdout
    assert len(set(runs)) == 2
    assert "axpb · cpu/1\n  variant  case    apart" in said
    assert "perfci_copy · cpu/1" in said
    assert "✗ wrong values · axpb/wrong/large" in said
    few = "Too few passes: 3 know a spread to some 50 %, and what more paired passes would call no"
    assert few in said.replace("\n", " ")
    assert "at a threshold of +5.0 %, in one of 1 cell." in said.replace("\n", " ")
    assert max(map(len, said.splitlines())) <= 80


def test_its_two_runs_are_a_pair_and_in_no_history(studied: tuple[Path, str]) -> None:
    root, _ = studied
    with open_store(f"sqlite:///{root}/.perfci/history.db") as store:
        second, first = store.runs(studies=True)
        (plain,) = store.runs(studies=False)
        assert first.pair == second.pair != ""
        assert plain.pair == ""
        indices = [
            [(row.variant, row.case, each.index) for row in run.measurements for each in row.passes]
            for run in (store.run(first.run_id), store.run(second.run_id))
        ]
        assert indices[0] == indices[1] != []
    assert plain.run_id in scratch.call(root, "show").stdout
    assert plain.run_id in scratch.call(root, "show", "HEAD").stdout
    listed = json.loads(scratch.call(root, "history", "ls", "--json").stdout)
    assert {each["trigger"] for each in listed} == {"local", "noise"}


def test_comparisons_on_the_testbed_take_their_noise_from_it(
    studied: tuple[Path, str], tmp_path: Path
) -> None:
    root = shutil.copytree(studied[0], tmp_path / "root", symlinks=True)
    (root / "notes").write_text("nothing that is measured\n")
    scratch.commit_all(root, "second")
    assert scratch.call(root, "run", "--variant", "plain", "--passes", "3").returncode == 0
    said = json.loads(scratch.call(root, "compare", "HEAD~1", "HEAD", "--json").stdout)
    (compared,) = [each for each in said["comparisons"] if each["ratio"] is not None]
    assert (compared["is_studied"], compared["paired_passes"]) == (True, 0)
    assert {each["is_studied"] for each in said["anchors"]} == {True}


def test_a_study_goes_into_files_and_as_json(tmp_path: Path) -> None:
    root = scratch.quick(tmp_path / "root")
    scratch.write_kernel(root)
    scratch.git(root, "init", "-q")
    scratch.commit_all(root, "first")
    ended = scratch.call(root, "noise", "--passes", "3", "--out", "files", "--json")
    assert ended.returncode == 0, ended.stderr
    said = json.loads(ended.stdout)
    (cell,) = said["cells"]
    assert said["ladder"] == [6, 12, 24, 48]
    names = {path.name for path in (root / "files").iterdir()}
    assert names == {f"{run_id}.json.gz" for run_id in said["runs"]}
    assert said["load"] == "" or said["load"].startswith("A busy machine: others used ")
    assert said["shortage"].startswith("Too few passes: 3 know a spread to some 50 %, ")
    assert cell["floor"]["paired"]["degrees"] == 2.0
    assert cell["visible"] == sorted(cell["visible"], reverse=True)
    assert len(list((root / "files").glob("*.json.gz"))) == 2
    assert not (root / ".perfci").exists()


def test_only_what_is_timed_is_looked_at(tmp_path: Path) -> None:
    root = scratch.quick(tmp_path / "root", anchors=True)
    scratch.write_kernel(root)
    scratch.git(root, "init", "-q")
    scratch.commit_all(root, "first")
    ended = scratch.call(root, "noise", "--passes", "3", "--out", "files")
    assert ended.returncode == 0, ended.stderr
    for path in (root / "files").glob("*.json.gz"):
        rows = read_run_file(path).measurements
        assert {row.case for row in rows if row.kernel == "axpb"} == {"large"}
    ended = scratch.call(root, "noise", "--passes", "3", "--case", "odd", "--out", "files")
    assert ended.returncode == 3
    assert "nothing that is timed on cpu with this selection; choose others" in ended.stderr


def test_too_few_passes_say_nothing_of_noise(tmp_path: Path) -> None:
    root = scratch.quick(tmp_path / "root")
    scratch.write_kernel(root)
    ended = scratch.call(root, "noise", "--passes", "2")
    assert ended.returncode == 2
    assert "2 is not in the range 3<=x<=1000" in ended.stderr
