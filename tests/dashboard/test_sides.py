"""The two sides of a gate on the pages: the head's stands for the newest, and each says which."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from perfci.history.model import Measurement, Run, Status


def _gate(
    make: Any,
    base: Any,
    head: Any,
    *,
    cells: tuple[Sequence[Measurement] | None, Sequence[Measurement] | None] = (None, None),
    base_id: str = "a",
) -> list[Run]:
    """Both sides of a gate, started at one moment; the base's id is before the head's or after."""
    sides = []
    for commit, own, run_id in (
        (base, cells[0], f"{base_id}-base"),
        (head, cells[1], "m-head"),
    ):
        run = replace(make.run(0, own), run_id=run_id, commit=commit, trigger="gate", pair="p")
        sides.append(replace(run, started_at=run.started_at.replace(month=4)))
    return sides


@pytest.mark.parametrize("base_id", ["a", "z"])
@pytest.mark.parametrize("kind", ["next", "merged", "dirty", "unplaced"])
def test_of_a_gate_alone_the_head_is_shown_beside_its_base(
    ask: Any, make: Any, kind: str, base_id: str
) -> None:
    base = make.commit(3)
    head = {
        "next": make.commit(4),
        # On a branch of its own, into which the base was merged: its line is the shorter one.
        "merged": replace(make.commit(5, branch="topic", parents=("f" * 40, "e" * 40)), position=2),
        "dirty": replace(base, dirty="d" * 8),
        "unplaced": replace(make.commit(4, branch="main..a4", parents=("f" * 40,)), position=None),
    }[kind]
    slower = [make.cell(latency_ns=20_000.0)]
    page = ask(_gate(make, base, head, cells=([make.cell()], slower), base_id=base_id))
    hrefs = page("/runs").hrefs
    assert hrefs.index("/run/m-head") < hrefs.index(f"/run/{base_id}-base")
    text = " ".join(page("/").text.split())
    assert "against . 1 ▲ regression a3a3a3a3a3 " in text
    assert ("20.0 µs" in text, "10.0 µs" in text) == (True, False)
    assert "Newer run" not in text


@pytest.mark.parametrize("base_id", ["a", "z"])
def test_a_commits_own_run_stands_before_a_gates_sides(ask: Any, make: Any, base_id: str) -> None:
    own = make.run(1, [make.cell(latency_ns=11_000.0)])
    gate = _gate(
        make, make.commit(1), make.commit(2), cells=([make.cell(latency_ns=55_000.0)], None),
        base_id=base_id,
    )  # fmt: skip
    page = ask([make.run(0), own, *gate])
    overview = page("/")
    assert "11.0 µs" in overview.text
    assert "55.0 µs" not in overview.text
    assert overview.hrefs.index(f"/run/{own.run_id}") < overview.hrefs.index("/run/m-head")
    assert "Newer run" in overview.text
    assert " (a gate’s head, not compared)" in overview.text
    assert "runs at this commit" not in overview.text
    assert "runs at this commit" not in str(next(page("/kernel/scale").nodes("Graph")))


def test_a_newer_run_that_is_not_compared_says_what_failed_in_it(ask: Any, make: Any) -> None:
    wrong = make.cell(status=Status.WRONG_VALUES)
    own = make.run(1, [make.cell(latency_ns=11_000.0)])
    gate = _gate(make, make.commit(1), make.commit(2), cells=([make.cell()], [wrong]))
    overview = ask([make.run(0), own, *gate])("/")
    (failed,) = overview.classes("failed")
    assert failed["children"][1] == " 1 wrong values"
    assert "(a gate’s head, not compared)" in overview.text


def test_a_branch_that_only_gates_know_has_no_line_and_is_not_shown(ask: Any, make: Any) -> None:
    own = make.run(1, branch="topic")
    gate = _gate(make, make.commit(0), make.commit(2, branch="main..a2a2a2a2a2"))
    page = ask([own, *gate])
    assert f"/run/{own.run_id}" in page("/").hrefs
    kernel = page("/kernel/scale")
    assert "Branch" not in kernel.text
    assert f"/run/{own.run_id}" in kernel.hrefs


def test_each_side_says_which_it_is_and_leads_to_the_other(ask: Any, make: Any) -> None:
    base, head = make.commit(1), make.commit(2, branch="main..a2a2a2a2a2")
    sides = [replace(each, attempt=7) for each in _gate(make, base, head)]
    page = ask([make.run(1), *sides])
    for text in (page("/runs").text, page("/run/m-head").text):
        assert "gate, the head beside " in text
        assert "not on main" in text
        assert "attempt" not in text
        assert ".." not in text
    assert "gate, the base beside " in page("/run/a-base").text
    assert "/run/m-head" in page("/run/a-base").hrefs
    filtered = page("/runs", f"?sha={head.sha}")
    assert "/run/a-base" in filtered.hrefs
    assert "1 to 1 of 1 run" in filtered.text


def test_a_bisection_is_never_the_newer_run(ask: Any, make: Any) -> None:
    sides = [replace(run, trigger="bisect") for run in _gate(make, make.commit(0), make.commit(1))]
    page = ask([make.run(0), make.run(3), *sides])
    assert "Newer run" not in page("/").text
    assert "bisect, beside " in page("/runs").text
