"""perfci check: what is wrong is told, and a control that is accepted is an error of its own."""

import json
from pathlib import Path

import pytest
import scratch

_WEAK = """\
[[check]]
name = "one"
tier = "smoke"
count = 1
"""
_FIRST_ONLY = "def run(x, a, b):\n    y = x * 0 + b\n    y[:1] = a * x[:1] + b\n    return y\n"
_ZEROS = "def run(x, a, b):\n    return x * 0\n"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = scratch.quick(tmp_path_factory.mktemp("check") / "root")
    strided = '[[check]]\nname = "strided"\ntier = "smoke"\nlayout = "strided"\ncount = 9\n'
    huge = '[[check]]\nname = "huge"\nmemory_gib = 1e6\ncount = 9\n'
    scratch.write_kernel(
        root,
        "strong",
        cases__toml=scratch.CASES + strided + huge,
        plain__cpp=scratch.PLAIN,
        contiguous__cpp=scratch.body(
            'if (!perfci_is_contiguous(x)) return perfci_fail(call, "x must be contiguous");'
        ),
        wrong_zeros__py=_ZEROS,
        wrong_first_only__py=_FIRST_ONLY,
    )
    scratch.write_kernel(
        root,
        "weak",
        cases__toml=_WEAK,
        eager__py=scratch.EAGER,
        wrong_zeros__py=_ZEROS,
        wrong_first_only__py=_FIRST_ONLY,
        wrong_raises__py="def run(x, a, b):\n    raise ValueError\n",
        wrong_faults__py="# perfci: faults = true\n\n\ndef run(x, a, b):\n    raise ValueError\n",
        wrong_unbuilt__cpp="int perfci_run(\n",
    )
    return root


def test_a_control_that_is_accepted_is_an_error_with_its_name(root: Path) -> None:
    ended = scratch.call(root, "check", "--json")
    assert ended.returncode == 1
    told = json.loads(ended.stdout)
    assert told["accepted"] == ["weak/first_only", "weak/raises", "weak/unbuilt"]
    statuses = {(each["kernel"], each["variant"], each["case"]): each for each in told["checks"]}
    assert {each["status"] for each in told["checks"]} == {"passed", "skipped"}
    refused = statuses["strong", "contiguous", "strided"]
    assert refused["message"] == "refuses strided inputs: x must be contiguous"
    assert [key for key, each in statuses.items() if each["status"] == "skipped"] == [
        ("strong", "contiguous", "strided")
    ]
    assert not (root / ".perfci").exists()


def test_the_table_names_the_control(root: Path) -> None:
    ended = scratch.call(root, "check", "--kernel", "weak")
    assert ended.returncode == 1
    assert "no case rejects weak/first_only, weak/raises: the cases are too weak" in ended.stdout
    assert "weak/unbuilt: does not build, which proves nothing; repair it" in ended.stdout
    assert "✗ build failed · weak/unbuilt/one" in ended.stdout
    assert ended.stdout.endswith("\n1 passed, 0 failed, 0 skipped; 2 of 5 controls rejected\n")


def test_a_skipped_case_is_not_counted_as_passed(root: Path) -> None:
    ended = scratch.call(root, "check", "--kernel", "strong", "--variant", "contiguous")
    assert ended.returncode == 0
    assert ended.stdout.splitlines()[-1].endswith("passed, 0 failed, 1 skipped")


def test_a_case_that_does_not_fit_is_skipped_with_what_it_needs(root: Path) -> None:
    which = ("--kernel", "strong", "--variant", "plain", "--case", "huge")
    ended = scratch.call(root, "check", *which, "--json")
    assert ended.returncode == 0
    (row,) = json.loads(ended.stdout)["checks"]
    assert row["status"] == "skipped"
    assert row["message"].startswith("the case needs 1e+06 GiB of memory, this device has ")


def test_controls_that_are_rejected_are_fine(root: Path) -> None:
    ended = scratch.call(root, "check", "--kernel", "strong", "--json")
    assert ended.returncode == 0
    told = json.loads(ended.stdout)
    assert told["accepted"] == []
    assert {each["variant"] for each in told["controls"]} == {"zeros", "first_only"}
    ended = scratch.call(root, "check", "--kernel", "weak", "--no-controls", "--json")
    assert (ended.returncode, json.loads(ended.stdout)["controls"]) == (0, [])
