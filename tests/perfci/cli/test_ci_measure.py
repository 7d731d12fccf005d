"""perfci ci measure: what a runner does about an event, and the parcel that it leaves."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import events
import pytest
import records
import scratch

from perfci.ci.act import Act
from perfci.ci.measurement import Task, measure_event, open_parcel
from perfci.ci.parcel import Parcel, read_parcel
from perfci.ci.providers import read_event
from perfci.config import load_config
from perfci.errors import UsageError
from perfci.history.codec import read_run_file, write_run_file
from perfci.history.stores import open_store

_SLOWER = scratch.body("for (int r = 0; r < 8; ++r) for (int64_t i = 0; i < count; ++i)"
                       " ((volatile float *)y->data)[i] = r;")  # fmt: skip
_SPY = """\
import os
from pathlib import Path


def run(x, a, b):
    with Path(os.environ["SEEN"]).open("a") as file:
        file.write("".join(f"{name}={value}\\n" for name, value in os.environ.items()))
    return a * x + b
"""
_KILLER = """\
import os
import signal
from pathlib import Path


def run(x, a, b):
    pid = os.getppid()
    while b"--cases-from" not in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\\0"):
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(pid, signal.SIGKILL)
    return a * x + b
"""
_SECRETS = {
    "ACTIONS_ID_TOKEN_REQUEST_URL": "secret-1",
    "ACTIONS_RUNTIME_TOKEN": "secret-2",
    "AWS_SECRET_ACCESS_KEY": "secret-3",
    "CI_JOB_TOKEN": "secret-4",
    "GH_TOKEN": "secret-5",
    "GITHUB_ENV": "/tmp/secret-6",
    "GITHUB_STEP_SUMMARY": "/tmp/secret-7",
    "GITHUB_TOKEN": "secret-8",
    "HF_TOKEN": "secret-9",
    "INPUT_GITHUB-TOKEN": "secret-10",
    "NPM_AUTH": "secret-11",
    "PERFCI_STORE": "sqlite:////tmp/secret-12.db",
    "PIP_INDEX_URL": "https://user:secret-13@index.example/simple",
    "SSH_AUTH_SOCK": "/tmp/secret-14",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with a kernel at main, a remote, and a topic branch that is checked out."""
    root, remote = tmp_path / "root", tmp_path / "remote.git"
    scratch.quick(root)
    scratch.write_kernel(root)
    scratch.git(root, "init", "-q")
    scratch.git(tmp_path, "init", "-q", "--bare", str(remote))
    scratch.git(root, "remote", "add", "origin", f"file://{remote}")
    scratch.commit_all(root, "one")
    scratch.git(root, "push", "-q", "origin", "main")
    scratch.git(root, "switch", "-q", "-c", "topic")
    return root


def _change(root: Path, text: str, name: str = "plain.cpp") -> str:
    (root / "kernels/axpb" / name).write_text(text)
    sha = scratch.commit_all(root, "Change")
    scratch.git(root, "push", "-q", "origin", "HEAD")
    return sha


def _job(root: Path, name: str, **variables: str) -> dict[str, str]:
    """The variables of a job about an event from main to what is checked out."""
    head = scratch.git(root, "rev-parse", "HEAD")
    base = scratch.git(root, "rev-parse", "main" if "pull" in name else "HEAD~1")
    return events.github(
        name, root.parent, shas={events.BASE: base, events.HEAD: head}, **variables
    )


def _measure(
    root: Path, name: str, *arguments: str, **variables: str
) -> tuple[subprocess.CompletedProcess[str], Parcel]:
    out = root.parent / "parcel"
    ended = scratch.perfci(
        root,
        "ci",
        "measure",
        "--device",
        "cpu",
        "--out",
        out,
        *arguments,
        variables=_job(root, name, **variables),
    )
    return ended, read_parcel(out)


def _steps(parcel: Parcel) -> Sequence[tuple[str, int]]:
    return [(each.name, each.exit_code) for each in parcel.steps]


def _log(root: Path, name: str) -> str:
    return (root.parent / "parcel" / f"{name}.log").read_text()


