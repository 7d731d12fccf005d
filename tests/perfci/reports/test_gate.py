"""A gate as text: the rules first, the worst first, and how to see it again."""

from dataclasses import replace

import click
import pytest
import records
from gates import busy_gate, comparison, gate, known_gate, mixed_gate, wild_gate

from perfci.gate.past import Best, Past, Since
from perfci.gate.rungs import Ending
from perfci.gate.verdicts import Gate, exit_code_of, without_haste
from perfci.history.model import Verdict
from perfci.reports.columns import WIDTH, measure
from perfci.reports.gate import describe_ending, find_commands, gate_text


def _lines(gate: Gate) -> list[str]:
    return [click.unstyle(line) for line in gate_text(gate)]


def test_what_the_head_changes_comes_first_and_nothing_is_wider_than_a_terminal() -> None:
    long = "rope: " + "x" * 300
    lines = _lines(mixed_gate(changes=("threshold: 0.05 → 0.5", long)))
    assert lines[4] == "The head changes the rules. Nothing of it counts here:"
    assert lines[5] == "  · threshold: 0.05 → 0.5"
    assert max(map(measure, lines)) <= WIDTH
    assert "\x1b" not in "".join(lines)
    assert "\u202e" not in "".join(lines)


def test_what_the_head_changes_of_the_environment_is_first_of_all_and_counts() -> None:
    lines = _lines(mixed_gate(changes=("a",), environment_change="torch 2.12 → 2.13"))
    assert lines[4].startswith("environment: torch 2.12 → 2.13; each side ran in its own")
    assert lines.index("The head changes the rules. Nothing of it counts here:") > 4
    assert not any(line.startswith("environment:") for line in _lines(mixed_gate()))


def test_the_worst_is_first_and_the_same_code_is_counted_by_itself() -> None:
    lines = _lines(mixed_gate())
    verdicts = [
        line.split("  ")[-1] for line in lines if line.startswith("  v") and "headline" in line
    ]
    assert verdicts[0] == "✗ incorrect"
    timed = [each for each in verdicts if each[0] in "▲▼?="]
    assert timed == ["▲ slower", "? inconclusive", "▼ faster", "= unchanged"]
    assert any(line.startswith("1 cell runs the same code on both sides") for line in lines)
    assert not any(line.startswith("  same ") for line in lines)


def test_errors_that_changed_are_told_also_where_nothing_got_slower() -> None:
    text = "\n".join(_lines(mixed_gate()))
    told = "errors and memory that changed besides\n  rope/v2/headline cpu/1: RMS error 1.0e-06"
    assert told in text


def test_means_are_over_the_cells_that_both_sides_have() -> None:
    cells = [comparison(Verdict.REGRESSION, "a", ratio=2.0), comparison(Verdict.MISSING, "c")]
    lines = _lines(gate([*cells, comparison(Verdict.UNCHANGED, "b", ratio=0.72)]))
    assert "rope cpu/1 +20.0 % 2" in [" ".join(line.split()) for line in lines]


def test_every_red_cell_can_be_seen_again_once() -> None:
    red = [comparison(Verdict.REGRESSION, "a"), comparison(Verdict.INCORRECT, "b")]
    one = gate([*red, comparison(Verdict.UNCHANGED, "c")])
    commands = [" ".join(words) for words in find_commands(one)]
    base = "perfci gate --base 0123456789 --head ffffffffff --kernel rope --variant"
    assert commands == [f"{base} b --case headline", f"{base} a --case headline"]


def test_what_was_accepted_costs_nothing() -> None:
    slower, wrong = comparison(Verdict.REGRESSION, "a"), comparison(Verdict.INCORRECT, "b")
    accepted = frozenset({slower.key, wrong.key})
    assert exit_code_of(gate([slower])) == 1
    assert exit_code_of(gate([slower], accepted=accepted)) == 0
    assert exit_code_of(gate([])) == 9
    assert find_commands(gate([slower], accepted=accepted)) == []


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"ending": None}, "1 m 40 s; nothing had to be timed in turns"),
        ({}, "12 passes in 1 m 40 s: every cell is decided"),
        ({"passes": 1, "ending": Ending.OUT_OF_PASSES}, "1 pass in 1 m 40 s: as many as there may"),
        (
            {"ending": Ending.OUT_OF_TIME, "needed_s": 620.0},
            "12 passes, stopped at 1 m 40 s: the next look would end at some 10 m 20 s, ",
        ),
    ],
)
def test_it_is_said_why_no_more_was_measured(fields: dict[str, object], words: str) -> None:
    assert describe_ending(gate([], **fields)).startswith(words)


