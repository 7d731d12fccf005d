"""One ruling over all runners: silence, strangers and stale parcels are never green."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import gates
import parcels
import pytest
import rulings

from perfci.ci.act import Act
from perfci.ci.comment import write_title
from perfci.ci.conclusion import Conclusion, conclude
from perfci.ci.merging import Ruling, find_parcels
from perfci.ci.parcel import FILE
from perfci.errors import ExitCode
from perfci.history.model import Verdict


def test_all_green_is_green() -> None:
    ruling = rulings.ruling(rulings.green("h200"), rulings.green("a100"))
    assert ruling.exit_code == ExitCode.FINE
    assert conclude(ruling) is Conclusion.SUCCESS
    assert ruling.missing == []


def test_a_runner_that_is_silent_is_missing_by_name() -> None:
    ruling = rulings.ruling(rulings.green("h200"))
    assert [(each.runner, each.problem) for each in ruling.missing] == [("a100", "did not report")]
    assert ruling.exit_code == ExitCode.MISSING_CELLS
    assert conclude(ruling) is Conclusion.FAILURE


def test_nobody_at_all_is_not_green() -> None:
    assert rulings.ruling().exit_code == ExitCode.MISSING_CELLS
    assert rulings.ruling(runners=()).exit_code == ExitCode.MISSING_CELLS


_OF_NOTHING = "says that all is well, of nothing that was done"


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"head": "c" * 40}, "reported of another commit, cccccccccc"),
        ({"run_id": "4710"}, "reported of another run"),
        ({"attempt": 2}, "reported of attempt 2; this is attempt 1"),
        ({"act": Act.RUN}, "has done 'run', not 'gate': give merge the same --input as measure"),
        ({"gates": ()}, _OF_NOTHING),
        ({"steps": ()}, _OF_NOTHING),
        ({"base": "c" * 40}, "has judged by another base, 0123456789"),
    ],
)
def test_a_parcel_of_something_else_is_missing(fields: dict[str, Any], problem: str) -> None:
    stale = replace(rulings.green("a100"), **fields)
    ruling = rulings.ruling(rulings.green("h200"), stale)
    assert [(each.runner, each.problem) for each in ruling.missing] == [("a100", problem)]
    assert ruling.exit_code == ExitCode.MISSING_CELLS
    assert {runner for runner, _ in ruling.cells} == {"h200"}


@pytest.mark.parametrize(
    ("head", "problem"),
    [
        ({"sha": "c" * 40}, "has judged another commit, cccccccccc"),
        ({"dirty": "abc"}, "has judged a changed working tree"),
    ],
)
def test_a_gate_of_something_else_is_missing(head: dict[str, Any], problem: str) -> None:
    parcel = rulings.green("a100")
    (gate,) = parcel.gates
    odd = replace(parcel, gates=(replace(gate, head=replace(gate.head, **head)),))
    (missing,) = rulings.ruling(rulings.green("h200"), odd).missing
    assert (missing.runner, missing.problem) == ("a100", problem)


def test_a_runner_that_reports_twice_is_missing() -> None:
    ruling = rulings.ruling(rulings.green("h200"), rulings.green("a100"), rulings.green("a100"))
    assert [each.problem for each in ruling.missing] == ["has reported 2 times"]


def test_a_stranger_does_not_count_and_is_named() -> None:
    ruling = rulings.ruling(rulings.green("h200"), rulings.green("a100"), rulings.red("b200"))
    assert ruling.exit_code == ExitCode.FINE
    assert ruling.notes == ("b200 has reported and was not asked",)


def test_a_regression_anywhere_is_a_regression() -> None:
    ruling = rulings.ruling(rulings.failed("h200"), rulings.red("a100"))
    assert ruling.exit_code == ExitCode.REGRESSION_OR_INCORRECT
    assert rulings.ruling(rulings.red("a100")).exit_code == ExitCode.REGRESSION_OR_INCORRECT


def test_an_earlier_attempt_beside_this_one_is_no_second_report() -> None:
    earlier = replace(rulings.red("a100"), attempt=1)
    now = [replace(rulings.green(each), attempt=2) for each in rulings.RUNNERS]
    assert rulings.ruling(earlier, *now, attempt=2).exit_code == ExitCode.FINE
    (missing,) = rulings.ruling(earlier, now[0], attempt=2).missing
    assert missing.problem == "reported of attempt 1; this is attempt 2"


def test_a_parcel_is_never_better_than_its_steps_and_gates() -> None:
    """Hand-made: what measures says the worst of them itself."""
    known = rulings.green("a100")
    (gate,) = known.gates
    failed = replace(known, steps=(parcels.step(exit_code=5),))
    ruling = rulings.ruling(rulings.green("h200"), failed)
    assert (ruling.exit_code, conclude(ruling)) == (5, Conclusion.FAILURE)
    assert write_title(ruling).endswith("a100: gate has ended with exit code 5")
    denied = replace(known, gates=(replace(gate, exit_code=7),))
    assert rulings.ruling(rulings.green("h200"), denied).exit_code == 7


def test_a_parcel_is_never_better_than_its_cells() -> None:
    """Its exit code is the word of the code that was measured."""
    liar = replace(rulings.red("a100"), exit_code=0)
    ruling = rulings.ruling(rulings.green("h200"), liar)
    assert ruling.exit_code == ExitCode.REGRESSION_OR_INCORRECT
    empty = replace(rulings.gated("a100", []), exit_code=0)
    assert rulings.ruling(rulings.green("h200"), empty).exit_code == ExitCode.MISSING_CELLS


def test_what_is_accepted_does_not_count() -> None:
    slower = gates.comparison(Verdict.REGRESSION)
    parcel = rulings.gated("h200", [slower], accepted=frozenset({slower.key}))
    assert rulings.ruling(parcel, runners=("h200",)).exit_code == ExitCode.FINE


def test_inconclusive_is_neutral_and_a_failure_where_it_is_to_fail() -> None:
    open_one = rulings.gated("h200", [gates.comparison(Verdict.INCONCLUSIVE)])
    ruling = rulings.ruling(open_one, runners=("h200",))
    assert (ruling.exit_code, conclude(ruling)) == (ExitCode.FINE, Conclusion.NEUTRAL)
    strict = replace(open_one, exit_code=int(ExitCode.INCONCLUSIVE))
    ruling = rulings.ruling(strict, runners=("h200",))
    assert (ruling.exit_code, conclude(ruling)) == (ExitCode.INCONCLUSIVE, Conclusion.FAILURE)


def test_nothing_to_measure_is_fine_unless_nobody_has_approved_it() -> None:
    nothing = Ruling(act=Act.NOTHING, reason="", head=parcels.HEAD, run_id="1", attempt=1)
    assert (nothing.exit_code, conclude(nothing)) == (ExitCode.FINE, Conclusion.SKIPPED)
    waits = replace(nothing, is_admitted=False)
    assert waits.exit_code == ExitCode.MISSING_CELLS
    assert conclude(waits) is Conclusion.ACTION_REQUIRED


def test_cells_come_the_worst_first_over_all_runners() -> None:
    one = rulings.gated(
        "h200",
        [gates.comparison(Verdict.UNCHANGED, "v0"), gates.comparison(Verdict.REGRESSION, "v1")],
    )
    other = rulings.gated("a100", [gates.comparison(Verdict.INCORRECT, "v2")])
    cells = [(runner, cell.key.variant) for runner, cell in rulings.ruling(one, other).cells]
    assert cells == [("a100", "v2"), ("h200", "v1"), ("h200", "v0")]


def test_parcels_are_found_in_a_folder_and_in_folders_of_it(tmp_path: Path) -> None:
    one = parcels.write(tmp_path / "one", parcels.parcel(runner="h200"))
    parcels.write(tmp_path / "all" / "x", parcels.parcel(runner="a100"))
    parcels.write(tmp_path / "all" / "y", parcels.parcel(runner="b200"))
    (tmp_path / "all" / "logs").mkdir()
    found = find_parcels([one, tmp_path / "all", tmp_path / "gone"])
    assert [each.runner for each in found.parcels] == ["h200", "a100", "b200"]
    assert found.unreadable == ()


def test_what_cannot_be_read_is_named_without_its_place(tmp_path: Path) -> None:
    parcels.write(tmp_path / "parcel-h200", parcels.parcel())
    (tmp_path / "parcel-a100").mkdir()
    (tmp_path / "parcel-a100" / FILE).write_text("{", encoding="utf-8")
    found = find_parcels([tmp_path])
    assert [each.runner for each in found.parcels] == ["h200"]
    (line,) = found.unreadable
    assert line.startswith("parcel-a100/parcel.json: ")


def test_how_much_is_read_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(70):
        parcels.write(tmp_path / f"p{n:02}", parcels.parcel())
    found = find_parcels([tmp_path])
    assert len(found.parcels) == 64
    assert found.unreadable == ("6 more parcels than there may be: not read",)
    size = (tmp_path / "p00" / FILE).stat().st_size
    monkeypatch.setattr("perfci.ci.merging._LARGEST_TOTAL_BYTES", 2 * size)
    found = find_parcels([tmp_path])
    assert len(found.parcels) == 2
    assert "p02: too large together: not read" in found.unreadable


def test_what_cannot_be_looked_at_has_nothing_in_it(tmp_path: Path) -> None:
    (tmp_path / "pipe").mkdir()
    os.mkfifo(tmp_path / "pipe" / FILE)
    (tmp_path / "loop").mkdir()
    (tmp_path / "loop" / FILE).symlink_to(FILE)
    found = find_parcels([tmp_path, tmp_path / ("x" * 300)])
    assert found.parcels == ()
    assert found.unreadable == (
        "loop/parcel.json: not there, or no plain file",
        "pipe/parcel.json: not there, or no plain file",
    )


def test_a_link_to_a_parcel_elsewhere_is_not_followed(tmp_path: Path) -> None:
    parcels.write(tmp_path / "elsewhere", parcels.parcel())
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "link").symlink_to(tmp_path / "elsewhere")
    assert find_parcels([tmp_path / "here"]).parcels == ()
