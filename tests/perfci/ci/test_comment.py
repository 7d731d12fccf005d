"""A ruling in Markdown: what is in it, that nothing in it acts, and that GitHub takes it."""

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import gates
import parcels
import pytest
import rulings
from gates import comparison

from perfci.ci.act import Act
from perfci.ci.comment import Place, write_markdown, write_title
from perfci.ci.merging import Ruling
from perfci.gate.past import Since
from perfci.history.model import Verdict
from perfci.history.text import one_line

_HOSTILE = one_line(gates.HOSTILE)
"""A parcel with control characters in it is not read at all."""

_URL = "https://github.com/example/kernels/actions/runs/4711"


def _write(ruling: Ruling, longest_bytes: int = 65_000) -> str:
    return write_markdown(ruling, Place(url=_URL), longest_bytes=longest_bytes)


def test_the_worst_comes_first_over_all_runners() -> None:
    mixed = rulings.gated("h200", gates.mixed_gate().comparisons)
    text = _write(rulings.ruling(mixed, rulings.red("a100"), runners=("h200", "a100", "b200")))
    assert text.startswith("### ✗ perfci: 1 incorrect, 2 slower, 1 missing, 1 incomparable")
    assert "; b200 did not report\n" in text.split("\n\n")[0] + "\n"
    rows = [line for line in text.splitlines() if line.startswith("| ") and "rope/" in line]
    assert "✗\u00a0incorrect" in rows[0]
    assert "▲\u00a0slower | +10.0\u00a0% | rope/" in rows[1]
    assert {"h200", "a100"} == {row.split(" | ")[3] for row in rows[1:3]}
    assert "| **–\u00a0missing** | **b200** |  | did not report |" in text
    assert "<details><summary>1 unchanged</summary>" in text
    assert "1 cell runs the same code on both sides" in text
    assert f"[Run 4711, attempt 1]({_URL})" in text
    assert "perfci gate --base 0123456789 --head ffffffffff --kernel rope --variant" in text


def test_a_green_one_says_so() -> None:
    text = _write(rulings.ruling(rulings.green("h200"), rulings.green("a100")))
    assert text.startswith("### ✓ perfci: 2 unchanged\n")
    assert "To see it again" not in text


def test_what_the_head_changes_of_the_environment_is_said_once() -> None:
    cells = [comparison(Verdict.UNCHANGED)]
    both = [
        rulings.gated(each, cells, environment_change="torch 2.12 → 2.13")
        for each in rulings.RUNNERS
    ]
    text = _write(rulings.ruling(*both))
    assert text.count("The head changes the environment: torch 2.12 → 2.13; each side ran") == 1
    assert text.index("The head changes the environment") < text.index("| verdict |")


def test_a_runner_that_others_kept_busy_is_named_and_green() -> None:
    busy = rulings.of_gate("h200", gates.busy_gate())
    text = _write(rulings.ruling(busy, rulings.green("a100")))
    assert text.startswith("### ✓ perfci: 2 unchanged\n")
    assert "\n\n- h200: A busy machine: others used 40 % of the cores while 1 latency " in text
    assert "a100: A busy" not in text


def test_passes_far_from_a_latency_are_marked_where_they_count_and_told_by_runner() -> None:
    wild = rulings.of_gate("h200", gates.wild_gate())
    text = _write(rulings.ruling(wild, rulings.green("a100"))).replace("\u00a0", " ")
    assert "| ▲ slower | ! +10.0 % | rope/slow/headline" in text
    assert "| = unchanged | +10.0 % | rope/same/headline" in text
    told = text.partition("<summary>! passes far from the latency of their side</summary>\n\n")[2]
    assert told.startswith(
        "- rope/slow/headline cpu/1 on h200, head: 12 passes: 10.9 µs to 1.00 ms, 2 far from the "
        "latency\n\n</details>"
    )
    assert "\n\n1 unchanged cell has passes far from its latency, no more than " in text


def test_what_a_runner_knows_to_be_wrong_is_said_and_green() -> None:
    known = rulings.of_gate("h200", gates.known_gate())
    text = _write(rulings.ruling(known, rulings.green("a100")))
    assert text.startswith("### ✓ perfci: 5 unchanged\n")
    said = "\n\nh200: 2 of 4 cells of the same code failed when the base was last measured, "
    assert said in text
    assert "\n- rope/v0/headline cpu/1, host/2: wrong values: off by &#60;3&#62;" in text
    assert text.count("last measured") == 1
    alone = _write(rulings.ruling(known, runners=("h200",)))
    assert "\n\n2 of 4 cells of the same code failed" in alone


def test_what_the_head_changes_of_the_rules_is_listed_first_and_once() -> None:
    cells = [comparison(Verdict.UNCHANGED)]
    both = [rulings.gated(each, cells, changes=("rope: looser",)) for each in rulings.RUNNERS]
    text = _write(rulings.ruling(*both))
    assert text.count("rope: looser") == 1
    assert text.index("The head changes the rules") < text.index("| verdict |")


def test_a_runner_is_named_in_every_row_only_where_there_are_several() -> None:
    text = _write(rulings.ruling(rulings.red("h200"), runners=("h200",)))
    assert "| verdict | change | cell | base | interval |" in text


def test_a_runner_that_failed_says_why() -> None:
    ruling = rulings.ruling(rulings.failed("h200"), rulings.green("a100"))
    assert write_title(ruling) == "1 unchanged; h200: nvcc is not there"
    assert "| nvcc is not there | h200 |" in _write(ruling)


