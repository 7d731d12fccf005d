"""What a gate says of a head that does a bit of everything, and what is recorded of it."""

import dataclasses
import json
import re
from pathlib import Path

import pytest
import scratch

from perfci.dashboard.branches import order_branch
from perfci.history.model import Run, RunSummary, Status
from perfci.history.stores import open_store

pytestmark = [pytest.mark.long, pytest.mark.timeout(1500)]  # a dozen passes, on any machine

_BROKEN = "int perfci_run(\n"
_WRONG = scratch.PLAIN.replace("+ b;", "- b;")


def _spin(count: int) -> str:
    """A C variant that is slower the more it counts."""
    return scratch.body(f"for (volatile int i = 0; i < {count}; i = i + 1) {{}}")


def _accept(root: Path, variant: str, reason: str) -> None:
    """Accept that a variant gets slower, in the settings of a root."""
    with (root / "pyproject.toml").open("a") as settings:
        settings.write(
            f'\n[[tool.perfci.accepted]]\nkernel = "axpb"\nvariant = "{variant}"\n'
            f'slower_by = 50.0\nreason = "{reason}"\n'
        )


@dataclasses.dataclass(frozen=True)
class Gated:
    """A repository that was gated, and what was said and recorded of it."""

    root: Path
    code: int
    lines: list[str]
    runs: list[Run]


@pytest.fixture(scope="module")
def gated(tmp_path_factory: pytest.TempPathFactory) -> Gated:
    """A head that makes a variant slower, one wrong, mends two, adds one and removes one."""
    root = scratch.quick(tmp_path_factory.mktemp("gate") / "root")
    scratch.write_kernel(
        root,
        slower__cpp=_spin(20_000),
        traded__cpp=_spin(20_000),
        spoilt__cpp=scratch.PLAIN,
        mended__cpp=_WRONG,
        built__cpp=_BROKEN,
        untouched__cpp=scratch.PLAIN,
        hopeless__cpp=_WRONG,
        removed__cpp=scratch.PLAIN,
    )
    _accept(root, "traded", "Right for odd sizes now")
    (root / ".gitignore").write_text(".perfci/\n")
    scratch.git(root, "init", "-q")
    scratch.commit_all(root, "one")
    scratch.git(root, "tag", "v1.0")
    recorded = scratch.perfci(root, "run", "--variant", "slower", "--case", "large", "--passes=3")
    assert recorded.returncode == 0, recorded.stderr
    scratch.git(root, "switch", "-q", "-c", "topic")
    scratch.write_kernel(
        root,
        slower__cpp=_spin(200_000),
        traded__cpp=_spin(100_000),
        spoilt__cpp=_WRONG,
        mended__cpp=scratch.PLAIN,
        built__cpp=scratch.PLAIN,
        hopeless__cpp=_WRONG.replace("return 0", "return 0 * 1") + "int unused;\n",
        added__cpp=_spin(10),
    )
    _accept(root, "slower", "Nobody will notice")
    (root / "kernels/axpb/removed.cpp").unlink()
    scratch.commit_all(root, "A bit of <b>everything</b>")
    ended = scratch.perfci(root, "gate")
    assert "Traceback" not in ended.stderr
    with open_store(f"sqlite:///{root}/.perfci/history.db") as store:
        runs = [store.run(each.run_id) for each in store.runs() if each.trigger == "gate"]
    return Gated(root, ended.returncode, ended.stdout.splitlines(), runs)


def _verdicts(gated: Gated) -> dict[str, str]:
    """The verdict on each variant at the case that is timed, of those in the table."""
    return {
        line.split()[0]: re.split("[▲▼=?–+✗≠] ", line)[-1]
        for line in gated.lines
        if re.match(r"  \w+ +large ", line)
    }


def test_each_cell_has_its_verdict(gated: Gated) -> None:
    assert gated.code == 1
    assert _verdicts(gated) == {
        "spoilt": "incorrect",
        "slower": "slower",
        "traded": "slower",
        "built": "missing",
        "removed": "missing",
        "hopeless": "known incorrect",
        "mended": "new",
        "added": "new",
    }
    assert "3 cells run the same code on both sides (machine code, host object, launches," in (
        gated.lines
    )
    assert max(map(len, gated.lines)) <= 80