@pytest.mark.long
def test_a_slower_pull_request_is_told(root: Path) -> None:
    base, head = scratch.git(root, "rev-parse", "main"), _change(root, _SLOWER)
    ended, parcel = _measure(root, "pull_request", GITHUB_RUN_ATTEMPT="2")
    assert ended.returncode == 1, ended.stderr
    assert (parcel.act, parcel.base, parcel.head) == (Act.GATE, base, head)
    assert (parcel.runner, parcel.attempt, parcel.run_id) == ("gpu", 2, "6001")
    assert (parcel.exit_code, parcel.error, _steps(parcel)) == (1, "", [("gate", 1)])
    (gate,) = parcel.gates
    assert [(each.key.variant, each.verdict) for each in gate.comparisons if each.ratio] == [
        ("plain", "regression")
    ]
    runs = [read_run_file(root.parent / "parcel" / name) for name in parcel.runs]
    assert {run.commit.sha for run in runs} == {base, head}
    assert {run.attempt for run in runs} == {2}
    assert "gate: kernels/axpb/plain.cpp is touched" in ended.stderr
    assert "pass 1" in _log(root, "gate")
    for told in (ended.stderr, _log(root, "gate")):
        assert re.search(r"^  plain +large .*▲ slower$", told, re.MULTILINE), told


@pytest.mark.long
def test_a_gate_goes_by_the_noise_that_was_studied(root: Path, tmp_path: Path) -> None:
    store = tmp_path / "copy.db"
    studied = scratch.perfci(root, "noise", "--store", store, "--device", "cpu")
    assert studied.returncode == 0, studied.stderr
    _change(root, _SLOWER)
    ended, parcel = _measure(root, "pull_request", "--store", str(store))
    assert ended.returncode == 1, ended.stderr
    assert [each.is_studied for each in parcel.gates[0].comparisons if each.ratio] == [True]
    with open_store(f"sqlite:///{store}") as kept:
        assert {run.trigger for run in kept.runs()} == {"noise"}


def test_a_gate_goes_on_without_a_store_that_is_not_there_yet(root: Path, tmp_path: Path) -> None:
    _change(root, f"// A comment.\n{scratch.PLAIN}")
    store = tmp_path / "copy.db"
    ended, parcel = _measure(root, "pull_request", "--store", str(store))
    assert (ended.returncode, parcel.exit_code) == (0, 0), ended.stderr
    assert f"{store}: not there yet, so that gates know of no study of noise" in ended.stderr
    assert not store.exists()


def test_a_store_that_is_none_leaves_a_parcel_that_says_so(root: Path, tmp_path: Path) -> None:
    _change(root, f"// A comment.\n{scratch.PLAIN}")
    store = tmp_path / "notes"
    store.write_text("no database" * 100)
    ended, parcel = _measure(root, "pull_request", "--store", str(store))
    assert (ended.returncode, parcel.exit_code) == (6, 6), ended.stderr
    assert "file is not a database" in parcel.steps[0].error


def test_kernels_may_lie_in_another_folder(root: Path) -> None:
    (root / "kernels").rename(root / "ops")
    scratch.commit_all(root, "Move")
    head = scratch.commit_all(root, "Nothing")
    ended, parcel = _measure(root, "push", "--kernels", "ops")
    assert ended.returncode == 0, ended.stderr
    (name,) = parcel.runs
    run = read_run_file(root.parent / "parcel" / name)
    assert (run.commit.sha, run.measurements[0].kernel) == (head, "axpb")


def test_the_same_code_is_fine(root: Path) -> None:
    _change(root, f"// What it does.\n{scratch.PLAIN}")
    ended, parcel = _measure(root, "pull_request")
    assert ended.returncode == 0, ended.stderr
    assert (parcel.exit_code, parcel.error, parcel.runs) == (0, "", ())
    assert {each.verdict for each in parcel.gates[0].comparisons} == {"unchanged"}


