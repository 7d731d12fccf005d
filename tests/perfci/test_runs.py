"""The run of a tree; those of a revision are tested where people give one, in test_compare."""

from dataclasses import replace
from pathlib import Path

import pytest
from records import MOMENT, SHA, run

from perfci.errors import MissingError
from perfci.history.model import Commit
from perfci.history.stores import open_store
from perfci.runs import find_run, newest_run_of

_CLEAN = Commit(sha=SHA, committed_at=MOMENT)
_DIRTY = replace(_CLEAN, dirty="d1")


def test_the_newest_run_of_the_very_tree_is_found(tmp_path: Path) -> None:
    older = run(run_id="older")
    with open_store(f"sqlite:///{tmp_path}/history.db") as store:
        store.add(older)
        store.add(replace(older, run_id="newer", started_at=MOMENT.replace(hour=23)))
        store.add(replace(older, run_id="dirty", commit=_DIRTY))
        store.add(replace(older, run_id="a", trigger="noise", started_at=MOMENT.replace(hour=23)))
        store.add(run(run_id="elsewhere", testbed="other"))
        assert newest_run_of(store, _CLEAN, "bench").run_id == "newer"
        assert newest_run_of(store, _DIRTY, "bench").run_id == "dirty"
        assert newest_run_of(store, _CLEAN, "other").run_id == "elsewhere"


@pytest.mark.parametrize(
    ("commit", "testbed", "message"),
    [
        (
            _DIRTY,
            "bench",
            "nothing is recorded of this dirty tree at 0123456789 on testbed 'bench'",
        ),
        (_CLEAN, "other", "nothing is recorded of 0123456789 on testbed 'other': record it with"),
        (Commit(sha="f" * 40, committed_at=MOMENT), "bench", "nothing is recorded of ffffffffff"),
    ],
)
def test_a_tree_without_a_run_is_said(
    tmp_path: Path, commit: Commit, testbed: str, message: str
) -> None:
    with open_store(f"sqlite:///{tmp_path}/history.db") as store:
        store.add(run())
        with pytest.raises(MissingError, match=message):
            newest_run_of(store, commit, testbed)


def test_the_newest_run_of_all_is_by_itself_where_there_is_one(tmp_path: Path) -> None:
    alone = run(run_id="alone")
    side = replace(alone, run_id="side", pair="p", started_at=MOMENT.replace(hour=23))
    with open_store(f"sqlite:///{tmp_path}/history.db") as store:
        store.add(replace(side, trigger="gate"))
        assert find_run(store, tmp_path, revision=None, run_id=None, testbed=None).run_id == "side"
        head = replace(side, run_id="z", commit=_DIRTY, trigger="gate")
        store.add(head)
        assert find_run(store, tmp_path, revision=None, run_id=None, testbed=None).run_id == "z"
        store.add(alone)
        assert find_run(store, tmp_path, revision=None, run_id=None, testbed=None).run_id == "alone"
        assert find_run(store, tmp_path, revision=SHA, run_id=None, testbed=None).run_id == "alone"
