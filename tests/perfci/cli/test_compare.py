"""perfci compare: what a script is told of two recorded commits."""

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import scratch
from records import beside_others, measurement, run

from perfci.history.model import Measurement, Status
from perfci.history.stores import open_store

_STEADY = (1000.0, 1001.0, 999.0)
_SLOW = tuple(2 * each for each in _STEADY)
_A, _B = "a" * 40, "b" * 40

Compared = Callable[..., Any]


@pytest.fixture
def compared(tmp_path: Path, call: Callable[..., Any]) -> Compared:
    """Record cells at two commits, in so many runs of each, and compare these commits."""
    root = scratch.quick(tmp_path / "root")

    def ended(
        baseline: Iterable[Measurement],
        contender: Iterable[Measurement],
        *arguments: str,
        runs: int = 1,
        pair: str = "",
        torches: tuple[str, str] = ("2.13.0", "2.13.0"),
    ) -> Any:
        with open_store(f"sqlite:///{root}/.perfci/history.db") as store:
            for sha, cells, torch in zip((_A, _B), (baseline, contender), torches, strict=True):
                for number in range(runs):
                    recorded = run(*cells, run_id=f"{sha[0]}{number}", sha=sha)
                    where = replace(recorded.environment, torch=torch)
                    store.add(replace(recorded, pair=pair, environment=where))
        return call(root, "compare", _A, _B[:7], *arguments)

    return ended


def test_a_regression_is_1(compared: Compared) -> None:
    ended = compared([measurement(_STEADY)], [measurement(_SLOW)])
    assert (ended.code, ended.err) == (1, "")
    assert "  tiled    headline   1.00 µs  +100 %" in ended.out
    assert ended.out.endswith("\n1 slower\n")


def test_an_improvement_is_0(compared: Compared) -> None:
    ended = compared([measurement(_SLOW)], [measurement(_STEADY)], "--json")
    assert ended.code == 0
    (row,) = json.loads(ended.out)["comparisons"]
    assert (row["verdict"], row["key"]["variant"]) == ("improvement", "tiled")
    assert row["ratio"] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("code", "verdict", "reason", "exit_code"),
    [
        (
            "bb22",
            "? inconclusive",
            "the same code, measured apart: it may be the machine; perfci gate takes turns",
            0,
        ),
        ("cc33", "▲ slower", "host code changed", 1),
    ],
)
def test_what_moved_says_what_differs_in_its_code_and_is_not_blamed_on_the_same(
    compared: Compared, code: str, verdict: str, reason: str, exit_code: int
) -> None:
    before = replace(measurement(_STEADY), identity=(("host code", "bb22"),))
    after = replace(measurement(_SLOW), identity=(("host code", code),))
    ended = compared([before], [after])
    _, _, said = ended.out.partition(f"\n{verdict} · rope/tiled/headline cpu/1\n    ")
    assert said.partition("\n\n")[0].replace("\n    ", " ") == reason
    assert "+100 %" in ended.out
    assert ended.code == exit_code


def test_the_same_code_in_another_environment_may_have_got_slower_by_that(
    compared: Compared,
) -> None:
    told = (("host code", "bb22"),)
    before, after = (replace(measurement(each), identity=told) for each in (_STEADY, _SLOW))
    ended = compared([before], [after], torches=("2.13.0", "2.14.0"))
    words = " ".join(ended.out.split())
    assert "the same code; measured apart: it may be the environment, or the machine" in words
    assert (ended.code, "▲ slower" in ended.out) == (1, True)


def test_several_runs_that_agree_are_0_also_where_inconclusive_fails(compared: Compared) -> None:
    cells = [measurement(_STEADY)]
    ended = compared(cells, cells, "--fail-on", "inconclusive", runs=3)
    assert (ended.code, ended.out.endswith("\n1 unchanged\n")) == (0, True)


@pytest.mark.parametrize(("arguments", "code"), [((), 0), (("--fail-on", "inconclusive"), 8)])
def test_inconclusive_is_8_only_when_asked_for(
    compared: Compared, arguments: tuple[str, ...], code: int
) -> None:
    cells = [measurement(_STEADY)]
    ended = compared(cells, cells, *arguments)
    assert (ended.code, ended.out.endswith("\n1 inconclusive\n")) == (code, True)


def test_what_is_only_checked_and_right_is_counted(compared: Compared) -> None:
    both = [measurement(_STEADY), *(measurement(case=case, contract=None) for case in "ab")]
    skipped = measurement(variant="gone", contract=None, status=Status.SKIPPED)
    ended = compared([*both, skipped], [*both, skipped], runs=3)
    assert ended.out.endswith("\n3 cells: 1 unchanged, 2 right (checked only)\n")
    document = json.loads(compared(both, both, "--json", runs=3).out)
    assert (len(document["comparisons"]), document["checked"]) == (1, 2)


