from collections.abc import Sequence

import pytest
from records import beside_others

from perfci.dashboard.snapshot import Snapshot, take
from perfci.dashboard.views import headline
from perfci.history.model import Run, Status
from perfci.history.summary import cell, run_summary


def snapshot_of(runs: Sequence[Run], previous: Sequence[Run] = ()) -> Snapshot:
    cells = [cell(run.run_id, each) for run in (*previous, *runs) for each in run.measurements]
    return take([run_summary(run) for run in runs], [run_summary(run) for run in previous], cells)


def read(component: object) -> str:
    """All that is read of a component, in order."""
    if isinstance(component, str):
        return component
    if isinstance(component, (list, tuple)):
        return "".join(read(each) for each in component)
    return read(getattr(component, "children", None) or "")


@pytest.fixture
def sha(make) -> str:
    return make.commit(0).sha[:10]


def test_a_regression_is_counted_named_and_red(make, sha) -> None:
    slower = make.run(1, [make.cell(latency_ns=20_000.0), make.cell("b", latency_ns=20_000.0)])
    before = make.run(0, [make.cell(), make.cell("b")])
    shown = headline.show(snapshot_of([slower], [before]))
    text = read(shown)
    assert text.startswith(f"▲ 2 regressions against {sha}.")
    assert "▲ +100 % regression scale / plain in large (cpu/1)" in text
    assert shown.className == "headline red"


def test_one_is_one(make) -> None:
    slower = make.run(1, [make.cell(latency_ns=20_000.0)])
    assert read(headline.show(snapshot_of([slower], [make.run(0)]))).startswith("▲ 1 regression ")


def test_no_regression_is_said_only_where_something_was_compared(make, sha) -> None:
    faster = make.run(1, [make.cell(latency_ns=1_000.0)])
    shown = headline.show(snapshot_of([faster], [make.run(0)]))
    assert read(shown) == f"No regression against {sha}.▼ 1 improvement "
    assert shown.className == "headline plain"
    few = make.run(1, [make.cell(passes=1)])
    text = read(headline.show(snapshot_of([few], [make.run(0)])))
    assert text == f"No regression shown, and none ruled out against {sha}.? 1 inconclusive "


def test_what_is_wrong_or_gone_is_named_with_its_cases(make) -> None:
    bad = make.cell("bad", status=Status.WRONG_VALUES, message="off", error=None)
    check = make.cell("bad", case="odd", timer=None, status=Status.WRONG_VALUES, error=None)
    before = make.run(0, [make.cell(), make.cell("bad")])
    text = read(headline.show(snapshot_of([make.run(1, [bad, check])], [before])))
    assert "✕ incorrect scale / bad in large (cpu/1), odd" in text
    assert "∅ missing scale / plain in large (cpu/1)" in text


def test_a_long_list_is_cut_and_says_so(make) -> None:
    before = make.run(0, [make.cell(f"v{index}") for index in range(9)])
    text = read(headline.show(snapshot_of([make.run(1, [make.cell("new")])], [before])))
    assert "∅ 9 missing" in text
    assert text.endswith("and 3 more")


def test_without_anything_before_nothing_is_claimed(make) -> None:
    first = read(headline.show(snapshot_of([make.run(0)])))
    assert first == "The first commit measured here: no earlier commit to compare with."
    dirty = read(headline.show(snapshot_of([make.run(0, dirty="d" * 8)])))
    assert dirty.startswith("Uncommitted changes: nothing is on the branch’s line yet")


def test_a_busy_machine_is_said_quietly_below_the_verdict(make, sha) -> None:
    busy = make.run(1, [beside_others(make.cell(), 0.4), make.cell("b")])
    before = make.run(0, [beside_others(make.cell(), 0.7), make.cell("b")])
    shown = headline.show(snapshot_of([busy], [before]))
    said = (
        "A busy machine: others used 70 % of the cores while 1 of 2 latencies of the commit "
        "before was measured, and 40 % of the cores while 1 of 2 latencies of the newest commit "
        "was measured."
    )
    assert (
        read(shown)
        == f"No regression shown, and none ruled out against {sha}.? 2 inconclusive {said}"
    )
    assert shown.className == "headline plain"
    alone = read(headline.show(snapshot_of([busy])))
    assert alone.endswith(
        "40 % of the cores while 1 of 2 latencies of the newest commit was measured."
    )
    assert "busy" not in read(headline.show(snapshot_of([make.run(1)], [make.run(0)])))