def test_the_budget_that_it_would_have_taken_is_given_in_whole_minutes() -> None:
    ended = gate([], ending=Ending.OUT_OF_TIME, passes=6, needed_s=300.5, budget_s=240.0)
    lines = _lines(ended)
    assert lines[-2:] == [
        "6 passes, stopped at 1 m 40 s: the next look would end at some 5 m, beyond the",
        "budget of 4 m; give --budget 6",
    ]


def test_of_too_few_passes_no_change_and_no_mean_is_written() -> None:
    wild = {"ratio": 166.3, "interval": (0.0, 6.7e8), "smallest_visible_change": 7.1e77}
    hasty = without_haste(comparison(Verdict.INCONCLUSIVE, **wild), 2)
    text = "\n".join(_lines(gate([hasty], passes=2, ending=Ending.OUT_OF_TIME)))
    assert "stopped after 2 of at least 6 passes\n" in text
    for absent in ("+", "] %", "geometric means", "would have shown"):
        assert absent not in text


def test_what_no_pass_can_decide_is_not_called_decided() -> None:
    assert "more decide no more" in describe_ending(gate([comparison(Verdict.INCONCLUSIVE)]))


def test_what_drifts_is_told_and_decides_nothing() -> None:
    slower = comparison(Verdict.REGRESSION, "a", ratio=1.3)
    commit = records.run().commit
    past = Past(
        since=(Since(name="v1.0", commit=commit, comparisons=(slower,)),),
        best=(
            Best(key=slower.key, latency_ns=9_000.0, commit=commit, ratio=1.2),
            Best(key=slower.key, latency_ns=9_000.0, commit=commit, ratio=1.01),
        ),
    )
    drifted = gate([comparison(Verdict.UNCHANGED)], past=past)
    text = "\n".join(_lines(drifted))
    assert "  since v1.0 (0123456789): 1 of 1 cell slower\n" in text
    assert "    rope/a/headline cpu/1: +30.0 %" in text
    assert "  off the best ever recorded by more than +5.0 %: 1 of 2 cells\n" in text
    assert "    rope/a/headline cpu/1: +20.0 % from 9.00 µs at 0123456789" in text
    assert exit_code_of(drifted) == 0


def test_a_busy_machine_is_said_and_costs_nothing() -> None:
    lines = _lines(busy_gate())
    at = lines.index(
        "A busy machine: others used 40 % of the cores while 1 latency of the base was"
    )
    assert lines[at + 1 : at + 3] == ["measured.", ""]
    assert lines.index("1 unchanged") > at
    assert exit_code_of(busy_gate(), fail_on_inconclusive=True) == 0
    assert "A busy machine" not in "".join(_lines(mixed_gate()))


def test_passes_far_from_a_latency_are_marked_where_they_count() -> None:
    text = "\n".join(_lines(wild_gate()))
    assert "  slow     headline   10.0 µs  ! +10.0 %  [+8.0, +12.0] %  ▲ slower\n" in text
    assert "  same     headline   10.0 µs    +10.0 %  [+8.0, +12.0] %  = unchanged\n" in text
    assert (
        "! passes far from the latency of their side\n"
        "  cell                timer  side           far   lowest  highest\n"
        "  rope/slow/headline  cpu/1  contender  2 of 12  10.9 µs  1.00 ms\n\n"
        "1 unchanged cell has passes far from its latency, no more than the fifth that it\n"
        "leaves out\n\n"
    ) in text
    assert "far from" not in "\n".join(_lines(mixed_gate()))


def test_marks_of_long_names_fit_a_terminal() -> None:
    slower, _ = wild_gate().comparisons
    key = replace(slower.key, kernel="k" * 40, variant="v" * 40, case="c" * 40)
    lines = _lines(gate([replace(slower, key=key)]))
    assert max(map(measure, lines)) <= WIDTH
    assert any(line.startswith("  kkkkkk") and line.endswith("1.00 ms") for line in lines)


def test_cells_of_the_same_code_that_are_known_to_be_wrong_are_named_beside_their_count() -> None:
    lines = _lines(known_gate())
    at = lines.index(
        "2 of 4 cells of the same code failed when the base was last measured, and the"
    )
    assert lines[at - 2].endswith("unchanged without being measured")
    assert lines[at + 1] == "head changes nothing of that:"
    entry = " ".join(line.strip() for line in lines[at + 2 : lines.index("", at)])
    assert entry.startswith("rope/v0/headline cpu/1, host/2: wrong values: off by <3> Speed up")
    assert entry.endswith("; run 20261130T014343-ab12cd34")
    assert exit_code_of(known_gate(), fail_on_inconclusive=True) == 0
    assert "last measured" not in "".join(_lines(mixed_gate()))


def test_of_many_cells_that_are_known_to_be_wrong_some_are_named() -> None:
    lines = _lines(known_gate(30))
    assert max(map(measure, lines)) <= WIDTH
    assert sum(line.startswith("  rope/v") for line in lines) == 10
    assert "  and 20 more" in lines
