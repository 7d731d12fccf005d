"""perfci history: run files go out and come in, and a bad one is named and left."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import records
import scratch
from stores import make_store

from perfci.history.stores import open_store


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with one recorded run."""
    root = scratch.quick(tmp_path_factory.mktemp("history") / "root")
    scratch.write_kernel(root)
    scratch.git(root, "init", "-q")
    scratch.commit_all(root, "one")
    ended = scratch.call(root, "run", "--case", "one")
    assert ended.returncode == 0, ended.stderr
    return root


def _listed(call: Callable[..., Any], root: Path, *arguments: str) -> list[dict[str, Any]]:
    runs: list[dict[str, Any]] = json.loads(call(root, "history", "ls", "--json", *arguments).out)
    return runs


def test_runs_go_out_and_come_into_another_store(
    recorded: Path, tmp_path: Path, call: Callable[..., Any]
) -> None:
    out = tmp_path / "not yet" / "there"
    ended = call(recorded, "history", "export", "HEAD", "--out", out)
    assert (ended.code, ended.out) == (0, f"1 run written to {out}\n")
    other = f"sqlite:///{tmp_path}/other.db"
    for words in ("1 run brought in, 0 there already", "0 runs brought in, 1 there already"):
        ended = call(recorded, "history", "import", out, "--store", other)
        assert ended.code == 0
        assert ended.out.startswith(words)
    (run,) = _listed(call, recorded)
    assert _listed(call, recorded, "--store", other) == [run]
    shown = [
        call(recorded, "show", "--run", run["run_id"], "--json", *store).out
        for store in ((), ("--store", other))
    ]
    assert shown[0] == shown[1]


def test_a_bad_run_file_is_named_and_the_others_come_in(
    recorded: Path, tmp_path: Path, call: Callable[..., Any]
) -> None:
    files = tmp_path / "files"
    call(recorded, "history", "export", "--out", files)
    (good,) = files.iterdir()
    whole = json.loads(gzip.decompress(good.read_bytes()))
    (files / "a_truncated.json.gz").write_bytes(good.read_bytes()[:-40])
    newer = {**whole, "version": whole["version"] + 1}
    (files / "b_newer.json").write_text(json.dumps(newer))
    (files / "c_other.json").write_text('{"format": "something"}')
    (files / "notes.txt").write_text("no run file")
    store = f"sqlite:///{tmp_path}/other.db"
    make_store(store).close()
    ended = call(recorded, "history", "import", files, tmp_path / "nowhere", "--store", store)
    assert ended.code == 6
    assert ended.out == "1 run brought in, 0 there already, 3 refused; 1 other file left\n"
    lines = ended.err.splitlines()
    assert len(lines) == 3
    for line, name in zip(lines, ("a_truncated", "b_newer", "nowhere"), strict=True):
        assert line.startswith("perfci: ")
        assert name in line
    assert "newer" in lines[1].partition("b_newer.json")[2]
    assert len(_listed(call, recorded, "--store", store)) == 1


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["export", "nowhere", "--out", "files"], 2, "no commit 'nowhere'"),
        (["export", "HEAD+dirty", "--out", "files"], 9, "measure it with perfci run, or see"),
        (["export", "--out", "pyproject.toml/files"], 2, "pyproject.toml/files"),
        (["import", "pyproject.toml"], 6, "pyproject.toml"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    recorded: Path, call: Callable[..., Any], arguments: list[str], code: int, message: str
) -> None:
    ended = call(recorded, "history", *arguments)
    assert ended.code == code
    assert ended.err.startswith("perfci: ")
    assert (message in ended.err, ended.err.count("\n")) == (True, 1)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["show", "0123456789abcdef"], 9, "nothing is recorded at 0123456789abcdef"),
        (["show", "nowhere"], 2, "no commit 'nowhere'"),
        (["show", "HEAD", "--testbed", "other"], 9, "on testbed 'other'"),
        (["show", "--testbed", "other"], 9, "holds no runs of testbed 'other' yet"),
        (["show", "--run", "nowhere"], 6, "nowhere"),
        (["show", "HEAD", "--run", "nowhere"], 2, "leave out SHA and --testbed"),
        (["show", "20200101T000000-0123abcd"], 6, "no run '20200101T000000-0123abcd' in the"),
        (["show", "20200101T"], 6, "no run '20200101T' in the store"),
        (["show", "20200101"], 9, "nothing is recorded at 20200101"),
        (["show", "20200101T000000-0123abcde"], 2, "no commit '20200101T000000-0123abcde'"),
        (["show", "20200101T000000-0123abcd", "--testbed", "x"], 2, "leave out SHA and --testbed"),
        (["compare", "HEAD", "0123456789abcdef"], 9, "nothing is recorded"),
        (["show", "--store", "sqlite:///new.db"], 9, "holds no runs yet"),
    ],
)
def test_what_is_not_recorded_is_said(
    recorded: Path, call: Callable[..., Any], arguments: list[str], code: int, message: str
) -> None:
    make_store(f"sqlite:///{recorded}/new.db").close()
    ended = call(recorded, *arguments)
    assert (ended.code, ended.err.count("\n")) == (code, 1)
    assert message in ended.err


def test_a_run_is_shown_by_its_id_and_a_commit_of_that_name_comes_first(
    recorded: Path, call: Callable[..., Any]
) -> None:
    (run,) = _listed(call, recorded)
    run_id = run["run_id"]
    store = f"sqlite:///{recorded}/two.db"
    with open_store(store) as kept:
        kept.add(records.run(run_id=f"{run_id[:9]}999999-0123abcd", sha=run["commit"]["sha"]))
        kept.add(records.run(run_id=run_id))
    shown = call(recorded, "show", "--run", run_id, "--store", store).out
    for name in (run_id, run_id[:-1], run_id[:11]):
        assert call(recorded, "show", name, "--store", store).out == shown
    several = call(recorded, "show", run_id[:9], "--store", store)
    assert (several.code, several.err.count("\n")) == (6, 1)
    assert f"several runs begin with '{run_id[:9]}'" in several.err
    scratch.git(recorded, "tag", run_id)
    assert "999999-0123abcd" in call(recorded, "show", run_id, "--store", store).out
    scratch.git(recorded, "tag", "-d", run_id)


def test_what_is_listed_of_an_id_is_enough_to_show_the_run(
    recorded: Path, call: Callable[..., Any]
) -> None:
    listed = call(recorded, "history", "ls").out.splitlines()
    (run,) = _listed(call, recorded)
    (name,) = [word for line in listed for word in line.split()[:1] if word in run["run_id"]]
    assert call(recorded, "show", name).out == call(recorded, "show", "--run", run["run_id"]).out


def test_what_is_listed_is_told_from_runs_that_are_not_and_as_wide_as_the_terminal(
    recorded: Path, call: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = f"sqlite:///{recorded}/alike.db"
    testbed = "a-testbed-with-quite-a-long-name-of-its-own-and-more-beside-it"
    with make_store(store) as kept:
        for end in ("0123abcd", "0123abff"):
            kept.add(records.run(run_id=f"20260301T140500-{end}", testbed=testbed))
    monkeypatch.setenv("COLUMNS", "70")
    _, line = call(recorded, "history", "ls", "--limit", "1", "--store", store).out.splitlines()
    assert len(line) <= 80
    name = line.split()[0]
    assert call(recorded, "show", name, "--store", store).code == 0
    monkeypatch.setenv("COLUMNS", "200")
    _, line = call(recorded, "history", "ls", "--limit", "1", "--store", store).out.splitlines()
    assert testbed in line
    assert "14:05Z" in line
