"""perfci history import: nothing that is brought in replaces anything, or is lost in silence."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from records import rich_run
from stores import make_store

from perfci.drafts import Drafts
from perfci.history.codec import write_run_file


@pytest.fixture(autouse=True)
def store(tmp_path: Path) -> None:
    """A store without runs."""
    make_store(f"sqlite:///{tmp_path}/.perfci/history.db").close()


@pytest.fixture
def run_file(tmp_path: Path) -> Path:
    path = tmp_path / "run.json.gz"
    write_run_file(path, rich_run("one"))
    return path


def test_another_run_of_the_same_id_is_refused_and_named(
    run_file: Path, tmp_path: Path, call: Callable[..., Any]
) -> None:
    assert call(tmp_path, "history", "import", run_file).code == 0
    document = json.loads(gzip.decompress(run_file.read_bytes()))
    document["run"]["duration_s"] += 1
    other = tmp_path / "other.json"
    other.write_text(json.dumps(document))
    ended = call(tmp_path, "history", "import", run_file, other)
    assert ended.code == 6
    assert f"{other}: " in ended.err
    assert "has another run one; left as it is there" in ended.err
    assert ended.out == "0 runs brought in, 1 there already, 1 refused\n"


def test_a_folder_without_run_files_is_named(tmp_path: Path, call: Callable[..., Any]) -> None:
    (tmp_path / "empty").mkdir()
    ended = call(tmp_path, "history", "import", "empty")
    assert ended.code == 6
    assert ended.err == "perfci: empty: no run files in it\n"


def test_all_that_was_cut_off_comes_in_by_the_folder_it_lies_in(
    tmp_path: Path, call: Callable[..., Any]
) -> None:
    drafts = [Drafts(tmp_path / ".perfci/unfinished") for _ in range(3)]
    for each, name in zip(drafts, ("one", "two", "measured"), strict=True):
        run = rich_run(name)
        write_run_file(each.place(run), run)
    for each in drafts[:2]:
        each.close()
    ended = call(tmp_path, "history", "import", ".perfci/unfinished")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == "2 runs brought in, 0 there already, 0 refused\n"
    assert [each.name for each in (tmp_path / ".perfci/unfinished").iterdir()] == ["measured"]
    drafts[2].close()


def test_a_name_too_long_to_be_looked_for_is_named(
    tmp_path: Path, call: Callable[..., Any]
) -> None:
    ended = call(tmp_path, "history", "import", "x" * 300)
    assert ended.code in (2, 6)
    assert len(ended.err.splitlines()) == 1


def test_a_revision_without_end_is_cut_where_it_is_shown(
    run_file: Path, tmp_path: Path, call: Callable[..., Any]
) -> None:
    assert call(tmp_path, "history", "import", run_file).code == 0
    ended = call(tmp_path, "show", "a" * 100_000)
    assert ended.code == 2
    assert len(ended.err) < 1000


def test_a_folder_may_hold_what_is_no_run_file(
    run_file: Path, tmp_path: Path, call: Callable[..., Any]
) -> None:
    parcel = tmp_path / "parcel"
    parcel.mkdir()
    (parcel / "parcel.json").write_text('{"format": "perfci-parcel"}')
    ended = call(tmp_path, "history", "import", "parcel")
    assert (ended.code, ended.err) == (6, "perfci: parcel: no run files in it\n")
    run_file.rename(parcel / run_file.name)
    ended = call(tmp_path, "history", "import", "parcel")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == "1 run brought in, 0 there already, 0 refused; 1 other file left\n"
    ended = call(tmp_path, "history", "import", "parcel/parcel.json")
    assert ended.code == 6
    assert "parcel.json: not a run file" in ended.err