def test_a_merge_that_github_checks_out_is_not_what_is_judged(root: Path, tmp_path: Path) -> None:
    head = _change(root, f"// What it does.\n{scratch.PLAIN}")
    job = _job(root, "pull_request_fork_labeled")
    scratch.git(root, "switch", "-q", "main")
    (root / "README.md").write_text("Kernels.\n")
    scratch.commit_all(root, "Meanwhile")
    scratch.git(root, "push", "-q", "origin", "main")
    scratch.git(root, "switch", "-q", "--detach")
    scratch.git(root, "merge", "-q", "--no-ff", "-m", "Merge", "topic")
    # A fork's commits are in no branch of this repository.
    pushed = (f"{head}:refs/pull/7/head", "HEAD:refs/pull/7/merge", ":topic")
    scratch.git(root, "push", "-q", "origin", *pushed)
    clone, out = tmp_path / "clone", tmp_path / "parcel"
    scratch.git(tmp_path, "init", "-q", str(clone))
    scratch.git(clone, "remote", "add", "origin", f"file://{tmp_path}/remote.git")
    fetched = "+refs/pull/7/merge:refs/remotes/pull/7/merge"
    scratch.git(clone, "fetch", "-q", "--no-tags", "--depth=1", "origin", fetched)
    scratch.git(clone, "checkout", "-q", "--detach", "refs/remotes/pull/7/merge")
    ended = scratch.perfci(clone, "ci", "measure", "--device", "cpu", "--out", out, variables=job)
    assert ended.returncode == 0, ended.stderr
    parcel = read_parcel(out)
    assert (parcel.base, parcel.head) == (scratch.git(root, "rev-parse", "main~1"), head)
    (gate,) = parcel.gates
    assert (gate.base.sha, gate.head.sha) == (parcel.base, parcel.head)
    assert {each.verdict for each in gate.comparisons} == {"unchanged"}


def test_a_push_is_run_and_filed_under_its_branch(root: Path) -> None:
    head = _change(root, f"// What it does.\n{scratch.PLAIN}")
    scratch.git(root, "switch", "-q", "--detach")
    (root / "left-behind").write_text("A dirty tree is not what was pushed.\n")
    ended, parcel = _measure(root, "push", "--runner", "gpu", GITHUB_RUN_ATTEMPT="3")
    assert ended.returncode == 0, ended.stderr
    assert (parcel.act, parcel.head, _steps(parcel)) == (Act.RUN, head, [("run", 0)])
    (name,) = parcel.runs
    run = read_run_file(root.parent / "parcel" / name)
    assert (run.commit.sha, run.commit.dirty, run.commit.branch) == (head, None, "main")
    assert (run.commit.position, run.attempt, run.trigger) == (1, 3, "push")
    assert "3 passed, 0 failed" in _log(root, "run")


def test_a_shallow_clone_files_the_place_of_a_commit(root: Path, tmp_path: Path) -> None:
    head = _change(root, f"// What it does.\n{scratch.PLAIN}")
    scratch.git(root, "push", "-q", "origin", "topic:main")
    clone = tmp_path / "clone" / "root"
    scratch.git(tmp_path, "clone", "-q", "--depth=1", f"file://{tmp_path}/remote.git", str(clone))
    job = _job(root, "push")
    ended = scratch.perfci(
        clone, "ci", "measure", "--device", "cpu", "--out", tmp_path / "parcel", variables=job
    )
    assert ended.returncode == 0, ended.stderr
    (path,) = (tmp_path / "parcel").glob("*.json.gz")
    commit = read_run_file(path).commit
    assert (commit.sha, commit.position) == (head, 1)


@pytest.mark.long
def test_a_range_is_run_commit_by_commit(root: Path) -> None:
    shas = [_change(root, f"// {number}\n{scratch.PLAIN}") for number in (1, 2)]
    base = scratch.git(root, "rev-parse", "main")
    arguments = ("--input", "act=backfill", "--input", f"range={base}..{shas[1]}")
    ended, parcel = _measure(root, "schedule", *arguments)
    assert ended.returncode == 0, ended.stderr
    runs = [read_run_file(root.parent / "parcel" / name) for name in parcel.runs]
    assert sorted(run.commit.sha for run in runs) == sorted(shas)
    assert {run.commit.branch for run in runs} == {"topic"}


@pytest.mark.long
def test_a_night_is_a_run_and_the_noise(root: Path) -> None:
    _change(root, f"// What it does.\n{scratch.PLAIN}")
    ended, parcel = _measure(root, "schedule")
    assert ended.returncode == 0, ended.stderr
    assert (parcel.act, _steps(parcel)) == (Act.NIGHTLY, [("run", 0), ("noise", 0)])
    assert len(parcel.runs) == 3


