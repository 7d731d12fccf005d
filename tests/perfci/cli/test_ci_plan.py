"""perfci ci plan and admit: from a recorded event to what is done about it, in a real clone."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import events
import pytest
import scratch
from pipelines import Place, make_place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return make_place(tmp_path)


Planned = Callable[..., dict[str, Any]]


@pytest.fixture
def planned(call: Callable[..., Any], tmp_path: Path) -> Planned:
    """What `perfci ci plan` says in a clone of a recorded event between two commits."""

    def plan(
        clone: Path, name: str, *arguments: str, base: str, head: str, **variables: str
    ) -> dict[str, Any]:
        shas = {events.BASE: base, events.HEAD: head}
        job = events.github(name, tmp_path, shas=shas, **variables)
        ended = call(clone, "ci", "plan", "--json", *arguments, **job)
        assert ended.code == 0, ended.err
        found: dict[str, Any] = json.loads(ended.out)
        return found

    return plan


def _ends(plan: dict[str, Any]) -> tuple[str, str | None, str | None]:
    return plan["act"], plan["base"], plan["head"]


@pytest.mark.parametrize(
    "name", ["pull_request", "pull_request_synchronize", "pull_request_labeled"]
)
def test_a_pull_request_that_touches_a_kernel_is_gated(
    place: Place, planned: Planned, name: str
) -> None:
    head = place.change("kernels/axpb/plain.cpp", scratch.body("int a = 0; (void)a;"))
    # The branch has gone on since the event was written.
    scratch.git(place.work, "switch", "-q", "main")
    place.change("README.md", "More.\n", branch="main")
    plan = planned(place.clone("topic"), name, base=place.base, head=head)
    assert _ends(plan) == ("gate", place.base, head)
    assert plan["reason"] == "kernels/axpb/plain.cpp is touched"
    assert plan["runners"] == ["h200", "a100"]


@pytest.mark.parametrize(
    ("path", "act"),
    [
        ("pyproject.toml", "gate"),
        ("requirements-gpu.txt", "gate"),
        ("constraints.txt", "gate"),
        ("uv.lock", "gate"),
        ("baselines.toml", "gate"),
        ("docs/pyproject.toml", "nothing"),
        ("README.md", "nothing"),
        ("kernels.md", "nothing"),
        ("$(touch x)/`touch x`\n::error::.cpp", "nothing"),
    ],
)
def test_what_else_is_touched(place: Place, planned: Planned, path: str, act: str) -> None:
    head = place.change(path, "[tool.perfci]\npasses = 2\n" if path == "pyproject.toml" else "x\n")
    plan = planned(place.clone("topic"), "pull_request", base=place.base, head=head)
    assert (plan["act"], plan["is_admitted"]) == (act, True)
    assert plan["runners"] == (["h200", "a100"] if act == "gate" else [])
    asked = planned(place.work, "pull_request_labeled", base=place.base, head=head)
    assert asked["act"] == "gate"


def test_a_head_cannot_hide_that_it_moves_a_submodule(place: Place, planned: Planned) -> None:
    scratch.git(place.work, "switch", "-q", "-c", "topic")
    ignored = "path = kernels/lib\n\turl = ../lib\n\tignore = all\n"
    (place.work / ".gitmodules").write_text(f'[submodule "lib"]\n\t{ignored}')
    moved = f"160000,{place.first},kernels/lib"
    scratch.git(place.work, "update-index", "--add", "--cacheinfo", moved)
    scratch.git(place.work, "add", ".gitmodules")
    scratch.git(place.work, "commit", "-qm", "Move it")
    scratch.git(place.work, "push", "-q", "origin", "topic")
    head = scratch.git(place.work, "rev-parse", "HEAD")
    plan = planned(place.clone("topic"), "pull_request", base=place.base, head=head)
    assert (plan["act"], plan["reason"]) == ("gate", "kernels/lib is touched")


@pytest.mark.parametrize(("named", "act"), [(True, "gate"), (False, "nothing")])
def test_a_file_by_which_the_environment_is_made_is_of_what_is_measured(
    place: Place, planned: Planned, named: bool, act: str
) -> None:
    settings = (place.work / "pyproject.toml").read_text()
    line = 'environment = "deploy/gpu.txt"\n' if named else ""
    text = settings.replace("[tool.perfci]\n", f"[tool.perfci]\n{line}")
    base = place.change("pyproject.toml", text, branch="main")
    head = place.change("deploy/gpu.txt", "torch==2.13.0\n")
    plan = planned(place.clone("topic"), "pull_request", base=base, head=head)
    assert plan["act"] == act


def test_a_file_named_to_be_run_is_only_named(
    place: Place, call: Callable[..., Any], tmp_path: Path
) -> None:
    name = f"kernels/axpb/$(touch x)`touch x`\nact=run\n{'a' * 30} ::error::{'b' * 40}.cpp"
    head = place.change(name, "x\n")
    clone = place.clone("topic")
    output = tmp_path / "output"
    job = events.github("pull_request", tmp_path, shas={events.BASE: place.base, events.HEAD: head})
    ended = call(clone, "ci", "plan", **job, GITHUB_OUTPUT=str(output))
    assert ended.code == 0, ended.err
    assert "  : :error::bbb" in ended.out
    assert not [line for line in ended.out.splitlines() if line.lstrip().startswith("::")]
    text = output.read_text()
    assert text.count("\nact=run") == 0
    assert f"\n{head}\n" in text
    assert '\n["h200", "a100"]\n' in text
    assert not (clone / "x").exists()


@pytest.mark.parametrize(
    ("name", "act", "is_admitted"),
    [
        ("pull_request_fork", "nothing", False),
        ("pull_request_fork_synchronize", "nothing", False),
        ("pull_request_fork_other_label", "nothing", False),
        ("pull_request_fork_gone", "nothing", False),
        ("pull_request_fork_labeled", "gate", True),
    ],
)
def test_a_fork_waits_for_its_label(
    place: Place, planned: Planned, name: str, act: str, is_admitted: bool
) -> None:
    head = place.change("kernels/axpb/plain.cpp", scratch.body("int a = 0; (void)a;"))
    plan = planned(place.clone("topic"), name, base=place.base, head=head)
    assert (plan["act"], plan["is_admitted"]) == (act, is_admitted)
    assert bool(plan["runners"]) is is_admitted
    assert f"{head[:10]}" in plan["reason"] or is_admitted


def test_a_fork_cannot_name_its_own_label(place: Place, planned: Planned) -> None:
    scratch.git(place.work, "switch", "-q", "-c", "topic")
    with (place.work / "pyproject.toml").open("a") as file:
        file.write('approval_label = "documentation"\n')
    head = place.commit("Approve myself")
    name = "pull_request_fork_other_label"
    plan = planned(place.clone("topic"), name, base=place.base, head=head)
    assert (plan["act"], plan["is_admitted"]) == ("nothing", False)
    assert "put the label 'perf-approved' on" in plan["reason"]


def test_a_pull_request_that_is_closed_or_merged_needs_nothing(
    place: Place, planned: Planned
) -> None:
    head = place.change("kernels/axpb/plain.cpp", "x\n")
    clone = place.clone("topic")
    closed = planned(clone, "pull_request_closed", base=place.base, head=head)
    assert (closed["act"], closed["reason"]) == ("nothing", "the pull request is closed")
    # Merged meanwhile: what it was then is still judged by where it left the branch.
    scratch.git(place.work, "push", "-q", "origin", "topic:main")
    again = planned(clone, "pull_request", base=place.base, head=head)
    assert _ends(again) == ("gate", place.base, head)
    known = planned(clone, "pull_request", base=head, head=head)
    assert (known["act"], known["reason"]) == ("nothing", "main has all of it already")


def test_without_a_merge_base_it_is_said(
    place: Place, call: Callable[..., Any], tmp_path: Path
) -> None:
    scratch.git(place.work, "switch", "-q", "--orphan", "topic")
    head = place.commit("Another beginning")
    shas = {events.BASE: place.base, events.HEAD: head}
    job = events.github("pull_request", tmp_path, shas=shas)
    ended = call(place.clone("topic"), "ci", "plan", **job)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("perfci: ")
    assert "have no common ancestor: nothing to compare against" in ended.err
    assert ended.err.count("\n") == 1


def test_a_push_to_the_default_branch_is_a_run(place: Place, planned: Planned) -> None:
    plan = planned(place.clone("main"), "push", base=place.first, head=place.base)
    assert _ends(plan) == ("run", place.first, place.base)
    assert plan["reason"] == f"a push to main, which was at {place.first[:10]}"
    assert plan["runners"] == ["h200", "a100"]


@pytest.mark.parametrize(
    ("name", "is_gone", "words"),
    [
        ("push_forced", False, "main was forced: {} where it was, is no ancestor"),
        ("push", False, "main was forced: {} where it was, is no ancestor"),
        ("push", True, "what main was before is not known: commit {} cannot be fetched"),
        ("push_new_default_branch", False, "main is new: there is nothing before it"),
    ],
)
def test_a_push_without_an_ancestor_is_a_run_and_no_more(
    place: Place, planned: Planned, name: str, is_gone: bool, words: str
) -> None:
    gone = "1" * 40
    scratch.git(place.work, "reset", "-q", "--hard", place.first)
    head = place.change("README.md", "Other kernels.\n", branch="main")
    base = gone if is_gone else place.base
    plan = planned(place.clone("main"), name, base=base, head=head)
    assert _ends(plan) == ("run", None, head)
    said = words.format(base[:10] + ("" if is_gone else ","))
    assert plan["reason"].startswith(said)


@pytest.mark.parametrize(
    ("name", "act", "reason"),
    [
        ("push_new_branch", "nothing", "topic/$(touch x);rm -rf . is not main: its pull request"),
        ("push_deleted", "nothing", "a branch or tag was deleted"),
        ("delete", "nothing", "a branch or tag was deleted"),
        ("push_tag", "run", "tag v1.0"),
        ("schedule", "nightly", "a schedule"),
        ("workflow_dispatch", "run", "asked for"),
        ("workflow_dispatch_selftest", "selftest", "asked for"),
        ("workflow_run_completed", "nothing", "it tells of another run"),
    ],
)
def test_every_other_event(
    place: Place, planned: Planned, name: str, act: str, reason: str
) -> None:
    plan = planned(place.clone("main"), name, base=place.first, head=place.base)
    assert plan["act"] == act
    assert plan["reason"].startswith(reason)
    assert plan["head"] == (None if "delete" in name else place.base)
    assert plan["runners"] == ([] if act == "nothing" else ["h200", "a100"])


def test_an_annotated_tag_is_the_commit_that_it_names(place: Place, planned: Planned) -> None:
    scratch.git(place.work, "tag", "-a", "-m", "One", "v1.0")
    scratch.git(place.work, "push", "-q", "origin", "v1.0")
    plan = planned(place.clone("main"), "push_tag", base=place.first, head=place.base)
    assert _ends(plan) == ("run", None, place.base)


@pytest.mark.parametrize(("path", "act"), [("kernels/axpb/a.cpp", "gate"), ("docs/a", "nothing")])
def test_a_merge_queue_is_gated_as_a_pull_request(
    place: Place, planned: Planned, path: str, act: str
) -> None:
    head = place.change(path, "x\n")
    plan = planned(place.clone("topic"), "merge_group", base=place.base, head=head)
    assert _ends(plan) == (act, place.base, head)


def test_what_is_asked_for_by_hand(place: Place, planned: Planned) -> None:
    head = place.change("README.md", "More.\n", branch="main")
    clone = place.clone("main")
    backfill = planned(clone, "workflow_dispatch_backfill", base=place.first, head=head)
    assert _ends(backfill) == ("backfill", place.first, head)
    assert backfill["reason"] == "2 commits asked for"
    bisect = planned(clone, "workflow_dispatch_bisect", base=place.first, head=head)
    assert _ends(bisect) == ("bisect", place.first, head)
    assert bisect["options"] == [["kernel", "axpb"], ["variant", "plain"], ["case", "large"]]
    assert bisect["runners"] == ["h200"]


def _asked(**inputs: str) -> list[str]:
    return [word for name, value in inputs.items() for word in ("--input", f"{name}={value}")]


def test_a_range_may_be_named_and_reaches_as_far_back_as_it_takes(
    place: Place, planned: Planned
) -> None:
    for number in range(60):
        head = scratch.commit_all(place.work, f"more {number}")
    scratch.git(place.work, "push", "-q", "origin", "main")
    arguments = _asked(act="backfill", range="HEAD~61..HEAD", runner="a100")
    clone = place.clone("main")
    plan = planned(clone, "schedule", *arguments, base=place.first, head=head)
    assert _ends(plan) == ("backfill", place.first, head)
    assert (plan["reason"], plan["runners"]) == ("61 commits asked for", ["a100"])


def test_a_gate_may_be_asked_for(place: Place, planned: Planned) -> None:
    arguments = _asked(act="gate", range=f"{place.first}..{place.base}")
    clone = place.clone("main")
    plan = planned(clone, "schedule", *arguments, base=place.first, head=place.base)
    assert _ends(plan) == ("gate", place.first, place.base)


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ({"act": "bisekt"}, "input act = 'bisekt' is unknown (did you mean 'bisect'?)"),
        ({"atc": "run"}, "input 'atc' is unknown"),
        ({"act": "nothing"}, "input act = 'nothing' is unknown"),
        ({"act": "backfill"}, "input range = '': write A..B"),
        ({"act": "backfill", "range": "HEAD"}, "write A..B"),
        ({"act": "backfill", "range": "HEAD~1...HEAD"}, "write A..B"),
        ({"act": "backfill", "range": "HEAD..HEAD"}, "holds no commit"),
        ({"act": "backfill", "range": "HEAD..HEAD~1"}, "is no ancestor of"),
        ({"act": "backfill", "range": "--all..HEAD"}, "'--all' is no commit"),
        ({"act": "backfill", "range": "$(touch x)..HEAD"}, "no commit '$(touch x)'"),
        ({"act": "bisect", "range": "HEAD~1..HEAD"}, "fill in kernel, variant, case"),
        (
            {"act": "bisect", "range": "HEAD~1..HEAD", "kernel": "--store=x"},
            "input kernel = '--store=x' is no name",
        ),
        ({"act": "gate"}, "is on main already: fill in range"),
        ({"runner": "b200"}, "input runner = 'b200' is none here (did you mean 'h200'?)"),
    ],
)
def test_what_is_asked_for_and_cannot_be_meant_is_one_line(
    place: Place, call: Callable[..., Any], tmp_path: Path, inputs: dict[str, str], words: str
) -> None:
    job = events.github("schedule", tmp_path, shas={events.HEAD: place.base})
    ended = call(place.clone("main"), "ci", "plan", *_asked(**inputs), **job)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("perfci: ")
    assert words in ended.err
    assert ended.err.count("\n") == 1


def test_what_is_asked_for_does_not_go_round_an_approval(
    place: Place, call: Callable[..., Any], tmp_path: Path
) -> None:
    job = events.github("pull_request_fork", tmp_path, shas={events.HEAD: place.base})
    ended = call(place.work, "ci", "plan", "--input", "act=run", **job)
    assert ended.code == 2
    assert "--input does not go with a pull_request event" in ended.err


@pytest.mark.parametrize(
    ("name", "act"),
    [
        ("push", "run"),
        ("push_new_branch", "nothing"),
        ("tag", "run"),
        ("merge_request", "gate"),
        ("merge_request_merged", "gate"),
        ("merge_request_fork", "nothing"),
        ("schedule", "nightly"),
        ("web", "run"),
    ],
)
def test_gitlab(place: Place, call: Callable[..., Any], name: str, act: str) -> None:
    head = place.change("kernels/axpb/plain.cpp", scratch.body("int a = 0; (void)a;"))
    shas = {events.BASE: place.base, events.HEAD: head}
    ended = call(place.clone("topic"), "ci", "plan", "--json", **events.gitlab(name, shas=shas))
    assert ended.code == 0, ended.err
    plan = json.loads(ended.out)
    assert (plan["act"], plan["head"]) == (act, head)
    assert plan["base"] == (place.base if name == "push" or "merge" in name else None)
    assert plan["is_admitted"] is (name != "merge_request_fork")


def test_a_cron_job_does_what_a_schedule_does(place: Place, call: Callable[..., Any]) -> None:
    ended = call(place.clone("main"), "ci", "plan")
    assert ended.code == 0, ended.err
    assert ended.out == (f"nightly · head {place.base[:10]}\n  a schedule\n  runners: h200, a100\n")


def test_outputs_are_for_the_jobs_that_follow(
    place: Place, call: Callable[..., Any], tmp_path: Path
) -> None:
    output = tmp_path / "output"
    shas = {events.BASE: place.first, events.HEAD: place.base}
    job = events.github("push", tmp_path, shas=shas, GITHUB_RUN_ATTEMPT="2")
    ended = call(place.clone("main"), "ci", "plan", **job, GITHUB_OUTPUT=str(output))
    assert ended.code == 0, ended.err
    lines = output.read_text().splitlines()
    marks = lines[0].partition("<<")[2]
    found = {lines[i].partition("<<")[0]: lines[i + 1] for i in range(0, len(lines), 3)}
    assert found == {
        "act": "run",
        "base": place.first,
        "head": place.base,
        "runners": '["h200", "a100"]',
        "admitted": "true",
        "attempt": "2",
        "reason": f"a push to main, which was at {place.first[:10]}",
    }
    assert len(marks) > 20


def test_outside_of_a_repository_is_one_line(call: Callable[..., Any], tmp_path: Path) -> None:
    ended = call(tmp_path, "ci", "plan", **events.github("push", tmp_path))
    assert ended.code == 2
    assert "is in no git repository" in ended.err


def test_settings_that_are_wrong_are_one_line(
    place: Place, call: Callable[..., Any], tmp_path: Path
) -> None:
    head = place.change("pyproject.toml", "[tool.perfci.ci]\nrunner = ['h200']\n", branch="main")
    job = events.github("push", tmp_path, shas={events.BASE: place.base, events.HEAD: head})
    ended = call(place.clone("main"), "ci", "plan", **job)
    assert ended.code == 3
    assert "unknown key 'runner' (did you mean 'runners'?)" in ended.err


@pytest.mark.parametrize(
    ("name", "arguments", "code", "words"),
    [
        ("push", [], 0, "admitted: code of example/kernels itself"),
        ("pull_request", [], 0, "admitted"),
        ("pull_request_fork_labeled", [], 0, "admitted: ffffffffff of stranger/kernels"),
        ("pull_request_fork_labeled", ["--label", "mine"], 2, "put the label 'mine' on"),
        ("pull_request_fork", [], 2, "not admitted: code of the fork stranger/kernels"),
        ("pull_request_fork_synchronize", [], 2, "not admitted"),
        ("workflow_run_completed", [], 2, "not admitted"),
        ("push", ["--repository", "other/kernels"], 2, "is none of other/kernels"),
        ("push", ["--repository", "example/kernels"], 0, "admitted"),
    ],
)
def test_a_runner_asks_before_each_job(
    call: Callable[..., Any],
    tmp_path: Path,
    name: str,
    arguments: list[str],
    code: int,
    words: str,
) -> None:
    # Whatever lies in the folder of a job that was before is not read.
    (tmp_path / "pyproject.toml").write_text("[tool.perfci.ci]\nno such key")
    ended = call(tmp_path, "ci", "admit", *arguments, **events.github(name, tmp_path))
    assert ended.code == code
    assert words in (ended.err if code else ended.out)


@pytest.mark.parametrize("name", ["issue_comment", "pull_request_target", "pull_request_review"])
def test_a_runner_is_for_no_other_event(
    call: Callable[..., Any], tmp_path: Path, name: str
) -> None:
    job = events.github("pull_request_fork", tmp_path, GITHUB_EVENT_NAME=name)
    ended = call(tmp_path, "ci", "admit", **job)
    assert ended.code == 2
    assert "perfci ci acts on" in ended.err


def test_a_shell_is_no_job(call: Callable[..., Any], tmp_path: Path) -> None:
    ended = call(tmp_path, "ci", "admit")
    assert ended.code == 2
    assert "no job of GitHub's or GitLab's" in ended.err
