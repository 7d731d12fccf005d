"""perfci selftest: on a CPU all that needs no GPU is caught, and nobody honest is accused."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import scratch

from perfci.device import has_gpu_driver
from perfci.history.model import Measurement, Status
from perfci.reports.selftest import selftest_table
from perfci.selftest.plants import APART, PLANTS
from perfci.selftest.scenarios import _SCENARIOS
from perfci.selftest.trial import Fate, Trial, try_honest, try_plants

_ON_A_CPU = {1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 16, 18, 20, 21, 24, 26, 27, 28, 29, 30}


@pytest.mark.timeout(600)
def test_all_that_needs_no_gpu_is_caught_and_nobody_is_accused(tmp_path: Path) -> None:
    root = scratch.quick(tmp_path / "root")
    scratch.write_kernel(root, plain__cpp=scratch.PLAIN, eager__py=scratch.EAGER)
    ended = scratch.perfci(root, "selftest", "--device", "cpu", "--json")
    told = json.loads(ended.stdout)
    assert [each for each in told if each["fate"] in ("NOT CAUGHT", "ACCUSED")] == []
    assert ended.returncode == 0, ended.stderr
    assert {each["number"] for each in told if each["fate"] == "caught"} == _ON_A_CPU
    accepted = {each["title"] for each in told if each["fate"] == "accepted"}
    assert {"axpb/plain", "axpb/eager", "product_tanh/unordered"} <= accepted
    assert {each["reason"] for each in told if each["fate"] == "skipped"} == {"needs a GPU"}
    assert not (root / ".perfci").exists()


@pytest.mark.long
@pytest.mark.timeout(600)
def test_an_interrupted_test_shows_what_it_has_seen(tmp_path: Path) -> None:
    root = scratch.quick(tmp_path / "root")
    scratch.write_kernel(root, eager__py=scratch.EAGER)
    started = subprocess.Popen(
        [sys.executable, "-m", "perfci", "selftest", "--device", "cpu"],
        cwd=root,
        env=scratch.environment(root),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert started.stderr is not None
    for line in started.stderr:
        if "bimodal" in line:
            started.send_signal(signal.SIGINT)
            break
    told, _ = started.communicate()
    assert started.returncode == 130
    assert re.search(r"returns zeros, at every case +✓ caught", told)
    assert re.search(r"axpb/eager +✓ accepted", told)
    assert "a killed build" not in told


@pytest.mark.gpu
@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.skipif(not has_gpu_driver(), reason="needs a CUDA device")
def test_on_a_gpu_all_are_caught_and_nobody_is_accused(tmp_path: Path) -> None:
    root = scratch.quick(tmp_path / "root")
    scratch.write_kernel(root, eager__py=scratch.EAGER)
    ended = scratch.perfci(root, "selftest", "--device", "0", "--json")
    told = json.loads(ended.stdout)
    assert [each for each in told if each["fate"] in ("NOT CAUGHT", "ACCUSED")] == []
    assert ended.returncode == 0, ended.stderr


def test_every_number_of_the_table_is_planted() -> None:
    numbers = {each.number for each in PLANTS} | {number for number, *_ in _SCENARIOS}
    assert numbers == set(range(1, 31))


def test_every_planted_file_has_a_rule_and_every_rule_a_file() -> None:
    from perfci.selftest import KERNELS  # noqa: PLC0415

    planted = {(path.parts[-3], path.stem) for path in KERNELS.glob("*/wrong/*.*")}
    ruled = {(each.kernel, each.variant) for each in PLANTS}
    assert planted == ruled | {(kernel, variant) for variant, kernel in APART.items()}


def _row(variant: str, status: Status, message: str = "", case: str = "timed") -> Measurement:
    return Measurement(
        kernel="product_tanh",
        case=case,
        variant=variant,
        contract=None,
        status=status,
        message=message,
    )


def _fates(*rows: Measurement) -> dict[str, Fate]:
    names = {each.title: each.variant for each in PLANTS}
    return {names[each.title]: each.fate for each in try_plants(rows, "cpu")}


@pytest.mark.parametrize(
    ("rows", "fate"),
    [
        ([_row("forks", Status.RUNTIME_ERROR, "exited with code 5")], Fate.CAUGHT),
        ([_row("forks", Status.RUNTIME_ERROR, "killed by SIGBUS")], Fate.NOT_CAUGHT),
        ([_row("forks", Status.PASSED)], Fate.NOT_CAUGHT),
        ([_row("forks", Status.SKIPPED)], Fate.SKIPPED),
        ([], Fate.SKIPPED),
    ],
)
def test_a_plant_is_caught_by_its_own_rule_alone(rows: list[Measurement], fate: Fate) -> None:
    assert _fates(*rows)["forks"] is fate


def test_what_must_be_caught_everywhere_is_not_caught_by_one_case() -> None:
    wrong, right = _row("zeros", Status.WRONG_VALUES), _row("zeros", Status.PASSED, case="odd")
    assert _fates(wrong)["zeros"] is Fate.CAUGHT
    assert _fates(wrong, right)["zeros"] is Fate.NOT_CAUGHT


def test_one_bad_row_accuses_an_honest_kernel() -> None:
    good, bad = _row("plain", Status.PASSED), _row("plain", Status.INVALID_TIMING, "why")
    assert [each.fate for each in try_honest([good])] == [Fate.ACCEPTED]
    (trial,) = try_honest([good, bad])
    assert (trial.fate, trial.reason) == (Fate.ACCUSED, "timed, invalid timing: why")


def test_the_table_counts_and_fits_a_terminal() -> None:
    trials: list[Any] = [*try_plants([_row("forks", Status.PASSED)], "cpu")]
    trials.append(Trial(number=None, title="product_tanh/plain", fate=Fate.ACCEPTED, reason="x"))
    lines = selftest_table(trials)
    assert max(map(len, lines)) <= 80
    assert re.fullmatch(r"planted: 1 NOT CAUGHT, \d+ skipped; honest: 1 accepted", lines[-1])
    assert any("NOT CAUGHT · forks and exits" in line for line in lines)
