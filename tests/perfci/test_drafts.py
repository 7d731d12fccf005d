"""Drafts: those of a living command are nobody else's; what others have left is found."""

from dataclasses import replace
from pathlib import Path

import records

from perfci.drafts import Drafts, clear, describe, find_cut_off
from perfci.history.codec import write_growing

_RUN = records.run(records.measurement((1000.0, 1001.0, 1002.0)))


def _write(drafts: Drafts, *ids: str) -> None:
    runs = [replace(_RUN, run_id=run_id) for run_id in ids]
    write_growing((drafts.place(run), run) for run in runs)


def _left(folder: Path, *ids: str) -> None:
    drafts = Drafts(folder)
    _write(drafts, *ids)
    drafts.close()


def test_drafts_are_found_once_their_command_is_gone(tmp_path: Path) -> None:
    folder = tmp_path / ".perfci/unfinished"
    drafts = Drafts(folder)
    _write(drafts, "a", "b")
    assert list(find_cut_off(folder, recorded=())) == []
    clear(folder, recorded={"a", "b"})
    _write(drafts, "a")
    drafts.close()
    (found,) = find_cut_off(folder, recorded=())
    assert (found.run_ids, found.passes) == (("a", "b"), 3)
    assert describe(found) == "2 runs were cut off after 3 passes"


def test_what_is_recorded_is_cleared_away_and_the_rest_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "unfinished"
    _left(folder, "a", "b")
    _left(folder, "c")
    clear(folder, recorded={"b", "c"})
    (found,) = find_cut_off(folder, recorded={"b", "c"})
    assert found.run_ids == ("a",)
    assert [each.name for each in folder.iterdir()] == ["a"]
    clear(folder, recorded={"a", "b"})
    assert not folder.exists()


def test_what_is_no_draft_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "unfinished"
    _left(folder, "a")
    (folder / "a/a.json.gz").write_text("no run")
    (folder / "mine").mkdir()
    (folder / "mine/notes.json.gz").write_text("no run either")
    (folder / "file").write_text("")
    clear(folder, recorded=())
    assert list(find_cut_off(folder, recorded=())) == []
    assert sorted(each.name for each in folder.iterdir()) == ["a", "file", "mine"]
    assert list(find_cut_off(tmp_path / "nowhere", recorded=())) == []


def test_what_was_half_written_is_no_draft_and_goes_with_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "unfinished"
    _left(folder, "a")
    (folder / "a/a.json.gz").rename(folder / "a/.a.json.gz.0123")
    assert list(find_cut_off(folder, recorded=())) == []
    clear(folder, recorded=())
    assert not folder.exists()