def test_what_a_night_measures_must_be_checked_out(root: Path) -> None:
    _change(root, f"// What it does.\n{scratch.PLAIN}")
    job = _job(root, "schedule")
    scratch.git(root, "switch", "-q", "--detach", "main")
    out = root.parent / "parcel"
    ended = scratch.perfci(root, "ci", "measure", "--out", out, variables=job)
    assert ended.returncode == 2
    assert "nightly measures what is checked out: check out" in read_parcel(out).error


@pytest.mark.parametrize(
    "text",
    ["#error no such thing\n", scratch.body("*(volatile int *)0 = 1;")],
    ids=["not built", "faults"],
)
def test_a_kernel_that_fails_is_a_row(root: Path, text: str) -> None:
    _change(root, text)
    ended, parcel = _measure(root, "push")
    assert (ended.returncode, _steps(parcel), parcel.error) == (1, [("run", 1)], "")
    assert len(parcel.runs) == 1


def test_an_environment_that_fails_leaves_its_line_and_log(root: Path) -> None:
    _change(root, f"// What it does.\n{scratch.PLAIN}")
    ended, parcel = _measure(root, "push", CXX="no-such-compiler")
    assert ended.returncode == parcel.exit_code == 4
    assert "no-such-compiler" in parcel.error
    assert parcel.error in _log(root, "run")
    assert parcel.runs == ()


def test_a_head_that_has_no_kernels_any_more_is_told(root: Path) -> None:
    (root / "kernels/axpb/cases.toml").write_text("[[bench]]\nname = 5\n")
    scratch.commit_all(root, "Break")
    scratch.git(root, "push", "-q", "origin", "HEAD")
    ended, parcel = _measure(root, "pull_request")
    assert ended.returncode == parcel.exit_code == 3, ended.stderr
    assert "the head: " in parcel.error
    assert (parcel.gates, _steps(parcel)) == ((), [("gate", 3)])


@pytest.mark.parametrize("name", ["pull_request_fork", "pull_request_fork_synchronize"])
def test_a_fork_that_nobody_approved_is_not_measured(root: Path, name: str) -> None:
    _change(root, _SLOWER)
    ended, parcel = _measure(root, name)
    assert ended.returncode == parcel.exit_code == 2
    assert (parcel.act, parcel.steps, parcel.runs) == (Act.NOTHING, (), ())
    assert parcel.error.startswith("not admitted: code of the fork stranger/kernels")
    assert parcel.error in ended.stderr


def test_what_needs_nothing_leaves_a_parcel_that_says_so(root: Path) -> None:
    (root / "README.md").write_text("Kernels.\n")
    scratch.commit_all(root, "Read me")
    scratch.git(root, "push", "-q", "origin", "HEAD")
    ended, parcel = _measure(root, "pull_request")
    assert ended.returncode == 0, ended.stderr
    assert (parcel.act, parcel.exit_code, parcel.steps) == (Act.NOTHING, 0, ())


def test_a_parcel_in_the_tree_makes_it_no_other_tree(root: Path) -> None:
    ended = scratch.perfci(root, "ci", "measure", "--out", "parcel", "--input", "act=nothing")
    assert ended.returncode == 2, ended.stderr
    assert (root / "parcel").exists()
    assert scratch.git(root, "status", "--porcelain") == ""


def test_a_runner_that_is_not_asked_says_so(root: Path) -> None:
    _change(root, f"// What it does.\n{scratch.PLAIN}")
    ended, parcel = _measure(root, "push", "--runner", "other")
    assert ended.returncode == parcel.exit_code == 2
    assert parcel.error == "other is none of the runners that are asked: gpu"


def test_what_cannot_be_planned_leaves_a_parcel_that_says_why(root: Path) -> None:
    scratch.git(root, "switch", "-q", "--orphan", "alien")
    scratch.commit_all(root, "Another beginning")
    scratch.git(root, "push", "-q", "origin", "HEAD")
    ended, parcel = _measure(root, "pull_request")
    assert ended.returncode == parcel.exit_code == 2
    assert "have no common ancestor" in parcel.error


def test_a_folder_that_holds_something_is_refused(root: Path) -> None:
    _change(root, f"// What it does.\n{scratch.PLAIN}")
    out = root.parent / "parcel"
    out.mkdir()
    (out / "parcel.json").write_text("{}")
    ended = scratch.perfci(root, "ci", "measure", "--out", out, variables=_job(root, "schedule"))
    assert ended.returncode == 2
    assert "is not empty" in ended.stderr


