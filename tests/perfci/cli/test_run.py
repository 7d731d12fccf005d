"""perfci run: what cannot be run is one clear line, and what has been measured is never lost."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import scratch
from dash import dcc
from stores import make_store

from perfci.dashboard.answers import answer_kernel
from perfci.dashboard.site import Site
from perfci.history.codec import read_run_file
from perfci.history.model import Run, Stop
from perfci.history.stores import open_store
from perfci.history.summary import summarise


def _runs(root: Path) -> list[Run]:
    """The recorded runs, oldest first."""
    with open_store(f"sqlite:///{root}/.perfci/history.db") as store:
        return [store.run(each.run_id) for each in reversed(store.runs())]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with one kernel and one commit, and a store without runs."""
    root = scratch.quick(tmp_path / "root")
    scratch.write_kernel(root)
    scratch.git(root, "init", "-q")
    scratch.commit_all(root, "one")
    make_store(f"sqlite:///{root}/.perfci/history.db").close()
    return root


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--kernel", "axpp"], 2, "no kernel 'axpp' (did you mean 'axpb'?)"),
        (["--variant", "plan"], 2, "no variant 'plan' (did you mean 'plain'?)"),
        (["--case", "lagre"], 2, "no case 'lagre' (did you mean 'large'?)"),
        (["--device", "tpu"], 5, "--device tpu"),
        (["--kernels", "nowhere"], 3, "nowhere: no such folder"),
        (["--commit", "0123456789"], 2, "no commit '0123456789' in"),
        (["--commit", "--help-me"], 2, "'--help-me' is no commit"),
        (["--commit", "HEAD", "--range", "a..b"], 2, "exclude each other"),
        (["--again"], 2, "--again goes with --range"),
        (["--budget", "3"], 2, "--budget goes with --passes auto"),
        (["--cases-from", "commit"], 2, "goes with --commit or --range"),
        (["--range", "HEAD"], 2, "a range is written A..B"),
        (["--range", "HEAD..nowhere"], 2, "no commit 'nowhere'"),
        (["--store", "pyproject.toml/history.db"], 6, "cannot write"),
        (["--store", "/proc/history.db"], 6, "cannot write /proc/history.db"),
        (["--store", "/proc/nowhere/history.db"], 6, "cannot write /proc/nowhere/history.db"),
        (["--store", "/"], 6, "is a directory"),
        (["--store", "mysql://host/runs"], 6, "unknown kind of store; known: "),
        (["--out", "nowhere/run.json.gz"], 2, "nowhere: no such folder"),
    ],
)
def test_what_cannot_be_meant_is_one_line(
    root: Path, call: Callable[..., Any], arguments: list[str], code: int, message: str
) -> None:
    ended = call(root, "run", *arguments)
    assert (ended.code, ended.out) == (code, "")
    assert ended.err.startswith("perfci: ")
    assert ended.err.count("\n") == 1
    assert message in ended.err
    assert _runs(root) == []


@pytest.mark.parametrize("passes", ["0", "1001", "x", "2.5", "Auto"])
def test_passes_are_a_number_or_auto(root: Path, call: Callable[..., Any], passes: str) -> None:
    ended = call(root, "run", "--passes", passes)
    assert ended.code == 2
    assert f"'{passes}' is neither auto nor a whole number from 1 to 1000." in ended.err


@pytest.mark.parametrize("arguments", [["--passes", "0"], ["--tier", "all"], ["--fast"]])
def test_what_is_no_option_is_a_usage_error(
    root: Path, call: Callable[..., Any], arguments: list[str]
) -> None:
    ended = call(root, "run", *arguments)
    assert ended.code == 2
    assert "Usage: perfci run" in ended.err


