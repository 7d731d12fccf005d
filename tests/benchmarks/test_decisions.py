"""What the simulation of decisions prints, and that what it simulates is the rule itself."""

import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from records import cell, measurement, run, summary

from perfci.decision import stats
from perfci.decision.compare import Floor, Side, key_of
from perfci.decision.ladder import LOOKS, Thresholds, judge
from perfci.history.codec import write_run_file
from perfci.history.model import NOISE_TRIGGER, Contract, Verdict

_ROOT = Path(__file__).parents[2]
_SCRIPT = _ROOT / "benchmarks" / "decisions.py"
_COLD = Contract(timer="cold", version=1, l2="flushed", warm_up="steady", inputs="rotating")


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("decisions", _SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["decisions"] = module
    spec.loader.exec_module(module)
    return module


decisions = _load()


def _decide(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(_SCRIPT), *map(str, arguments)],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def _record(
    folder: Path, *, passes: int = 20, cells: int = 6, spread: float = 0.004, pair: str = "p"
) -> None:
    """The run files of a study: cells of 10 µs, one that lacks a pass, an anchor."""
    source = np.random.default_rng(3)
    for number, run_id in enumerate((f"{pair}-first", f"{pair}-second"), 1):
        measured = [
            measurement(
                (1e4 * np.exp(source.normal(0.0, spread / 2**0.5, passes))).tolist(),
                variant=f"v{each}",
                contract=_COLD,
            )
            for each in range(cells)
        ]
        short = measurement([1e4] * (passes - 1), variant="short", contract=_COLD)
        anchor = measurement([1e4] * passes, kernel="perfci_copy", contract=_COLD)
        half = replace(
            run(*measured, short, anchor, run_id=run_id),
            pair=pair,
            trigger=NOISE_TRIGGER,
            attempt=number,
        )
        write_run_file(folder / f"{run_id}.json.gz", half)


def _false_alarms(text: str) -> list[int]:
    return [int(each) for each in re.findall(r"false alarms in (\d+) of", text)]


def _power(text: str) -> list[list[float]]:
    """A row for each slow-down that was planted, a share for each rung."""
    rows = re.findall(r"^ +(?:1\.5|2\.0|5\.0)% +(.*)$", text, re.MULTILINE)
    return [[float(each.rstrip("%")) / 100 for each in row.split()] for row in rows]


def _tails(text: str) -> np.ndarray:
    """How often p-values fell below 1 %, 0.1 % and 0.01 %, after each rung."""
    rows = re.findall(r"^ +0?(?:1\.00|0\.10|0\.01)% +(.*)$", text, re.MULTILINE)
    return np.array([[float(each.rstrip("%")) / 100 for each in row.split()] for row in rows])


def test_a_recorded_study_is_what_gates_are_drawn_from(tmp_path: Path) -> None:
    _record(tmp_path)
    done = _decide(tmp_path, "--gates", "20", "--cells", "40")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Some CPU, 2026-03-01, 20 passes of 6 cells (1 left out)\n")
    assert "slowed down: one of 6 cells, paired spread 0." in done.stdout
    assert re.findall(r"^(\d+) cells$", done.stdout, re.MULTILINE) == ["6", "40"]
    assert _false_alarms(done.stdout) == [0, 0]
    assert _power(done.stdout)[2] == [1.0, 1.0, 1.0]
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.parametrize(("passes", "is_short"), [(20, True), (48, False)])
def test_a_study_that_gates_outlast_is_said_to_be_too_short(
    tmp_path: Path, passes: int, *, is_short: bool
) -> None:
    _record(tmp_path, passes=passes)
    done = _decide(tmp_path, "--gates", "1", "--cells", "6")
    assert ("fewer than 48 passes: gates draw the same ones again" in done.stdout) == is_short
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_studies_of_one_commit_on_one_testbed_are_one(tmp_path: Path) -> None:
    _record(tmp_path, passes=8, cells=5, pair="a")
    _record(tmp_path, passes=12, pair="b")
    done = _decide(tmp_path, "--gates", "1", "--cells", "5")
    assert done.returncode == 0, done.stderr
    # The sixth cell and the one that lacks a pass are in one of them, or in none whole.
    assert re.match(r".* (8 \+ 12|12 \+ 8) passes of 5 cells \(2 left out\)\n", done.stdout)


def test_without_a_study_it_says_that_nothing_was_measured(tmp_path: Path) -> None:
    done = _decide(tmp_path, "--gates", "1", "--cells", "84")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("synthetic, not measured: ")


def test_a_change_of_the_rule_shows_its_cost(tmp_path: Path) -> None:
    _record(tmp_path)
    rules = ("--rule", "ladder", "--rule", "alone")
    done = _decide(tmp_path, "--gates", "20", "--cells", "6", *rules)
    careful, careless = _false_alarms(done.stdout)
    assert careful == 0
    assert careless > 0


def test_only_what_is_named_is_slowed_down(tmp_path: Path) -> None:
    _record(tmp_path)
    done = _decide(tmp_path, "--gates", "1", "--cell", "v3/headline cold")
    assert "slowed down: one of 1 cell," in done.stdout
    done = _decide(tmp_path, "--cell", "tilde")
    assert done.returncode == 2
    assert done.stderr == "decisions.py: no cell of the study is named 'tilde'\n"


def test_a_broken_run_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.json.gz").write_bytes(b"nothing")
    done = _decide(tmp_path)
    assert done.returncode == 6
    assert done.stderr.startswith(f"decisions.py: {tmp_path}/x.json.gz: ")


def _sides(ratios: np.ndarray) -> Iterable[Side]:
    for run_id, logs in (("before", np.zeros_like(ratios)), ("after", ratios)):
        cells = [
            cell((1e4 * np.exp(row)).tolist(), run_id=run_id, variant=f"{n:03}", contract=_COLD)
            for n, row in enumerate(logs)
        ]
        yield Side([replace(summary(run_id), pair="p")], cells)


def test_what_is_simulated_is_what_a_gate_does() -> None:
    """Cells that moved by more and less, so that every verdict is there."""
    source = np.random.default_rng(8)
    ratios = source.normal(np.linspace(-0.02, 0.02, 40)[:, np.newaxis], 0.004, (40, LOOKS[-1]))
    spread, degrees = stats.trimmed_spread(source.normal(0.0, 0.004, (40, 24)))
    family = decisions.Family(
        spread=spread[np.newaxis],
        degrees=np.full((1, 40), degrees),
        matters=np.full((1, 40), np.log1p(0.005)),
        kind=np.zeros(40),
        size=40,
    )
    simulated = decisions.ladder(decisions.Gates(ratios=ratios[np.newaxis], family=family))
    key = key_of(cell([1.0], contract=_COLD), summary().environment)
    floors = {
        replace(key, variant=f"{n:03}"): Floor(unpaired=of, paired=of)
        for n, each in enumerate(spread)
        for of in [stats.Spread(value=float(each), degrees=degrees)]
    }
    seen = set()
    for look, (slower, faster) in enumerate(simulated):
        judged = judge(
            *_sides(ratios), look=look, thresholds=Thresholds(default=0.005), floors=floors
        )
        verdicts = [each.verdict for each in judged]
        assert [each is Verdict.REGRESSION for each in verdicts] == slower[0].tolist()
        assert [each is Verdict.IMPROVEMENT for each in verdicts] == faster[0].tolist()
        seen |= set(verdicts)
    assert len(seen) == 4


@pytest.mark.long
def test_the_ladder_keeps_to_its_promises_on_the_synthetic_study(tmp_path: Path) -> None:
    """At most one false alarm in 100 gates, and 95 % of the slow-downs in time."""
    done = _decide(tmp_path, "--gates", "400")
    assert max(_false_alarms(done.stdout)) <= 4
    of_three_hundred = _tails(done.stdout)[3:, :3]
    assert (of_three_hundred <= 1.5 * np.array([[0.01], [0.001], [0.0001]])).all()
    power = _power(done.stdout)
    assert power[0][0] >= 0.95  # 1.5 % within 12 passes, in the suite itself
    for two, five in (power[1:3], power[4:6]):
        assert two[1] >= 0.95
        assert five[0] >= 0.95


@pytest.mark.long
def test_the_ladder_keeps_to_its_promises_on_what_an_h200_has_recorded() -> None:
    """At most one false alarm in 100 gates; 2 % called within 24 passes, 5 % within 12."""
    done = _decide("--gates", "400")
    assert done.stdout.startswith("NVIDIA H200, 2026-11-30, 27 + 30 passes of 69 cells\n")
    assert max(_false_alarms(done.stdout)) <= 4
    power = _power(done.stdout)
    for two, five in (power[1:3], power[4:6]):
        assert two[1] >= 0.95
        assert five[0] >= 0.95