def test_code_under_test_sees_no_secret_and_no_file_of_the_pipeline(root: Path) -> None:
    _change(root, _SPY, "spy.py")
    path = root.parent / "seen.txt"
    ended, _ = _measure(root, "push", SEEN=str(path), **_SECRETS)
    assert ended.returncode == 0, (ended.stderr, _log(root, "run"))
    seen = path.read_text()
    names = {line.partition("=")[0] for line in seen.splitlines()}
    assert {"PATH", "PERFCI_CACHE", "PERFCI_TRIGGER", "SEEN"} <= names
    assert "secret-" not in seen
    assert not [name for name in names if name.startswith(("ACTIONS_", "CI", "GITHUB_"))]


def test_what_code_under_test_prints_is_no_command_to_github(root: Path) -> None:
    shout = 'fprintf(stderr, "\\n::error::x\\n"); fflush(stderr);'
    _change(root, "#include <cstdio>\n" + scratch.body(shout))
    ended, _ = _measure(root, "push")
    first, *_, last = [line for line in ended.stderr.splitlines() if line.startswith("::")]
    mark = first.removeprefix("::stop-commands::")
    assert first.startswith("::stop-commands::perfci-")
    assert last == f"::{mark}::"
    assert len(mark) > 30


def test_an_interruption_leaves_a_parcel(root: Path, tmp_path: Path) -> None:
    _change(root, scratch.body("for (;;) { volatile int a = 0; (void)a; }"))
    out = tmp_path / "parcel"
    process = subprocess.Popen(
        [sys.executable, "-m", "perfci", "ci", "measure", "--device", "cpu", "--out", str(out)],
        cwd=root,
        env=scratch.environment(root, _job(root, "push")),
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("build"):
            break
    process.send_signal(signal.SIGINT)
    process.communicate()
    parcel = read_parcel(out)
    assert process.returncode == 130
    assert (parcel.error, _steps(parcel)) == ("interrupted", [("run", 130)])


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (RuntimeError("not\nthought of"), 70, "a fault of perfci's own: RuntimeError('not"),
    ],
)
def test_what_gets_in_the_way_leaves_a_parcel_too(
    root: Path, tmp_path: Path, error: BaseException, code: int, words: str
) -> None:
    def say(line: str) -> None:
        raise error

    config = load_config(root, environment={})
    event, out = read_event({}, root), tmp_path / "parcel"
    open_parcel(out)
    task = Task(event=event, runner="", root=root, folder=root, out=out)
    with pytest.raises(type(error)):
        measure_event(task, config, say=say)
    parcel = read_parcel(out)
    assert (parcel.exit_code, parcel.runner, parcel.head) == (code, "gpu", event.head)
    assert parcel.error.startswith(words)


def test_what_code_under_test_has_left_is_no_run_file(root: Path, tmp_path: Path) -> None:
    event, out = read_event({}, root), tmp_path / "parcel"
    open_parcel(out)
    task = Task(event=event, runner="", root=root, folder=root, out=out)

    def say(line: str) -> None:
        for name in ("good", "not ours", "-rf"):
            write_run_file(out / f"{name}.json.gz", records.run())
        (out / "link.json.gz").symlink_to(out / "good.json.gz")
        os.mkfifo(out / "pipe.json.gz")
        raise UsageError("seen")

    assert measure_event(task, load_config(root, environment={}), say=say).error == "seen"
    assert read_parcel(out).runs == ("good.json.gz",)


def test_a_runner_has_a_name(root: Path, tmp_path: Path) -> None:
    ended = scratch.perfci(root, "ci", "measure", "--runner", "a/b", "--out", tmp_path / "parcel")
    assert ended.returncode == 2
    assert ended.stderr.startswith("perfci: --runner a/b: letters, digits")


def test_a_command_that_is_killed_is_told(root: Path) -> None:
    _change(root, _KILLER, "killer.py")
    ended, parcel = _measure(root, "push")
    assert ended.returncode == parcel.exit_code == 137
    assert parcel.error == "ended by SIGKILL (out of memory?)"
    assert _steps(parcel) == [("run", 137)]