def test_a_wrong_result_is_1_and_outweighs_a_missing_cell(compared: Compared) -> None:
    wrong = measurement(status=Status.WRONG_VALUES, message="off by 3")
    ended = compared([measurement(_STEADY), measurement(_STEADY, variant="gone")], [wrong])
    assert ended.code == 1
    assert "\n    wrong values: off by 3\n" in ended.out
    assert ended.out.endswith("\n2 cells: 1 incorrect, 1 missing\n")


@pytest.mark.parametrize("arguments", [(), ("--fail-on", "inconclusive")])
def test_a_missing_cell_is_9(compared: Compared, arguments: tuple[str, ...]) -> None:
    both = [measurement(_STEADY), measurement(_STEADY, variant="gone")]
    assert compared(both, both[:1], *arguments).code == 9


def test_another_workload_is_7(compared: Compared) -> None:
    cell = measurement(_STEADY)
    assert compared([cell], [replace(cell, workload_digest="other")]).code == 7


def test_a_comparison_of_nothing_is_9(compared: Compared) -> None:
    ended = compared([], [])
    assert (ended.code, ended.out) == (9, "  (none)\n\nnothing compared\n")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("c" * 40, "bbbbbbb"), 9, f"nothing is recorded at {'c' * 40}"),
        ((_A, _B, "--testbed", "other"), 9, "on testbed 'other'"),
        ((_A, "main"), 2, "'main' is no commit"),
        ((_A, _B + "+dirty"), 9, "+dirty"),
    ],
)
def test_what_is_not_recorded_is_one_line(
    compared: Compared,
    call: Callable[..., Any],
    tmp_path: Path,
    arguments: tuple[str, ...],
    code: int,
    words: str,
) -> None:
    compared([measurement(_STEADY)], [measurement(_STEADY)])
    ended = call(tmp_path / "root", "compare", *arguments)
    assert (ended.code, ended.out, ended.err.count("\n")) == (code, "", 1)
    assert words in ended.err


def test_only_the_cells_that_are_named_count(compared: Compared) -> None:
    other = measurement(_STEADY, variant="naive")
    slow = [measurement(_SLOW), other]
    ended = compared([measurement(_STEADY)], slow, "--variant", "tiled")
    assert (ended.code, ended.out.endswith("\n1 slower\n")) == (1, True)
    ended = compared([], [], "--variant", "naive")
    assert (ended.code, ended.out.endswith("\n1 new\n")) == (0, True)


def test_a_name_that_neither_side_has_is_2(compared: Compared) -> None:
    ended = compared([measurement(_STEADY)], [measurement(_SLOW)], "--variant", "tild")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == (
        "perfci: no variant 'tild' is recorded on either side (did you mean 'tiled'?)\n"
    )


def _anchor(means_ns: tuple[float, ...]) -> Measurement:
    return measurement(means_ns, kernel="perfci_copy", case="memory", variant="torch_add")


def test_a_machine_that_moved_is_said_and_is_no_regression(compared: Compared) -> None:
    cell = measurement(_STEADY)
    ended = compared([cell, _anchor(_STEADY)], [cell, _anchor(_SLOW)], runs=3)
    assert (ended.code, ended.out.endswith("\n1 unchanged\n")) == (0, True)
    assert "\nthis machine: anchors · bench · Some CPU\n" in ended.out
    assert "\nthe machine itself moved: perfci_copy/memory cpu/1 +100 %\n" in ended.out


def test_a_regression_beside_a_machine_that_moved_is_still_one(compared: Compared) -> None:
    before, after = measurement(_STEADY), measurement(_SLOW)
    ended = compared([before, _anchor(_STEADY)], [after, _anchor(_SLOW)])
    assert (ended.code, ended.out.endswith("\n1 slower\n")) == (1, True)
    assert "the machine itself moved" in ended.out


def test_anchors_are_compared_whatever_is_chosen_and_cannot_be_chosen(compared: Compared) -> None:
    cells = [measurement(_STEADY), _anchor(_STEADY)]
    ended = compared(cells, cells, "--kernel", "rope", "--json")
    both = json.loads(ended.out)
    assert [each["key"]["kernel"] for each in both["comparisons"]] == ["rope"]
    assert [each["key"]["kernel"] for each in both["anchors"]] == ["perfci_copy"]
    assert compared([], [], "--kernel", "perfci_copy").code == 2