def test_every_cell_is_counted_once(gated: Gated) -> None:
    said = " ".join(" ".join(gated.lines).split())
    counted = re.search(r"(\d+) cells: ((?:\d+ [a-z]+(?: incorrect)?, )+\d+ right)", said)
    assert counted is not None
    parts = [int(each.split()[0]) for each in counted[2].split(", ")]
    assert int(counted[1]) == sum(parts) == 9 * 3  # nine variants of either side, three cases
    assert "3 unchanged" in counted[2]  # the same code


def test_it_is_said_why_and_how_to_see_it_again(gated: Gated) -> None:
    text = "\n".join(gated.lines)
    flowing = " ".join(line.strip() for line in gated.lines)
    assert "the base has nothing to compare with: build failed: " in flowing
    assert "right, where the base is not (wrong values)" in flowing
    assert "the head has no such variant" in text
    assert "– missing · axpb/removed · 3 cells: large cpu/1, odd, one\n" in text
    assert "▲ slower · axpb/slower/large cpu/1\n    host code changed" in text
    head, base = (each.commit.sha for each in _ordered(gated))
    again = f"perfci gate --base {base[:10]} --head {head[:10]} --kernel axpb --variant \\\n"
    assert f"  {again}    spoilt --case large" in text
    assert "12 passes in " in text  # no alarm before it is confirmed


def test_what_the_base_accepts_is_not_red_and_what_the_head_would_accept_is(gated: Gated) -> None:
    flowing = " ".join(line.strip() for line in gated.lines)
    assert "axpb/traded/large cpu/1 accepted up to +5,000 %: Right for odd sizes now" in flowing
    assert "· accepts: axpb/slower/* slower by 50: Nobody will notice" in flowing
    again = flowing[flowing.index("to see it again") :]
    assert "slower --case large" in again
    assert "traded" not in again


def test_it_is_said_how_far_it_lies_from_the_last_release_and_the_best(gated: Gated) -> None:
    text = "\n".join(gated.lines)
    release = scratch.git(gated.root, "rev-parse", "v1.0")[:10]
    assert f"  since v1.0 ({release}): 1 of 1 cell slower\n    axpb/slower/large" in text
    assert "  off the best ever recorded by more than +5.0 %: 1 of 1 cell\n" in text


def test_both_sides_are_recorded_as_a_pair_and_the_head_is_not_on_main(gated: Gated) -> None:
    head, base = _ordered(gated)
    assert {each.trigger for each in gated.runs} == {"gate"}
    assert base.pair == head.pair != ""
    rows = {(row.variant, row.case): row for row in head.measurements}
    assert len(rows["slower", "large"].passes) == 12
    assert rows["added", "large"].status is Status.PASSED
    assert (base.commit.branch, head.commit.branch) == ("main", "topic")
    gates = [each for each in _summaries(gated) if each.trigger == "gate"]
    assert len(gates) == 2
    assert order_branch(gates, "main") == []  # which is for whole runs
    compared = scratch.perfci(gated.root, "compare", base.commit.sha, head.commit.sha)
    assert "paired, 12 passes" in compared.stdout


def _ordered(gated: Gated) -> list[Run]:
    """The head's run and the base's."""
    return sorted(gated.runs, key=lambda run: run.commit.subject == "one")


def _summaries(gated: Gated) -> list[RunSummary]:
    with open_store(f"sqlite:///{gated.root}/.perfci/history.db") as store:
        return list(store.runs())


def test_a_budget_that_is_too_short_decides_nothing_and_says_what_it_takes(gated: Gated) -> None:
    variant = ["--variant", "slower", "--case", "large"]
    ended = scratch.perfci(gated.root, "gate", *variant, "--budget", "0.01", "--out", "files")
    assert ended.returncode == 0
    assert "stopped after 1 of at least 6 passes" in ended.stdout
    assert "1 inconclusive" in ended.stdout
    assert "1 pass, stopped at " in ended.stdout
    told = ended.stdout.replace("\n", " ")
    assert ", beyond the budget of 0.6 s; give --budget " in told
    assert not re.search(r"\] %|e\+|geometric|would have shown|noise", told)
    runs = {path.name for path in (gated.root / "files").glob("*.json.gz")}
    (gate,) = json.loads((gated.root / "files" / "gate.json").read_text())["gates"]
    assert len(runs) == 2
    assert {f"{each}.json.gz" for each in gate["runs"]} == runs
    strict = ["--fail-on", "inconclusive", "--budget", "0.01", "--out", "files"]
    assert scratch.perfci(gated.root, "gate", *variant, *strict).returncode == 8
