"""perfci doctor: what it says of where it is called, and that only what stops a run is broken."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import scratch


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository of two commits with one kernel."""
    root = scratch.quick(tmp_path / "root")
    scratch.write_kernel(root)
    scratch.git(root, "init", "-q")
    scratch.commit_all(root, "one")
    scratch.commit_all(root, "two")
    return root


def _findings(call: Callable[..., Any], root: Path, *arguments: str) -> dict[str, dict[str, Any]]:
    found = json.loads(call(root, "doctor", "--json", *arguments).out)
    return {each["name"]: each for each in found}


def test_what_is_there_is_named(root: Path, call: Callable[..., Any]) -> None:
    found = _findings(call, root)
    assert found["kernels"]["detail"] == f"axpb ({root / 'kernels'})"
    assert found["git"]["detail"].endswith(" on main, clean")
    assert "testbed 'scratch'" in found["CPU"]["detail"]
    assert {found[name]["state"] for name in ("python", "torch", "C++ compiler", "store")} == {
        "present"
    }


def test_a_shallow_clone_is_said_and_stops_nothing(
    root: Path, tmp_path: Path, call: Callable[..., Any]
) -> None:
    clone = tmp_path / "clone"
    scratch.git(root, "clone", "-q", "--depth", "1", f"file://{root}", str(clone))
    found = _findings(call, clone)
    assert (found["history"]["state"], found["history"]["code"]) == ("absent", 0)
    assert "git fetch --unshallow" in found["history"]["detail"]
    assert "history" not in _findings(call, root)


@pytest.mark.parametrize(
    ("arguments", "variables", "name", "code"),
    [
        ((), {"CXX": "no-such-compiler"}, "C++ compiler", 4),
        (("--kernels", "nowhere"), {}, "kernels", 3),
        (("--store", "/proc/nowhere/history.db"), {}, "store", 6),
    ],
)
def test_what_is_broken_ends_with_the_code_of_a_run(
    root: Path,
    call: Callable[..., Any],
    arguments: tuple[str, ...],
    variables: dict[str, str],
    name: str,
    code: int,
) -> None:
    ended = call(root, "doctor", "--json", *arguments, **variables)
    found = {each["name"]: each for each in json.loads(ended.out)}
    assert (found[name]["state"], found[name]["code"]) == ("broken", code)
    broken = [each["code"] for each in found.values() if each["state"] == "broken"]
    assert ended.code == broken[0]
    words = call(root, "doctor", *arguments, **variables).out
    assert f"✗ {name} " in words
    assert words.endswith(f"{len(broken)} to put right\n")
