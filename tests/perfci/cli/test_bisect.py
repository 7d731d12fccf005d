"""perfci bisect, as a user asks for it, where nothing needs to be measured."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import planted
import pytest
import records
import scratch
from stores import make_store

from perfci.history.model import Status
from perfci.history.stores import open_store
from perfci.reports.columns import WIDTH

CELL = ("--kernel", "axpb", "--variant", "plain", "--case", "large", "--device", "cpu")
_BROKEN = "int perfci_run(\n"
_TWO = """\
#include "one.h"
#include "two.h"
#if ONE && TWO
#error both at once
#endif
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with a commit from which on others are made."""
    root = planted.start(tmp_path / "root")
    planted.commit(root, "Begin")
    return root


def _break(root: Path, count: int, at: int, subject: str = "Break") -> list[str]:
    """So many commits, each with other code, of which the last ones do not build."""
    shas = []
    for number in range(1, count + 1):
        text = _BROKEN + f"// {number}\n" if number >= at else planted.other(number)
        shas.append(planted.commit(root, subject if number == at else f"Step {number}", text))
    return shas


def _flowing(text: str) -> str:
    """A text without its lines."""
    return " ".join(text.split())


def test_what_does_not_build_is_found_and_nothing_of_the_repository_is_touched(
    root: Path, call: Callable[..., Any]
) -> None:
    shas = _break(root, 9, 4, "Break <b>it</b>\x1b[31m")
    (root / "kernels/axpb/plain.cpp").write_text("in the middle of something\n")
    (root / "notes.txt").write_text("mine\n")
    scratch.git(root, "add", "notes.txt")
    before = planted.state(root)
    ended = call(root, "bisect", "HEAD~9", "HEAD", *CELL)
    assert ended.code == 0, ended.err
    assert planted.state(root) == before
    assert f"The first bad commit is {shas[3]}" in ended.out
    assert "Break <b>it</b>\ufffd[31m" in ended.out
    assert "the bad one is not built (does not build: axpb/plain.cpp:1:" in _flowing(ended.out)
    assert f"perfci gate --base {shas[2][:10]} --head {shas[3][:10]} --kernel axpb" in ended.out
    assert "9 commits, " in ended.out
    assert "confidence above 99.9 %" in ended.out
    assert "9 commits, about 4 more to be tested: " in ended.err
    assert max(map(len, ended.out.splitlines())) <= 80


def test_json_tells_the_same(root: Path, call: Callable[..., Any]) -> None:
    shas = _break(root, 5, 2)
    ended = call(root, "bisect", "HEAD~5", "HEAD", *CELL, "--json")
    told = json.loads(ended.out)
    assert (ended.code, told["ending"]) == (0, "found")
    assert [each["sha"] for each in told["suspects"]] == [shas[1]]
    assert told["ends"]["proof"]["symptom"] == "build_failed"
    found = {each["sha"]: each["likeness"] for each in told["steps"]}
    assert found.pop(shas[0]) == "good"
    assert set(found.values()) == {"bad"}
    assert told["steps"][0]["commit"]["sha"] == told["steps"][0]["sha"]
    (command,) = told["commands"]
    assert command[:4] == ["perfci", "gate", "--base", shas[0][:10]]
    assert told["confidence"] == 1.0


def test_a_merge_that_is_itself_to_blame_is_named_as_such(
    root: Path, call: Callable[..., Any]
) -> None:
    folder = root / "kernels/axpb"
    for name in ("one", "two"):
        (folder / f"{name}.h").write_text(f"#define {name.upper()} 0\n")
    good = planted.commit(root, "Two headers", _TWO + scratch.PLAIN)
    scratch.git(root, "switch", "-q", "-c", "topic")
    planted.commit(root, "On topic")
    two = planted.commit(root, "Set two", "#define TWO 1\n", "two.h")
    scratch.git(root, "switch", "-q", "main")
    one = planted.commit(root, "Set one", "#define ONE 1\n", "one.h")
    merge = planted.merge(root, "topic", "Merge topic")
    planted.commit(root, "After", "#define ONE 2\n", "one.h")
    planted.commit(root, "Later", "#define ONE 3\n", "one.h")
    ended = call(root, "bisect", good, "HEAD", *CELL)
    assert ended.code == 0, ended.err
    assert f"The first bad commit is the merge {merge}" in ended.out
    for parent in (one, two):
        assert f"beside its parent {parent[:10]}, which is right" in ended.out
    assert "None of its parents is bad by itself: the merge is" in ended.out


def test_a_commit_on_a_branch_that_was_merged_is_found(
    root: Path, call: Callable[..., Any]
) -> None:
    scratch.git(root, "switch", "-q", "-c", "topic")
    planted.commit(root, "Topic 1", planted.other(1))
    culprit = planted.commit(root, "Topic 2", _BROKEN)
    planted.commit(root, "Topic 3", _BROKEN + "\n")
    scratch.git(root, "switch", "-q", "main")
    for number in range(3):
        (root / "README.md").write_text(f"{number}\n")
        planted.commit(root, f"Main {number}")
    planted.merge(root, "topic", "Merge topic")
    ended = call(root, "bisect", "main~4", "main", *CELL)
    assert ended.code == 0, ended.err
    assert f"The first bad commit is {culprit}" in ended.out


def test_commits_without_the_kernel_are_skipped_and_may_leave_a_range(
    root: Path, call: Callable[..., Any]
) -> None:
    good = planted.commit(root, "Good", planted.other(1))
    scratch.git(root, "mv", "kernels/axpb", "kernels/other")
    gone = planted.commit(root, "Move away")
    also = planted.commit(root, "Still away")
    scratch.git(root, "mv", "kernels/other", "kernels/axpb")
    back = planted.commit(root, "Back, and broken", _BROKEN)
    ended = call(root, "bisect", good, "HEAD", *CELL)
    assert ended.code == 8, ended.err
    assert "skipped: it has no kernel axpb" in ended.out
    assert "Only commits that were skipped are left. The first bad one is one of" in ended.out
    for sha in (gone, also, back):
        assert f"  {sha[:10]} · " in ended.out
    assert "2 skipped" in ended.out


def test_a_commit_whose_files_are_wrong_is_skipped_around(
    root: Path, call: Callable[..., Any]
) -> None:
    planted.commit(root, "Fine 1", planted.other(1))
    text = (root / "pyproject.toml").read_text()
    (root / "pyproject.toml").write_text("[tool.perfci]\nnonsense = 1\n")
    for number in range(2, 5):
        planted.commit(root, f"Misspelt {number}", planted.other(number))
    (root / "pyproject.toml").write_text(text)
    planted.commit(root, "Fine 5", planted.other(5))
    culprit = planted.commit(root, "Break", _BROKEN)
    planted.commit(root, "Later", _BROKEN + "\n")
    ended = call(root, "bisect", "HEAD~7", "HEAD", *CELL)
    assert ended.code == 0, ended.err
    assert f"The first bad commit is {culprit}" in ended.out
    assert "skipped: commit " in ended.out
    assert "unknown key 'nonsense'" in _flowing(ended.out)


def test_ends_of_the_same_code_do_not_differ(root: Path, call: Callable[..., Any]) -> None:
    planted.commit(root, "Comment", planted.spin(planted.COUNT, "what it does"))
    ended = call(root, "bisect", "HEAD~1", "HEAD", *CELL)
    assert ended.code == 8
    assert "The ends do not differ: they run the same code" in ended.out
    assert "Are these the commits, is it this cell?" in ended.out


def test_a_good_end_that_is_none_is_said_so(root: Path, call: Callable[..., Any]) -> None:
    _break(root, 2, 1)
    ended = call(root, "bisect", "HEAD~1", "HEAD", *CELL)
    assert (ended.code, ended.out) == (9, "")
    assert "has nothing to compare with (does not build: " in ended.err
    scratch.git(root, "rm", "-qr", "kernels")
    scratch.commit_all(root, "nothing left")
    ended = call(root, "bisect", "HEAD~3", "HEAD", *CELL)
    assert ended.code == 7
    assert "cannot be tested: it has no kernel axpb" in ended.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("HEAD", "HEAD"), "are the same commit"),
        (("HEAD", "HEAD~1"), "give the good commit first, then the bad"),
        (("nowhere", "HEAD"), "no commit 'nowhere'"),
        (("HEAD~1", "--", "--all"), "'--all' is no commit"),
        (("HEAD~1", "HEAD", "--kernel", "axpp"), "no kernel 'axpp' (did you mean 'axpb'?)"),
        (("HEAD~1", "HEAD", "--case", "lagre"), "no case 'lagre' (did you mean 'large'?)"),
        (("HEAD~1", "HEAD", "--timer", "cpuu"), "no timer 'cpuu' on cpu (did you mean 'cpu'?)"),
    ],
    ids=["same", "reversed", "no good", "no bad", "no kernel", "no case", "no timer"],
)
def test_what_cannot_be_searched_is_one_line(
    root: Path, call: Callable[..., Any], arguments: tuple[str, ...], words: str
) -> None:
    planted.commit(root, "two", planted.other(2))
    ended = call(root, "bisect", *CELL, *arguments)
    assert (ended.code, ended.out) == (2, "")
    lines = [line for line in ended.err.splitlines() if line.startswith("perfci: ")]
    assert len(lines) == 1
    assert words in lines[0]
    assert "Traceback" not in ended.err


def test_without_a_record_the_cell_must_be_named(root: Path, call: Callable[..., Any]) -> None:
    planted.commit(root, "two", planted.other(2))
    for code in (6, 9):
        ended = call(root, "bisect", "HEAD~1", "HEAD", "--device", "cpu")
        assert (ended.code, ended.out) == (code, "")
        assert "name the cell with --kernel, --variant and --case" in ended.err
        make_store(f"sqlite:///{root}/.perfci/history.db").close()


def _record(root: Path, sha: str, *statuses: tuple[str, Status]) -> None:
    """Record a run at a commit in which these variants ended so at the case that is timed."""
    rows = [
        records.measurement(
            (100.0, 101.0, 99.0) if status is Status.PASSED else (),
            kernel="axpb",
            variant=variant,
            case="large",
            status=status,
        )
        for variant, status in statuses
    ]
    run = records.run(*rows, run_id=f"r{sha[:10]}", sha=sha, testbed="scratch")
    with open_store(f"sqlite:///{root}/.perfci/history.db") as store:
        store.add(run)


def test_the_cell_is_the_worst_of_those_that_are_recorded(
    root: Path, call: Callable[..., Any]
) -> None:
    (root / "kernels/axpb/fine.cpp").write_text(scratch.PLAIN)
    good = planted.commit(root, "Two variants")
    shas = _break(root, 4, 3)
    _record(root, good, ("plain", Status.PASSED), ("fine", Status.PASSED))
    _record(root, shas[-1], ("plain", Status.BUILD_FAILED), ("fine", Status.PASSED))
    ended = call(root, "bisect", good, "HEAD", "--device", "cpu")
    assert ended.code == 0, ended.err
    assert "\n– missing: axpb/plain/large cpu/1, by what is recorded\n" in f"\n{ended.err}"
    assert max(map(len, ended.err.splitlines())) <= WIDTH
    assert f"The first bad commit is {shas[2]}" in ended.out
    ended = call(root, "bisect", good, "HEAD", "--device", "cpu", "--variant", "fine")
    assert (ended.code, ended.out) == (2, "")
    assert "no cell of --variant fine is recorded as worse at " in ended.err
    ended = call(root, "bisect", good, "HEAD", "--device", "cpu", "--timer", "warm")
    assert (ended.code, ended.out) == (2, "")
    assert "no timer 'warm' on cpu (known: cpu)" in ended.err
    ended = call(root, "bisect", good, "HEAD", "--device", "cpu", "--variant", "fien")
    assert (ended.code, ended.out) == (2, "")
    assert "no variant 'fien' is recorded at either end (did you mean 'fine'?)" in ended.err


def test_outside_of_a_repository_there_is_nothing_to_search(
    tmp_path: Path, call: Callable[..., Any]
) -> None:
    ended = call(scratch.quick(tmp_path / "root"), "bisect", "a", "b", *CELL)
    assert ended.code == 2
    assert "is in no git repository" in ended.err


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_after_an_interruption_the_same_command_goes_on(
    root: Path, call: Callable[..., Any], number: signal.Signals
) -> None:
    shas = _break(root, 40, 13)
    first = ["bisect", "HEAD~40", "HEAD", *CELL]
    with subprocess.Popen(
        [sys.executable, "-m", "perfci", *first],
        cwd=root,
        env=scratch.environment(root),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stderr is not None
        told = next(line for line in program.stderr if " is bad" in line or " is good" in line)
        program.send_signal(number)
        out, err = program.communicate()
    planted.sweep(root)
    is_killed = number is signal.SIGKILL
    assert (program.returncode, out) == (-9 if is_killed else 130, "")
    assert is_killed or "what was found is kept; the same command goes on" in err
    ended = call(root, *first)
    assert ended.code == 0, ended.err
    assert f"The first bad commit is {shas[12]}" in ended.out
    assert "going on after " in ended.err
    assert told.strip() not in ended.err
    assert f"  {told.split()[0]}  " in ended.out
    # What is answered is not remembered.
    assert "going on after " not in call(root, *first).err
