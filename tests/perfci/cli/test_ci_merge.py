"""perfci ci merge: from an event and parcels to a verdict, its files and its exit code."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import events
import gates
import parcels
import pytest
import records
import scratch
from pipelines import Place, make_place

from perfci.ci.act import Act
from perfci.ci.parcel import Parcel
from perfci.history.model import Verdict

Call = Callable[..., Any]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return make_place(tmp_path)


@pytest.fixture
def head(place: Place) -> str:
    """The head of a pull request that touches a kernel."""
    return place.change("kernels/axpb/plain.cpp", scratch.body("int a = 0; (void)a;"))


def gated(place: Place, head: str, runner: str, verdict: Verdict, **fields: Any) -> Parcel:
    """A parcel of a gate of one cell, between the commits of a place."""
    commit = records.run().commit
    gate = gates.gate(
        [gates.comparison(verdict)],
        base=replace(commit, sha=place.base),
        head=replace(commit, sha=head),
    )
    judged = parcels.judgement(gate)
    known = {
        "runner": runner,
        "base": place.base,
        "head": head,
        "run_id": "6001",
        "exit_code": judged.exit_code,
        "gates": (judged,),
    }
    return parcels.parcel(**{**known, **fields})


def _job(tmp_path: Path, place: Place, head: str, name: str = "pull_request") -> dict[str, str]:
    shas = {events.BASE: place.base, events.HEAD: head}
    files = {
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
    }
    return events.github(name, tmp_path, shas=shas, **files)


def test_two_runners_one_verdict(place: Place, head: str, call: Call, tmp_path: Path) -> None:
    handed = tmp_path / "parcels"
    parcels.write(handed / "one", gated(place, head, "h200", Verdict.REGRESSION))
    parcels.write(handed / "two", gated(place, head, "a100", Verdict.UNCHANGED))
    job = _job(tmp_path, place, head)
    ended = call(place.clone("topic"), "ci", "merge", handed, "--out", tmp_path / "verdict", **job)
    assert ended.code == 1
    assert ended.out.splitlines() == [
        "✗ failure: 1 slower, 1 unchanged",
        "  kernels/axpb/plain.cpp is touched",
        "  h200: 1 slower, exit code 1",
        "  a100: 1 unchanged, exit code 0",
        "  ▲ slower · rope/tiled/headline cpu/1 +10.0 % on h200",
        f"  the whole of it: {tmp_path / 'verdict' / 'comment.md'}",
    ]
    text = (tmp_path / "verdict" / "comment.md").read_text(encoding="utf-8")
    assert text.startswith("### ✗ perfci: 1 slower, 1 unchanged\n")
    assert "(https://github.com/example/kernels/actions/runs/6001)" in text
    assert (tmp_path / "summary.md").read_text(encoding="utf-8") == text
    written = json.loads((tmp_path / "verdict" / "verdict.json").read_text(encoding="utf-8"))
    assert written["verdict"]["exit_code"] == 1
    assert written["verdict"]["head"] == head
    output = (tmp_path / "output").read_text(encoding="utf-8")
    assert "\nfailure\n" in output
    assert "\n1 slower, 1 unchanged\n" in output


def test_a_runner_that_stays_silent_is_missing(
    place: Place, head: str, call: Call, tmp_path: Path
) -> None:
    folder = parcels.write(tmp_path / "one", gated(place, head, "h200", Verdict.UNCHANGED))
    job = _job(tmp_path, place, head)
    clone = place.clone("topic")
    ended = call(clone, "ci", "merge", folder, "--out", tmp_path / "verdict", **job)
    assert ended.code == 9
    assert "  a100: missing: it did not report" in ended.out.splitlines()
    again = call(clone, "ci", "merge", tmp_path / "none", "--out", tmp_path / "other", **job)
    assert again.code == 9
    assert "h200: missing" in again.out


def test_a_repetition_takes_no_parcel_of_the_first_attempt(
    place: Place, head: str, call: Call, tmp_path: Path
) -> None:
    for runner in ("h200", "a100"):
        parcel = gated(place, head, runner, Verdict.UNCHANGED)
        parcels.write(tmp_path / "parcels" / runner, parcel)
    job = {**_job(tmp_path, place, head), "GITHUB_RUN_ATTEMPT": "2"}
    clone = place.clone("topic")
    ended = call(clone, "ci", "merge", tmp_path / "parcels", "--out", tmp_path / "out", **job)
    assert ended.code == 9
    assert "reported of attempt 1; this is attempt 2" in " ".join(ended.out.split())


def test_nothing_to_measure_is_fine(place: Place, call: Call, tmp_path: Path) -> None:
    head = place.change("README.md", "More.\n")
    job = _job(tmp_path, place, head)
    clone = place.clone("topic")
    ended = call(clone, "ci", "merge", tmp_path / "none", "--out", tmp_path / "out", **job)
    assert ended.code == 0
    assert ended.out.startswith("– skipped: nothing to measure\n")


def test_a_fork_that_nobody_approved_is_not_green(
    place: Place, head: str, call: Call, tmp_path: Path
) -> None:
    parcels.write(tmp_path / "p" / "one", gated(place, head, "h200", Verdict.UNCHANGED))
    job = _job(tmp_path, place, head, "pull_request_fork")
    clone = place.clone("topic")
    ended = call(clone, "ci", "merge", tmp_path / "p", "--out", tmp_path / "out", **job)
    assert ended.code == 9
    assert ended.out.startswith("! action_required: waits for approval\n")


def test_a_deleted_branch_has_no_head(place: Place, call: Call, tmp_path: Path) -> None:
    job = events.github("delete", tmp_path)
    ended = call(place.work, "ci", "merge", tmp_path, "--out", tmp_path / "out", **job)
    assert ended.code == 0, ended.err
    written = json.loads((tmp_path / "out" / "verdict.json").read_text(encoding="utf-8"))
    assert written["verdict"]["head"] is None


def test_a_night_on_a_machine_of_ones_own(place: Place, call: Call, tmp_path: Path) -> None:
    """Without any provider: no summary, no outputs, no page to lead to."""
    done = parcels.parcel(
        act=Act.NIGHTLY, base=None, head=place.base, run_id="", exit_code=0, gates=()
    )
    for runner in ("h200", "a100"):
        parcels.write(tmp_path / "parcels" / runner, replace(done, runner=runner))
    ended = call(place.work, "ci", "merge", tmp_path / "parcels", "--out", tmp_path / "out")
    assert ended.code == 0, ended.err
    assert ended.out.splitlines()[0] == "✓ success: 2 of 2 runners: nightly done"
    assert "https://" not in (tmp_path / "out" / "comment.md").read_text(encoding="utf-8")


def test_two_projects_of_a_repository_are_told_apart(
    place: Place, call: Call, tmp_path: Path
) -> None:
    inner = place.work / "libs" / "inner"
    scratch.quick(inner)
    scratch.write_kernel(inner)
    place.change("libs/README.md", "Two.\n", branch="main")
    call(inner, "ci", "merge", tmp_path, "--out", tmp_path / "out")
    text = (tmp_path / "out" / "comment.md").read_text(encoding="utf-8")
    assert text.startswith("### ✗ perfci (libs/inner): gpu did not report\n")


def test_a_folder_that_cannot_be_made_is_named(place: Place, call: Call, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    out = tmp_path / "file" / "out"
    ended = call(place.work, "ci", "merge", tmp_path, "--out", out)
    assert ended.code == 2
    assert ended.err.startswith(f"perfci: {out}: cannot be made")


def test_a_folder_that_is_not_there_is_named(place: Place, call: Call, tmp_path: Path) -> None:
    ended = call(place.work, "ci", "merge", "/nothing", "--out", tmp_path / "out")
    assert ended.code == 2
    assert ended.err == "perfci: /nothing: no such folder; name those with parcels\n"


def test_another_input_than_measure_had_is_told(place: Place, call: Call, tmp_path: Path) -> None:
    done = parcels.parcel(act=Act.RUN, base=None, head=place.base, run_id="", exit_code=0, gates=())
    for runner in ("h200", "a100"):
        parcels.write(tmp_path / "parcels" / runner, replace(done, runner=runner))
    command = ["ci", "merge", tmp_path / "parcels", "--out", tmp_path / "out"]
    ended = call(place.work, *command)
    assert ended.code == 9
    assert "give merge the same --input as measure" in " ".join(ended.out.split())
    ended = call(place.work, *command, "--input", "act=run")
    assert ended.code == 0, ended.out
    text = (tmp_path / "out" / "comment.md").read_text(encoding="utf-8")
    assert "attempt" not in text
    assert "in the artefacts" in text
