"""What compiles at its first call does so once, and again only when it has changed."""

import json
import re
from pathlib import Path

import pytest
import scratch

_LATE = """\
# perfci: compiles = true
def run(x, a, b):
    with open("FOLDER/calls", "a") as calls:
        calls.write("called\\n")
    return a * x + b
"""
_FAILS = "# perfci: compiles = true\ndef run(x, a, b):\n    raise ValueError('cannot')\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = scratch.quick(tmp_path / "root")
    late = _LATE.replace("FOLDER", str(tmp_path))
    scratch.write_kernel(root, late__py=late, eager__py=scratch.EAGER)
    return root


def _prepared(root: Path, *arguments: str) -> int:
    """Build, and count the cells that went through their own compiler."""
    ended = scratch.perfci(root, "build", "--case", "one", *arguments)
    assert ended.returncode == 0, ended.stderr
    counted = re.search(r"0 compiled, (\d+) prepared at their first call", ended.stdout)
    assert counted, ended.stdout
    return int(counted[1])


def test_an_unchanged_variant_is_prepared_once_and_a_changed_one_again(root: Path) -> None:
    calls = root.parent / "calls"
    assert _prepared(root) == 1
    called = calls.read_text()
    assert called
    assert _prepared(root) == 0
    assert calls.read_text() == called
    source = root / "kernels/axpb/late.py"
    source.write_text(source.read_text() + "# changed\n")
    assert _prepared(root) == 1
    assert calls.read_text() == 2 * called


def test_one_that_fails_is_left_to_the_passes(root: Path) -> None:
    scratch.write_kernel(root, fails__py=_FAILS)
    only = ("--variant", "fails", "--variant", "eager")
    assert _prepared(root, *only) == 1
    ended = scratch.perfci(root, "run", "--commit", "abcdef1", "--case", "one", *only, "--json")
    assert "compile: 1 of 1 (axpb/fails/one)" in ended.stderr
    rows = {variant: row for (variant, _), row in scratch.rows(json.loads(ended.stdout)).items()}
    assert (ended.returncode, rows["eager"]["status"]) == (1, "passed")
    assert (rows["fails"]["status"], rows["fails"]["message"]) == (
        "runtime_error",
        "ValueError: cannot (fails.py:3)",
    )