@pytest.mark.parametrize(("passes", "decide"), [(5, False), (6, True)])
def test_of_an_anchor_as_of_a_cell_too_few_paired_passes_tell_no_change(
    compared: Compared, passes: int, decide: bool
) -> None:
    before, after = ((factor * 1000.0,) * passes for factor in (1.0, 2.0))
    ended = compared(
        [measurement(before), _anchor(before)], [measurement(after), _anchor(after)], pair="p"
    )
    cell, anchor = (
        next(line.split() for line in ended.out.splitlines() if line.startswith(f"  {name} "))
        for name in ("tiled", "copy")
    )
    change = ["+100", "%"] if decide else ["–", "–"]
    assert cell[2:4] == anchor[3:5] == ["1.00", "µs"]
    assert cell[4:6] == anchor[5:7] == change
    assert ended.out.count("5 paired passes: fewer than 6 decide nothing") == (0 if decide else 2)
    assert ("the machine itself moved" in ended.out) is decide
    assert ended.code == (1 if decide else 0)


def test_an_anchor_on_one_side_only_is_not_missing(compared: Compared) -> None:
    cell = measurement(_STEADY)
    ended = compared([cell, _anchor(_STEADY)], [cell], runs=3)
    assert (ended.code, "anchors" in ended.out) == (0, False)


def test_bounds_that_changed_come_first_and_the_looser_ones_before_the_others(
    compared: Compared,
) -> None:
    def judged(case: str, variant: str, said: str) -> Measurement:
        cell = measurement(_STEADY, case=case, variant=variant)
        return replace(cell, identity=(("source", "aa11"), ("bounds", said)))

    before = [
        judged("a", "tiled", "largest 0.2, rms 0.06"),
        judged("b", "tiled", "largest 0.2, rms 0.06"),
        judged("b", "eager", "largest 0.2, rms 0.06"),
        judged("c", "tiled", "largest 0.2, rms 0.06"),
        judged("d", "tiled", "not frozen"),
        judged("e", "tiled", "largest 0.2, rms 0.06"),
    ]
    after = [
        judged("a", "tiled", "largest 0.1, rms 0.06"),
        judged("b", "tiled", "largest 0.1, rms 0.07"),
        judged("b", "eager", "largest 0.1, rms 0.07"),
        judged("c", "tiled", "stale"),
        judged("d", "tiled", "largest 9, rms 9"),
        judged("e", "tiled", "largest 0.2, rms 0.06"),
    ]
    ended = compared(before, after)
    assert ended.code == 0
    assert ended.out.splitlines()[:6] == [
        "bounds changed: what is right here may not have been right there",
        "  ▲ looser · rope/b: largest 0.2, rms 0.06 → largest 0.1, rms 0.07",
        "  ▲ looser · rope/c: largest 0.2, rms 0.06 → stale",
        "  ▼ tighter · rope/a: largest 0.2, rms 0.06 → largest 0.1, rms 0.06",
        "  ▼ tighter · rope/d: not frozen → largest 9, rms 9",
        "",
    ]
    told = json.loads(compared(before, after, "--json").out)
    assert [(each["case"], each["is_looser"]) for each in told["bounds"]] == [
        ("b", True),
        ("c", True),
        ("a", False),
        ("d", False),
    ]
    assert not any(told_["differences"] != ["the same code"] for told_ in told["comparisons"])


def test_a_side_that_says_nothing_of_its_bounds_is_no_change(compared: Compared) -> None:
    said = replace(measurement(_STEADY), identity=(("source", "aa11"), ("bounds", "stale")))
    silent = replace(measurement(_STEADY), identity=(("source", "aa11"),))
    told = json.loads(compared([silent], [said], "--json").out)
    assert told["bounds"] == []
    assert told["comparisons"][0]["differences"] == ["the same code"]


def test_another_choice_of_an_autotuner_is_marked_where_nothing_moved_either(
    compared: Compared,
) -> None:
    def made(calls: str, code: str, warps: int) -> Measurement:
        told = {
            "generated calls": calls,
            "generated code": code,
            "triton_mm configuration": f"num_warps {warps}, XBLOCK 64",
        }
        return replace(measurement(_STEADY), identity=tuple(told.items()))

    ended = compared([made("triton_mm", "aa11", 4)], [made("triton_mm", "bb22", 8)])
    assert ended.code == 0
    told = " ".join(ended.out.split())
    assert "? inconclusive · rope/tiled/headline cpu/1" in told
    assert "would have shown; triton_mm configuration num_warps 4 → 8 " in told
    ended = compared([made("triton_mm", "aa11", 4)], [made("triton_mm", "bb22", 4)])
    assert "code changed" not in ended.out


