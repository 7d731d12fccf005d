"""A gate in Markdown: what is in it, that nothing in it acts, and that it fits."""

import re
from collections.abc import Callable

import pytest
from gates import HOSTILE, busy_gate, comparison, gate, known_gate, mixed_gate, wild_gate

from perfci.gate.verdicts import Gate
from perfci.history.model import Verdict
from perfci.reports.markdown import GITHUB_LIMIT, escape, gate_github, gate_markdown


def test_a_document_has_the_verdicts_the_worst_first() -> None:
    text = gate_markdown(mixed_gate(changes=("rope: the reference is changed",)))
    assert text.startswith("### perfci gate: 1 incorrect, 1 slower, 1 missing, 1 incomparable")
    assert text.index("The head changes the rules") < text.index("| cell | base |")
    rows = [line for line in text.splitlines() if line.startswith("| rope/")]
    assert "✗ incorrect" in rows[0]
    assert "▲ slower" in rows[1]
    assert "+10.0 % | [+8.0, +12.0] % | ▲ slower |" in rows[1]
    assert "**1 unchanged**" in text
    assert "<details>" not in text
    assert "perfci gate --base 0123456789 --head ffffffffff --kernel rope --variant" in text


def test_another_environment_is_first_of_all() -> None:
    text = gate_markdown(mixed_gate(changes=("a",), environment_change="torch 2.12 → 2.13"))
    said = "The head changes the environment: torch 2.12 → 2.13; each side ran in its own"
    assert text.index(said) < text.index("The head changes the rules")
    assert "environment" not in gate_markdown(mixed_gate()).partition("| cell")[0]


def test_a_comment_folds_what_is_not_red_away() -> None:
    text = gate_github(mixed_gate())
    assert "<details><summary>1 unchanged</summary>\n\n| cell" in text
    assert text.count("<details>") == text.count("</details>") > 2


@pytest.mark.parametrize("write", [gate_markdown, gate_github])
def test_nothing_from_outside_acts(write: object) -> None:
    assert callable(write)
    hostile = comparison(Verdict.MISSING, reason=HOSTILE)
    text = write(gate([hostile], changes=(HOSTILE,), environment_change=HOSTILE))
    inside = re.sub(r"</?(details|summary)>", "", text)
    for part in ("<img", "@team", "**now", "`rm`", "https://", " #1", "\x1b", "\u202e"):
        assert part not in inside, part
    assert text.count("&#60;img") == 4


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("mla_attention/tiled", "mla_attention/tiled"),
        ("_so_", "&#95;so&#95;"),
        ("a | b\nc", "a &#124; b c"),
        ("www.example", "www&#46;&#8203;example"),
        ("HTTPS://x", "HTTPS&#58;&#8203;//x"),
        ("@team a@b.example", "&#64;&#8203;team a&#64;&#8203;b.example"),
        ("fixes #1 and gh-2", "fixes &#35;&#8203;1 and gh&#45;&#8203;2"),
        ("&amp; &#64;", "&#38;amp; &#38;&#35;&#8203;64;"),
    ],
)
def test_what_acts_is_written_otherwise(text: str, shown: str) -> None:
    assert escape(text) == shown


def test_a_comment_is_cut_to_what_github_takes_and_says_so() -> None:
    many = [comparison(Verdict.REGRESSION, f"v{n}", reason="why " * 90) for n in range(2000)]
    worst = comparison(Verdict.INCORRECT, "worst", reason="wrong values")
    text = gate_github(gate([*many, worst]))
    assert len(text) <= GITHUB_LIMIT
    assert "| rope/worst/headline" in text
    assert re.search(r"\nand [\d,]+ more\n", text)
    assert text.count("<details>") == text.count("</details>")
    assert "1 incorrect, 2,000 slower" in text


@pytest.mark.parametrize("write", [gate_markdown, gate_github])
def test_a_busy_machine_is_said_and_not_folded_away(write: Callable[[Gate], str]) -> None:
    said = "others used 40 % of the cores while 1 latency of the base was measured."
    paragraphs = write(busy_gate()).split("\n\n")
    assert f"A busy machine: {said}" in paragraphs
    assert "A busy machine" not in write(mixed_gate())


@pytest.mark.parametrize("write", [gate_markdown, gate_github])
def test_passes_far_from_a_latency_are_marked_where_they_count(
    write: Callable[[Gate], str],
) -> None:
    text = write(wild_gate())
    assert "| rope/slow/headline cpu/1 | 10.0 µs | ! +10.0 % |" in text
    assert "| rope/same/headline cpu/1 | 10.0 µs | +10.0 % |" in text
    assert text.count("! passes far from the latency of their side") == 1
    told = "12 passes: 10.9 µs to 1.00 ms, 2 far from the latency"
    assert f"\n- rope/slow/headline cpu/1, head: {told}\n" in text
    folded = text.partition("1 unchanged")[2].partition("passes far from the")[0]
    assert "\n\n1 unchanged cell has passes far from its latency, no more than " in folded
    assert "far from" not in write(mixed_gate())


@pytest.mark.parametrize("write", [gate_markdown, gate_github])
def test_what_is_known_to_be_wrong_is_said_and_neither_folded_away_nor_acted_on(
    write: Callable[[Gate], str],
) -> None:
    paragraphs = write(known_gate()).split("\n\n")
    at = next(n for n, each in enumerate(paragraphs) if "run the same code" in each)
    assert paragraphs[at + 1].startswith("2 of 4 cells of the same code failed when the base was ")
    (entry,) = paragraphs[at + 2].splitlines()
    assert entry.startswith("- rope/v0/headline cpu/1, host/2: wrong values: off by &#60;3&#62;")
    assert "@team" not in entry
    assert "last measured" not in write(mixed_gate())


def test_a_comment_holds_what_many_cells_are_known_of() -> None:
    text = gate_github(known_gate(2000))
    assert len(text) <= GITHUB_LIMIT
    assert "4,000 of 4,002 cells of the same code failed when" in text
    assert re.search(r"\nand [\d,]+ more\n", text)