def test_a_missing_compiler_is_named_with_what_to_do(root: Path, call: Callable[..., Any]) -> None:
    ended = call(root, "run", CXX="nonexistent")
    assert ended.code == 4
    assert ended.err == (
        "perfci: nonexistent: no working C++ compiler there; install it (Debian, Ubuntu: "
        "apt-get install g++) or set CXX\n"
    )
    assert _runs(root) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["run"],
        ["check"],
        ["noise"],
        ["selftest"],
        ["gate", "--base", "HEAD"],
        ["bisect", "HEAD~1", "HEAD", "--kernel", "axpb", "--variant", "plain", "--case", "large"],
    ],
)
def test_without_torch_nothing_runs_and_one_line_says_so(root: Path, arguments: list[str]) -> None:
    scratch.commit_all(root, "again")
    (root / "kernels/axpb/more.cpp").write_text(scratch.PLAIN)
    program = "import sys; sys.modules['torch'] = None; from perfci.__main__ import main; main()"
    ended = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=root,
        env=scratch.environment(root),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 4, ended.stderr
    assert "torch is not installed for " in ended.stderr.splitlines()[-1]


def test_a_misspelt_key_of_a_case_is_named(root: Path, call: Callable[..., Any]) -> None:
    cases = root / "kernels/axpb/cases.toml"
    cases.write_text(scratch.CASES.replace("count = 1001", "cuont = 1001"))
    ended = call(root, "run")
    assert ended.code == 3
    assert "cases.toml: [[check]] 'odd': unknown key 'cuont' (did you mean 'count'?)" in ended.err


def test_variants_for_other_devices_are_counted(root: Path, call: Callable[..., Any]) -> None:
    for names, said in (("a", "1 variant is not for cpu"), ("ab", "2 variants are not for cpu")):
        scratch.write_kernel(root, **{f"{each}__cu": scratch.CUDA for each in names})
        ended = call(root, "run", "--device", "cpu", "--variant", "a", "--variant", names[-1])
        assert (ended.code, ended.err.splitlines()[0]) == (3, f"{said}: left out")


def test_outside_of_a_repository_the_commit_must_be_named(
    tmp_path: Path, call: Callable[..., Any]
) -> None:
    root = scratch.quick(tmp_path / "root")
    scratch.write_kernel(root)
    make_store(f"sqlite:///{root}/.perfci/history.db").close()
    ended = call(root, "run")
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert "is in no git repository: say which commit this is with --commit SHA" in ended.err
    assert call(root, "run", "--range", "a..b").code == 2
    assert "hexadecimal" in call(root, "run", "--commit", "main").err


def test_a_repository_without_commits_is_named(tmp_path: Path, call: Callable[..., Any]) -> None:
    root = scratch.quick(tmp_path / "root")
    scratch.write_kernel(root)
    scratch.git(root, "init", "-q")
    make_store(f"sqlite:///{root}/.perfci/history.db").close()
    ended = call(root, "run")
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert "the repository has no commits yet" in ended.err


def test_a_clean_tree_is_the_commit_and_a_dirty_one_is_kept_apart(root: Path) -> None:
    for _ in range(2):
        assert scratch.call(root, "run", "--case", "one").returncode == 0
    plain = root / "kernels/axpb/plain.cpp"
    plain.write_text(scratch.PLAIN + "// a change that is not committed\n")
    assert scratch.call(root, "run", "--case", "one").returncode == 0
    first, second, dirty = _runs(root)
    assert (first.commit.dirty, first.attempt) == (None, 1)
    assert (second.commit.dirty, second.attempt) == (None, 2)
    assert dirty.commit.sha == first.commit.sha
    assert (dirty.commit.dirty is not None, dirty.attempt) == (True, 1)
    assert first.commit.branch == "main"
    assert scratch.git(root, "status", "--short") == "M kernels/axpb/plain.cpp"
    shown = scratch.call(root, "show", "HEAD", "--json")
    assert json.loads(shown.stdout)["run_id"] == second.run_id
    shown = scratch.call(root, "show", "HEAD+dirty", "--json")
    assert json.loads(shown.stdout)["run_id"] == dirty.run_id


def test_passes_are_added_until_the_latency_is_known_or_time_is_up(root: Path) -> None:
    scratch.quick(root, precision=0.9)
    ended = scratch.call(root, "run", "--passes", "auto")
    assert ended.returncode == 0, ended.stderr
    assert "\n3 passes · 1 converged\n" in ended.stdout
    scratch.quick(root, precision=1e-9)
    ended = scratch.call(root, "run", "--passes", "auto", "--budget", "1e-6", "--json")
    assert ended.returncode == 0, ended.stderr
    known, unknown = (
        [(len(row.passes), row.stop) for row in run.measurements if row.contract]
        for run in _runs(root)
    )
    assert known == [(3, Stop.CONVERGED)]
    ((passes, stop),) = unknown
    assert passes == 3
    assert stop in (Stop.OUT_OF_TIME, Stop.STABILISED)
    assert scratch.perfci(root, "run", "--passes", "many").returncode == 2