def test_a_busy_machine_is_said_of_each_side_and_is_no_verdict(compared: Compared) -> None:
    cell = measurement(_STEADY)
    before = [beside_others(cell, 0.4), beside_others(_anchor(_STEADY), 0.62)]
    after = [beside_others(cell, 0.3), beside_others(_anchor(_STEADY), 0.1)]
    ended = compared(before, after, "--testbed", "bench")
    assert ended.code == 0
    said = (
        "A busy machine: others used 40 % to 62 % of the cores while 2 latencies of the "
        "baseline were measured, and 30 % of the cores while 1 of 2 latencies of the contender "
        "was measured."
    )
    assert said in ended.out.replace("\n", " ")
    assert max(map(len, ended.out.splitlines())) <= 80
    assert json.loads(compared(before, after, "--json").out)["load"] == said


def test_only_of_what_is_compared_a_busy_machine_is_said(
    compared: Compared, call: Callable[..., Any], tmp_path: Path
) -> None:
    cell = measurement(_STEADY)
    other = beside_others(measurement(_STEADY, variant="naive"), 0.9)
    assert "busy" not in compared([cell, other], [cell, other], "--variant", "tiled").out
    assert "busy" in call(tmp_path / "root", "compare", _A, _B).out


def test_runs_that_do_not_count_tell_nothing_of_a_busy_machine(
    tmp_path: Path, call: Callable[..., Any]
) -> None:
    root = scratch.quick(tmp_path / "root")
    cell = measurement(_STEADY * 2)
    with open_store(f"sqlite:///{root}/.perfci/history.db") as store:
        for sha in (_A, _B):
            store.add(run(beside_others(cell, 0.9), run_id=f"{sha[0]}1", sha=sha))
            together = run(beside_others(cell, 0.5), run_id=f"{sha[0]}2", sha=sha)
            store.add(replace(together, pair="p"))
    out = call(root, "compare", _A, _B).out
    assert "others used 50 % of the cores while 2 latencies were measured." in out


_CALM = tuple(1000.0 + index for index in range(10))


def _with_wild(count: int, factor: float = 1.0) -> Measurement:
    """A cell of ten passes, so many of which took some fifty times as long."""
    means_ns = [factor * each for each in _CALM]
    return measurement([*means_ns[count:], *(50.0 * each for each in means_ns[:count])])


def test_passes_far_from_a_latency_are_marked_and_told_of_each_side(compared: Compared) -> None:
    ended = compared([_with_wild(1)], [_with_wild(2, factor=2.0)])
    assert ended.code == 1
    assert "  tiled    headline  ! 1.01 µs  ! +1" in ended.out
    assert (
        """
! passes far from the latency of their side
  cell                 timer  side           far   lowest  highest
  rope/tiled/headline  cpu/1  baseline   1 of 10  1.00 µs  50.0 µs
  rope/tiled/headline  cpu/1  contender  2 of 10  2.00 µs   100 µs

"""
        in ended.out
    )


def test_how_far_passes_lie_apart_is_in_json_for_both_sides(compared: Compared) -> None:
    ended = compared([measurement(_CALM)], [_with_wild(2, factor=2.0)], "--json")
    (row,) = json.loads(ended.out)["comparisons"]
    assert row["baseline_passes"] == {
        "count": 10, "far": 0, "lowest_ns": 1000.0, "highest_ns": 1009.0,
    }  # fmt: skip
    assert (row["contender_passes"]["far"], row["contender_passes"]["highest_ns"]) == (2, 100_100.0)


@pytest.mark.parametrize(("wild", "is_marked"), [(2, False), (3, True)])
def test_what_is_unchanged_is_marked_only_beyond_what_the_mean_leaves_out(
    compared: Compared, wild: int, is_marked: bool
) -> None:
    cells = [_with_wild(wild)]
    ended = compared(cells, cells, pair="p")
    assert (ended.code, ended.out.endswith("\n1 unchanged\n")) == (0, True)
    assert ("! " in ended.out) is is_marked
    said = (
        "\n1 unchanged cell has passes far from its latency, no more than the fifth that it\n"
        "leaves out\n\n"
    )
    assert (said in ended.out) is not is_marked


def test_an_anchor_is_marked_too(compared: Compared) -> None:
    anchors = [_anchor(each) for each in (_CALM, (*_SLOW, *_SLOW, 90_000.0))]
    calm = measurement(_CALM)
    ended = compared([calm, anchors[0]], [calm, anchors[1]])
    assert "  copy    memory  cpu/1   1.00 µs  ! +99" in ended.out
    assert "  perfci_copy/torch_add/memory  cpu/1  contender  1 of 7  2.00 µs" in ended.out
