"""The program as a whole: what it imports, what it needs, and one kernel through all of it."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import scratch

from perfci.cli import COMMANDS
from perfci.dashboard.app import create_app
from perfci.history.codec import read_run_file
from perfci.history.stores import open_store

_HEAVY = ("torch", "dash", "sqlalchemy", "alembic", "plotly", "scipy", "rich", "git", "pynvml")
_BLOCKER = """\
import sys

_BARRED = {"git", "sqlalchemy", "alembic", "dash", "plotly", "rich", "scipy", "pynvml", "waitress"}


class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in _BARRED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Blocker())
"""


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    program = (
        "import sys\n"
        "from perfci import __main__ as program\n"
        f"sys.argv = ['perfci', *{arguments!r}]\n"
        "code = program._run()\n"
        f"print([name for name in {_HEAVY!r} if name in sys.modules], file=sys.stderr)\n"
        "sys.exit(code)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0
    assert ended.stderr == "[]\n"


@pytest.mark.parametrize("name", [*COMMANDS, ""])
def test_every_command_has_help_with_an_example(
    name: str, tmp_path: Path, call: Callable[..., Any]
) -> None:
    ended = call(tmp_path, *([name] if name else []), "--help")
    assert max(map(len, ended.out.splitlines())) <= 80
    assert ended.code == 0
    assert "Example:\n" in ended.out
    assert f"  perfci {name}" in ended.out


def test_an_unknown_command_is_a_usage_error(tmp_path: Path, call: Callable[..., Any]) -> None:
    ended = call(tmp_path, "rnu")
    assert ended.code == 2
    assert "No such command 'rnu'" in ended.err


def test_a_fault_of_perfcis_own_is_no_verdict(
    tmp_path: Path, call: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(COMMANDS, "list", ("nowhere", ""))
    ended = call(tmp_path, "list")
    assert ended.code == 70
    assert ended.err.endswith("perfci: this is a fault of perfci's own; please report it\n")


@pytest.mark.parametrize("arguments", [["--help"], ["list"]])
def test_an_output_that_nobody_reads_is_no_verdict(tmp_path: Path, arguments: list[str]) -> None:
    scratch.write_kernel(tmp_path)
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as nobody:
        ended = subprocess.run(
            [sys.executable, "-m", "perfci", *arguments],
            cwd=tmp_path,
            stdout=nobody,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (ended.returncode, ended.stderr) == (141, "")


def test_a_run_into_a_file_needs_little_more_than_torch(tmp_path: Path) -> None:
    root = scratch.quick(tmp_path / "root")
    scratch.write_kernel(root, plain__cpp=scratch.PLAIN, eager__py=scratch.EAGER)
    scratch.git(root, "init", "-q")
    sha = scratch.commit_all(root, "one")
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "sitecustomize.py").write_text(_BLOCKER)
    barred = {"PYTHONPATH": str(bare)}
    ended = scratch.perfci(root, "run", "--out", "run.json.gz", "--json", variables=barred)
    assert ended.returncode == 0, ended.stderr
    run = read_run_file(root / "run.json.gz")
    assert run.commit.sha == sha
    assert {each.status for each in run.measurements} == {"passed"}
    assert scratch.perfci(root, "check", variables=barred).returncode == 0
    assert scratch.perfci(root, "check", "--freeze", variables=barred).returncode == 0
    ended = scratch.perfci(root, "history", "ls", variables=barred)
    assert ended.returncode == 6
    assert "needs the package" in ended.stderr


@pytest.fixture(scope="module")
def journey(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository in which a folder of three files has been added, and nothing else."""
    root = scratch.quick(tmp_path_factory.mktemp("journey") / "root")
    scratch.git(root, "init", "-q")
    scratch.commit_all(root, "no kernel yet")
    folder = scratch.write_kernel(root)
    assert sorted(each.name for each in folder.iterdir()) == [
        "cases.toml",
        "plain.cpp",
        "reference.py",
    ]
    scratch.commit_all(root, "a kernel is a folder")
    return root


def _json(root: Path, *arguments: str) -> Any:
    ended = scratch.perfci(root, *arguments, "--json")
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def _texts(component: Any) -> Iterator[str]:
    """Everything that stands in a laid-out page."""
    if isinstance(component, dict):
        for value in component.values():
            yield from _texts(value)
    elif isinstance(component, list):
        for value in component:
            yield from _texts(value)
    elif isinstance(component, str):
        yield component


def test_one_more_kernel_is_one_folder(journey: Path, tmp_path: Path) -> None:
    (listed,) = _json(journey, "list")
    assert (listed["kernel"], [each["name"] for each in listed["variants"]]) == ("axpb", ["plain"])
    (built,) = _json(journey, "build")
    assert (built["variant"], built["cached"], built["message"]) == ("plain", False, "")
    assert {each["status"] for each in _json(journey, "check")["checks"]} == {"passed"}
    run = _json(journey, "run", "--passes", "2")
    timed = scratch.rows(run)["plain", "large"]
    assert [len(each["samples_ns"]) >= 5 for each in timed["passes"]] == [True, True]
    assert timed["workload_digest"]
    assert timed["source_digest"] == built["digest"]
    assert _json(journey, "show", "HEAD") == run
    other = f"sqlite:///{tmp_path}/other.db"
    assert scratch.perfci(journey, "history", "export", "--out", tmp_path / "x").returncode == 0
    ended = scratch.perfci(journey, "history", "import", tmp_path / "x", "--store", other)
    assert ended.returncode == 0
    with open_store(other) as store:
        assert [each.run_id for each in store.runs()] == [run["run_id"]]
    page = _kernel_page(other, "axpb")
    assert "axpb" in page
    assert "plain" in page
    assert "large" in page
    assert scratch.git(journey, "status", "--short") == ""


def _kernel_page(store: str, kernel: str) -> str:
    """The text of a kernel's page of the dashboard, as its server sends it."""
    client = create_app(store).server.test_client()
    answer = client.post(
        "/_dash-update-component",
        json={
            "output": ".._pages_content.children..._pages_store.data..",
            "outputs": [
                {"id": "_pages_content", "property": "children"},
                {"id": "_pages_store", "property": "data"},
            ],
            "inputs": [
                {"id": "_pages_location", "property": "pathname", "value": f"/kernel/{kernel}"},
                {"id": "_pages_location", "property": "search", "value": ""},
            ],
            "changedPropIds": ["_pages_location.pathname"],
        },
    )
    assert answer.status_code == 200
    return "\n".join(_texts(answer.get_json()))