def test_a_detached_head_is_measured_without_a_branch(root: Path) -> None:
    scratch.git(root, "checkout", "-q", "--detach")
    assert scratch.call(root, "run", "--case", "one").returncode == 0
    (run,) = _runs(root)
    assert run.commit.sha == scratch.git(root, "rev-parse", "HEAD")
    assert (run.commit.branch, run.commit.dirty, run.commit.position) == (None, None, 0)


def test_a_run_that_cannot_be_written_is_kept_in_a_file(
    root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    temporary = tmp_path_factory.mktemp("t")
    variables = {"TMPDIR": str(temporary)}
    out = "/proc/run.json.gz"
    ended = scratch.perfci(root, "run", "--case", "one", "--out", out, variables=variables)
    assert ended.returncode == 6
    assert "Traceback" not in ended.stderr
    (rescued,) = temporary.glob("perfci-*.json.gz")
    assert f"perfci history import {rescued}" in ended.stderr
    assert [each.status for each in read_run_file(rescued).measurements] == ["passed"]


def test_a_temporary_folder_that_the_fork_server_cannot_use_is_named(root: Path) -> None:
    long = root / ("t" * 80)
    long.mkdir()
    ended = scratch.perfci(root, "run", "--case", "one", variables={"TMPDIR": str(long)})
    assert (ended.returncode, ended.stderr.count("\n")) == (3, 1)
    assert f"TMPDIR={long}: too long for a socket in it" in ended.stderr


_SECOND_PASS = """\
import os
import signal


def run(x, a, b):
    first, me = "FOLDER/first", str(os.getpid())
    if not os.path.exists(first):
        with open(first, "w") as file:
            file.write(me)
    with open(first) as file:
        if file.read() == me:
            return a * x + b
    with open("FOLDER/told", "w") as fifo:
        fifo.write(me)
    signal.pause()
"""


def _interrupted(root: Path, by: signal.Signals) -> tuple[int, str]:
    """Start three passes, wait for the kernel to say that it is there, and interrupt."""
    with subprocess.Popen(
        [sys.executable, "-m", "perfci", "run", "--passes", "3", "--case", "large"],
        cwd=root,
        env=scratch.environment(root),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as program:
        (root / ".perfci/told").read_text()
        if by is signal.SIGINT:  # a terminal tells all of them
            os.killpg(program.pid, by)
        else:
            program.send_signal(by)
        _, words = program.communicate()
    return program.returncode, words


@pytest.mark.parametrize(
    ("by", "complete"),
    [
        (signal.SIGINT, 0),
        (signal.SIGTERM, 1),
        pytest.param(signal.SIGTERM, 0, marks=pytest.mark.long),
        pytest.param(signal.SIGINT, 1, marks=pytest.mark.long),
    ],
)
def test_an_interrupted_run_keeps_its_complete_passes(
    root: Path, by: signal.Signals, complete: int
) -> None:
    folder = root / ".perfci"
    folder.mkdir(exist_ok=True)
    os.mkfifo(folder / "told")
    if complete == 0:
        (folder / "first").write_text("another")
    waits = _SECOND_PASS.replace("FOLDER", str(folder))
    scratch.write_kernel(root, plain__cpp=scratch.PLAIN, waits__py=waits)
    code, words = _interrupted(root, by)
    assert code == 130
    assert "Traceback" not in words
    assert words.endswith("perfci: interrupted; nothing that was recorded is lost\n")
    runs = _runs(root)
    assert len(runs) == complete
    for run in runs:
        assert "interrupted: 1 of 3 passes was complete and is kept" in words
        assert [(each.status, len(each.passes)) for each in run.measurements] == [
            ("passed", 1),
            ("passed", 1),
        ]
    again = scratch.perfci(root, "run", "--variant", "plain", "--case", "one")
    assert again.returncode == 0
    assert len(_runs(root)) == complete + 1


def _latency_ns(run: Run) -> float:
    """The latency that was read of the only timed cell of a run."""
    (timed,) = (each for each in run.measurements if each.passes)
    return summarise(timed.passes).typical_ns


def _drawn(store: str, kernel: str, variant: str) -> list[tuple[str, float]]:
    """The points of a variant on the page of its kernel, from left to right: (SHA, µs)."""
    page = answer_kernel({"kernel": kernel}, Site(store_url=store, repository_url=None))
    (graph,) = (each for each in page._traverse() if isinstance(each, dcc.Graph))
    traces = [each for each in graph.figure["data"] if each["name"] == variant]
    return list(zip(traces[0]["x"], traces[0]["y"], strict=True))


@pytest.mark.long
def test_a_range_is_measured_from_old_to_new(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = scratch.quick(tmp_path / "root")
    temporary = tmp_path_factory.mktemp("t")
    scratch.git(root, "init", "-q")
    shas = [scratch.commit_all(root, "nothing yet")]
    (root / "README").write_text("still no kernel")
    shas.append(scratch.commit_all(root, "no kernel"))
    for number in range(3):
        source = scratch.PLAIN.replace("int64_t i = 0", f"int64_t i = {number} - {number}")
        cases = scratch.CASES.replace("odd", f"odd_{number}")
        scratch.write_kernel(root, cases__toml=cases, plain__cpp=source)
        shas.append(scratch.commit_all(root, f"kernel {number}"))

    def measured(*arguments: str) -> subprocess.CompletedProcess[str]:
        span = ("run", "--range", f"{shas[0]}..HEAD")
        return scratch.perfci(root, *span, *arguments, variables={"TMPDIR": str(temporary)})

    ended = measured()
    assert ended.returncode == 9
    assert f"perfci: commit {shas[1][:10]} is left out: " in ended.stderr
    runs = _runs(root)
    assert [run.commit.sha for run in runs] == shas[2:]
    assert [run.commit.position for run in runs] == [2, 3, 4]
    assert {(run.trigger, run.attempt, run.commit.dirty) for run in runs} == {("range", 1, None)}
    assert len({run.measurements[0].source_digest for run in runs}) == 3
    assert {each.case for run in runs for each in run.measurements} == {"large", "one", "odd_2"}

    points = _drawn(f"sqlite:///{root}/.perfci/history.db", "axpb", "plain")
    assert points == [(run.commit.sha, pytest.approx(_latency_ns(run) / 1000)) for run in runs]

    ended = measured()
    assert (ended.returncode, len(_runs(root))) == (9, 3)
    assert ended.stderr.count("recorded already") == 3

    ended = measured("--case", "one")
    assert (ended.returncode, len(_runs(root))) == (9, 3)

    ended = measured("--again", "--cases-from", "commit")
    assert ended.returncode == 9
    again = _runs(root)[3:]
    assert [(run.commit.sha, run.attempt) for run in again] == [(sha, 2) for sha in shas[2:]]
    assert [run.measurements[2].case for run in again] == ["odd_0", "odd_1", "odd_2"]

    ended = measured("--out", "files")
    assert (ended.returncode, len(_runs(root))) == (9, 6)
    files = sorted(read_run_file(each).commit.sha for each in (root / "files").iterdir())
    assert files == sorted(shas[2:])

    assert len(scratch.git(root, "worktree", "list").splitlines()) == 1
    assert list(temporary.iterdir()) == []


def test_a_commit_that_lacks_the_chosen_kernel_is_left_out(root: Path) -> None:
    scratch.write_kernel(root, "later")
    shas = [scratch.commit_all(root, "another kernel"), scratch.commit_all(root, "nothing new")]
    scratch.git(root, "rm", "-rq", "kernels/axpb")
    scratch.commit_all(root, "gone")
    span = ("run", "--range", "HEAD~3..HEAD", "--cases-from", "commit", "--case", "one")
    ended = scratch.call(root, *span, "--kernel", "axpb")
    assert ended.returncode == 9
    assert "is left out: no kernel 'axpb'" in ended.stderr
    assert [run.commit.sha for run in _runs(root)] == shas
    assert len(scratch.git(root, "worktree", "list").splitlines()) == 1
