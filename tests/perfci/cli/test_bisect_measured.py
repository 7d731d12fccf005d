"""perfci bisect where commits must be measured or checked: slower, wrong, or no different."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import planted
import pytest
import scratch

from perfci.history.codec import read_run_file

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

CELL = ("--kernel", "axpb", "--variant", "plain", "--device", "cpu")
_SLOW = 3 * planted.COUNT
_WRONG_AT_ODD = scratch.body("if (count == 1001) { ((float *)y->data)[7] = 1e6f; return 0; }")


def _plant(root: Path, count: int, at: int, bad: str) -> list[str]:
    """So many commits after the first, of which every third has other code; one is bad."""
    planted.start(root)
    shas, text = [planted.commit(root, "Begin")], planted.spin(planted.COUNT)
    for number in range(1, count):
        if number == at:
            text = bad
        elif number < at and number % 3 == 0:
            text = planted.other(number)
        shas.append(planted.commit(root, f"Step {number}", f"// {number}\n{text}"))
    return shas


def _bisect(root: Path, *arguments: str) -> Any:
    ended = scratch.perfci(root, "bisect", *arguments, "--json")
    assert "Traceback" not in ended.stderr
    return ended.returncode, json.loads(ended.stdout or "null"), ended.stderr


def test_a_slow_commit_is_found_among_many(tmp_path: Path) -> None:
    root = tmp_path / "root"
    shas = _plant(root, 16, 10, planted.spin(_SLOW))
    before = planted.state(root)
    arguments = ["bisect", shas[0], "HEAD", *CELL, "--case", "large", "--out", "../files"]
    ended = scratch.perfci(root, *arguments)
    assert ended.returncode == 0, ended.stderr
    assert planted.state(root) == before
    assert f"The first bad commit is {shas[10]}" in ended.stdout
    assert "The ends differ: the bad one is slower, +" in ended.stdout
    assert f"beside its parent {shas[9][:10]}: " in ended.stdout
    assert "host code changed" in ended.stdout
    assert "bad: the same code as " in ended.stdout
    assert max(map(len, ended.stdout.splitlines())) <= 80
    runs = [read_run_file(each) for each in (tmp_path / "files").iterdir()]
    assert {each.trigger for each in runs} == {"bisect"}
    assert {shas[0], shas[-1], shas[10]} <= {each.commit.sha for each in runs}
    assert not (root / ".perfci").exists()


def test_what_is_wrong_at_one_shape_is_found_without_being_timed(tmp_path: Path) -> None:
    root = tmp_path / "root"
    shas = _plant(root, 12, 8, _WRONG_AT_ODD)
    code, told, _ = _bisect(root, shas[0], "HEAD", *CELL, "--case", "odd")
    assert (code, told["ending"]) == (0, "found")
    assert told["suspects"][0]["sha"] == shas[8]
    assert told["ends"]["proof"]["symptom"] == "incorrect"
    (confirmed,) = told["confirmations"]
    assert confirmed["is_confirmed"]
    assert confirmed["differences"] == ["host code changed"]
    assert told["confidence"] > 0.9
    assert not any(each["change"] for each in told["steps"])


def test_a_merge_that_alone_is_slow_is_found(tmp_path: Path) -> None:
    root = tmp_path / "root"
    both = f'#include "one.h"\n#include "two.h"\n#define TURNS (ONE && TWO ? {_SLOW} : 1)\n'
    text = both + scratch.body("for (volatile int i = 0; i < TURNS; i = i + 1) {}")
    headers = {"one__h": "#define ONE 0\n", "two__h": "#define TWO 0\n"}
    planted.start(root, plain__cpp=text, **headers)
    good = planted.commit(root, "Begin")
    scratch.git(root, "switch", "-q", "-c", "topic")
    two = planted.commit(root, "Set two", "#define TWO 1\n", "two.h")
    scratch.git(root, "switch", "-q", "main")
    one = planted.commit(root, "Set one", "#define ONE 1\n", "one.h")
    merge = planted.merge(root, "topic", "Merge topic")
    planted.commit(root, "Words", "#define TWO 1 // still\n", "two.h")
    ended = scratch.perfci(root, "bisect", good, "HEAD", *CELL, "--case", "large")
    assert ended.returncode == 0, ended.stderr
    assert f"The first bad commit is the merge {merge}" in ended.stdout
    for parent in (one, two):
        assert f"beside its parent {parent[:10]}: " in ended.stdout


def test_ends_that_are_as_fast_end_it(tmp_path: Path) -> None:
    root = planted.start(tmp_path / "root")
    good = planted.commit(root, "Begin")
    planted.commit(root, "Other code", planted.other(1))
    ended = scratch.perfci(root, "bisect", good, "HEAD", *CELL, "--case", "large")
    assert ended.returncode == 8, ended.stderr
    assert "The ends do not differ: the bad end was not shown to be slower" in ended.stdout
    assert "Are these the commits, is it this cell?" in ended.stdout
    ended = scratch.perfci(root, "bisect", good, "HEAD", *CELL, "--case", "odd")
    assert ended.returncode == 8, ended.stderr
    assert "The ends do not differ: the bad end was right in all of 6 checks" in ended.stdout


def test_a_verdict_survives_being_killed_and_is_not_measured_again(tmp_path: Path) -> None:
    root = tmp_path / "root"
    shas = _plant(root, 12, 8, _WRONG_AT_ODD)
    arguments = ["bisect", shas[0], "HEAD", *CELL, "--case", "odd"]
    with subprocess.Popen(
        [sys.executable, "-m", "perfci", *arguments],
        cwd=root,
        env=scratch.environment(root),
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as program:
        assert program.stderr is not None
        told = next(line for line in program.stderr if " is bad" in line or " is good" in line)
        os.killpg(program.pid, signal.SIGKILL)
        program.communicate()
    planted.sweep(root)
    code, found, err = _bisect(root, *arguments[1:])
    assert (code, found["suspects"][0]["sha"]) == (0, shas[8])
    assert "going on after " in err
    assert "measuring whether the ends differ" not in err
    assert told.strip() not in err


def test_a_budget_that_ends_keeps_what_is_known(tmp_path: Path) -> None:
    root = tmp_path / "root"
    shas = _plant(root, 6, 3, planted.spin(_SLOW))
    arguments = ["bisect", shas[0], "HEAD", *CELL, "--case", "large", "--budget", "0.001"]
    ended = scratch.perfci(root, *arguments)
    assert ended.returncode == 8, ended.stderr
    assert "The budget ended with 5 commits left; the same command goes on" in ended.stdout


def test_the_cell_is_the_one_that_is_recorded_as_worst(tmp_path: Path) -> None:
    root = tmp_path / "root"
    shas = _plant(root, 4, 2, planted.spin(_SLOW))
    gated = scratch.perfci(root, "gate", "--base", shas[0], "--head", shas[3], "--case", "large")
    assert gated.returncode == 1, gated.stderr
    code, told, err = _bisect(root, shas[0], shas[3], "--device", "cpu")
    assert (code, told["suspects"][0]["sha"]) == (0, shas[2])
    assert told["question"]["case"] == "large"
    assert told["question"]["timer"] == "cpu"
    assert "▲ slower: axpb/plain/large cpu/1, by what is recorded" in err
    beside = err.partition(" beside its parent ")[2]
    assert "pass 1: 1 of 1 (axpb/plain/large)" in beside
