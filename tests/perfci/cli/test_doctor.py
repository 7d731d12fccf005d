"""perfci doctor: what it says of where it is called, and that only what stops a run is broken."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nvml_double
import pytest
import scratch

from perfci.device import has_gpu_driver


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository of two commits with one kernel."""
    return scratch.two_commits(tmp_path / "root")


def _findings(call: Callable[..., Any], root: Path, *arguments: str) -> dict[str, dict[str, Any]]:
    found = json.loads(call(root, "doctor", "--json", *arguments).out)
    return {each["name"]: each for each in found}


def test_what_is_there_is_named(root: Path, call: Callable[..., Any]) -> None:
    found = _findings(call, root)
    assert found["kernels"]["detail"] == f"axpb ({root / 'kernels'})"
    assert found["git"]["detail"].endswith(" on main, clean")
    assert "testbed 'scratch'" in found["CPU"]["detail"]
    assert {found[name]["state"] for name in ("python", "torch", "C++ compiler")} == {"present"}


def test_a_store_that_is_not_there_yet_stops_nothing_and_is_not_made(
    root: Path, call: Callable[..., Any]
) -> None:
    store = _findings(call, root)["store"]
    assert (store["state"], store["code"]) == ("absent", 0)
    assert store["detail"].endswith("not there yet; the first perfci run makes it")
    assert not (root / ".perfci").exists()


def test_a_shallow_clone_is_said_and_stops_nothing(
    root: Path, tmp_path: Path, call: Callable[..., Any]
) -> None:
    clone = tmp_path / "clone"
    scratch.git(root, "clone", "-q", "--depth", "1", f"file://{root}", str(clone))
    found = _findings(call, clone)
    assert (found["history"]["state"], found["history"]["code"]) == ("absent", 0)
    assert "git fetch --unshallow" in found["history"]["detail"]
    assert "history" not in _findings(call, root)


def test_outside_of_a_repository_runs_need_a_commit_and_nothing_is_broken(
    tmp_path: Path, call: Callable[..., Any]
) -> None:
    root = scratch.quick(tmp_path / "root")
    scratch.write_kernel(root)
    git = _findings(call, root)["git"]
    assert (git["state"], git["code"]) == ("absent", 0)
    assert git["detail"] == f"{root} is in no repository: runs need --commit SHA"


def test_a_tree_that_differs_from_its_commit_is_said(root: Path, call: Callable[..., Any]) -> None:
    (root / "kernels/axpb/plain.cpp").write_text("// changed\n")
    scratch.git(root, "checkout", "-q", "--detach")
    git = _findings(call, root)["git"]
    sha = scratch.git(root, "rev-parse", "HEAD")
    dirty = "dirty: runs are kept apart from the commit's"
    assert git["detail"] == f"{sha[:10]} on detached HEAD, {dirty}"


def test_a_repository_without_commits_is_broken(tmp_path: Path, call: Callable[..., Any]) -> None:
    root = scratch.quick(tmp_path / "root")
    scratch.write_kernel(root)
    scratch.git(root, "init", "-q")
    git = _findings(call, root)["git"]
    assert (git["state"], git["code"]) == ("broken", 2)
    assert "no commits yet" in git["detail"]


def test_a_file_that_is_no_store_is_named(root: Path, call: Callable[..., Any]) -> None:
    (root / "notes.db").write_text("no database, but some notes\n" * 100)
    store = _findings(call, root, "--store", "notes.db")["store"]
    assert (store["state"], store["code"]) == ("broken", 6)
    assert str(root / "notes.db") in store["detail"]


def test_every_finding_has_the_same_keys_in_json(root: Path, call: Callable[..., Any]) -> None:
    found = _findings(call, root, "--kernels", "nowhere").values()
    assert {tuple(each) for each in found} == {("name", "state", "detail", "code")}
    assert {each["state"] for each in found} <= {"present", "absent", "broken"}
    assert all((each["state"] == "broken") == (each["code"] != 0) for each in found)


@pytest.mark.parametrize(
    ("arguments", "variables", "name", "code"),
    [
        ((), {"CXX": "no-such-compiler"}, "C++ compiler", 4),
        (("--kernels", "nowhere"), {}, "kernels", 3),
        (("--store", "kernels"), {}, "store", 6),
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


@pytest.mark.skipif(has_gpu_driver(), reason="there is a GPU")
def test_without_a_gpu_there_is_none_to_look_at(root: Path, call: Callable[..., Any]) -> None:
    ended = call(root, "doctor", "--gpu")
    assert (ended.code, ended.out) == (5, "")
    assert ended.err == "perfci: no GPU to look at: no NVIDIA driver is here\n"


def test_gpus_are_named_with_their_driver_and_what_cuda_sees_of_them(
    root: Path, call: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {"GPU-1": "NVIDIA H200", "GPU-2": "NVIDIA T4"}
    nvml_double.install(monkeypatch, *names, answers={"GetName": names})
    found = json.loads(call(root, "doctor", "--json", CUDA_VISIBLE_DEVICES="GPU-2").out)
    by_name = {each["name"]: each["detail"] for each in found}
    assert by_name["GPU 0"].startswith("NVIDIA H200, driver 580.0; perfci doctor --gpu says")
    assert by_name["GPU 1"].startswith("NVIDIA T4, ")
    assert by_name["visible"] == "to CUDA, of these: CUDA_VISIBLE_DEVICES='GPU-2'"