def test_a_run_is_told_without_cells() -> None:
    done = parcels.parcel(act=Act.RUN, exit_code=0, gates=(), steps=(parcels.step("run"),))
    ruling = rulings.ruling(done, act=Act.RUN, runners=("h200",))
    assert write_title(ruling) == "1 of 1 runner: run done"
    assert "| run done | h200 |  | 1.5 s |" in _write(ruling)
    broken = replace(done, exit_code=1)
    ruling = rulings.ruling(broken, act=Act.RUN, runners=("h200",))
    assert write_title(ruling) == "h200: run has ended with exit code 1"


def test_what_is_accepted_is_marked() -> None:
    slower = comparison(Verdict.REGRESSION)
    parcel = rulings.gated("h200", [slower], accepted=frozenset({slower.key}))
    text = _write(rulings.ruling(parcel, runners=("h200",)))
    assert text.startswith("### ✓ perfci: 1 slower\n")
    assert "▲\u00a0slower (accepted)" in text


def test_why_nothing_is_measured_is_said() -> None:
    nothing = Ruling(
        act=Act.NOTHING, reason="no kernel is touched", head="a" * 40, run_id="1", attempt=1
    )
    assert _write(nothing) == (
        "### – perfci: nothing to measure\n\n`aaaaaaaaaa`: no kernel is touched.\n"
    )
    waits = replace(nothing, is_admitted=False, reason="a fork's", notes=("h200 has reported",))
    assert _write(waits).startswith("### ! perfci: waits for approval\n")
    assert "Not counted:\n\n- h200 has reported\n" in _write(waits)


_ACTING = ("<img", "@team", "**now", "`rm`", "https://ev", " #1", "\x1b", "\u202e", "fixes #")


def test_nothing_from_outside_acts() -> None:
    """Every text of a parcel that is shown, written by someone who means to do something."""
    odd = comparison(Verdict.REGRESSION, reason=_HOSTILE)
    odd = replace(odd, key=replace(odd.key, kernel=_HOSTILE, variant="`\n```\n<img src=x>\n```"))
    parcel = rulings.gated("h200", [odd], changes=(_HOSTILE,), environment_change=_HOSTILE)
    (gate,) = parcel.gates
    device = replace(gate.environment.device, model=_HOSTILE)
    gate = replace(
        gate,
        found=_HOSTILE,
        load=_HOSTILE,
        environment=replace(gate.environment, device=device),
        comparisons=tuple(
            replace(each, differences=("registers 1 → 2 " + _HOSTILE,)) for each in gate.comparisons
        ),
    )
    parcel = replace(parcel, gates=(gate,))
    broken = rulings.failed("a100", error="fixes #2 " + _HOSTILE)
    text = _write(rulings.ruling(parcel, broken, notes=(_HOSTILE,)))
    outside = re.sub(r"```\n.*?\n```", "", text, flags=re.DOTALL)
    inside = re.sub(rf"</?(details|summary|sub|br)>|\({_URL}\)", "", outside)
    for part in _ACTING:
        assert part not in inside, part
    assert text.count("```") == 2  # the block of commands, which nothing in it ends
    assert inside.count("&#60;img") > 6


def test_a_command_that_is_copied_runs_nothing_else(tmp_path: Path) -> None:
    names = {"kernel": "x; touch y #", "variant": "$(touch y)", "case": "'`touch y`\" & touch y"}
    red = comparison(Verdict.REGRESSION)
    parcel = rulings.gated("h200", [replace(red, key=replace(red.key, **names))])
    text = _write(rulings.ruling(parcel, runners=("h200",)))
    (command,) = re.findall(r"```\n(.*)\n```", text)
    script = f"perfci() {{ printf '%s\\n' \"$@\"; }}\n{command}\n"
    ended = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    # Nothing ends the block of code, so that a backtick has become another sign.
    shown = [each.replace("`", "'") for each in names.values()]
    assert ended.stdout.splitlines()[-5::2] == shown
    assert ended.stderr == ""
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("character", ["x", "ß", "核", "🌈"])
def test_it_is_never_longer_than_github_takes(character: str) -> None:
    many = [comparison(Verdict.REGRESSION, f"v{n}", reason=character * 300) for n in range(2000)]
    worst = comparison(Verdict.INCORRECT, "worst", reason="wrong values")
    ruling = rulings.ruling(rulings.gated("h200", [*many, worst]), rulings.green("a100"))
    text = _write(ruling)
    assert len(text.encode()) <= 65_000
    assert "| rope/worst/headline" in text.replace("\u00a0", " ")
    assert re.search(r"\nand [\d,]+ more\n", text)
    assert text.count("<details>") == text.count("</details>")
    assert "1 incorrect, 2,000 slower, 1 unchanged" in text
    assert "verdict.json" in text


def test_whatever_there_is_much_of_the_worst_is_shown() -> None:
    """Hand-made: a runner has a handful of devices, and each is in one environment."""
    parcel = rulings.gated("h200", [comparison(Verdict.UNCHANGED)])
    (gate,) = parcel.gates
    since = Since(name="v" * 200, commit=gate.base, comparisons=gate.comparisons)
    many = tuple(
        replace(gate, since=(since,), environment_change=f"torch {n}{'x' * 300}")
        for n in range(400)
    )
    worst = rulings.gated("h200", [comparison(Verdict.INCORRECT, "worst")]).gates
    text = _write(rulings.ruling(replace(parcel, gates=(*many, *worst)), runners=("h200",)))
    assert len(text.encode()) <= 65_000
    assert "| rope/worst/headline" in text
    assert text.count("<details>") == text.count("</details>")
    assert text.count(" more\n") >= 3
    assert "verdict.json" in text


def test_what_does_not_fit_at_all_is_cut_between_characters() -> None:
    ruling = rulings.ruling(rulings.red("h200"), notes=("核" * 300,) * 9)
    text = _write(ruling, longest_bytes=701)
    assert len(text.encode()) <= 701
    assert text.startswith("### ✗ perfci: 1 slower")
