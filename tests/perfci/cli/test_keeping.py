"""What is measured outlives perfci: killed in a later pass, the complete ones are brought in."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import scratch

from perfci.history.codec import read_run_file
from perfci.history.model import Run
from perfci.history.stores import open_store

_OTHERWISE = "def run(x, a, b):\n    return b + x * a\n"
_STOPS = """\
import os


def run(x, a, b):
    mine = f"FOLDER/{os.getpid()}"
    if not os.path.exists(mine):
        open(mine, "w").close()
        if len(os.listdir("FOLDER")) == 3:
            with open("FOLDER.told", "w") as fifo:
                fifo.write("here")
            open("FOLDER.go").read()
    return b + x * a
"""
_WAITS = """\
def run(x, a, b):
    with open("FOLDER.told", "w") as fifo:
        fifo.write("here")
    open("FOLDER.go").read()
"""
_SPOILS = """\
import os


def run(x, a, b):
    os.makedirs("STORE", exist_ok=True)
    return a * x + b
"""
_COMMANDS = {
    "run": ("run", "--passes", "20"),
    "noise": ("noise", "--passes", "20"),
    "gate": ("gate", "--base", "HEAD"),
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository whose working tree computes as its commit does, and stops in a later pass."""
    root = scratch.quick(tmp_path / "root")
    scratch.write_kernel(root, eager__py=scratch.EAGER)
    scratch.git(root, "init", "-q")
    scratch.commit_all(root, "one")
    folder = tmp_path / "passes"
    folder.mkdir()
    for name in ("told", "go"):
        os.mkfifo(tmp_path / f"passes.{name}")
    scratch.write_kernel(root, eager__py=_STOPS.replace("FOLDER", str(folder)))
    return root


@contextmanager
def _measuring(root: Path, *arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
    """The program while the kernel waits, in a pass after the first."""
    with subprocess.Popen(
        [sys.executable, "-m", "perfci", *arguments],
        cwd=root,
        env=scratch.environment(root),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as program:
        assert (root.parent / "passes.told").read_text() == "here"
        yield program


def _go_on(root: Path) -> None:
    """Let the kernel go on."""
    (root.parent / "passes.go").write_text("")


def _files(root: Path, out: str | None) -> list[Path]:
    """The run files of what is measured, and nothing that is half a file."""
    found = [*root.glob(f"{out}/*" if out else ".perfci/unfinished/*/*")]
    assert {path.name for path in found if path.name[0] != "."} >= {"lock"} or out
    return sorted(path for path in found if path.name.endswith(".json.gz"))


def _passes(run: Run) -> set[int]:
    return {len(row.passes) for row in run.measurements if row.contract}


def _recorded(root: Path) -> list[Run]:
    with open_store(f"sqlite:///{root}/.perfci/history.db") as store:
        return [store.run(each.run_id) for each in store.runs()]


@pytest.mark.parametrize("name", _COMMANDS)
def test_passes_outlive_a_kill(root: Path, name: str) -> None:
    with _measuring(root, *_COMMANDS[name]) as program:
        program.kill()
    doctor = scratch.call(root, "doctor")
    assert len(_files(root, None)) == (1 if name == "run" else 2)
    ended = scratch.call(root, "run", "--case", "one")
    assert ended.returncode == 0
    said, command, *_ = ended.stderr.splitlines()
    were = "1 run was" if name == "run" else "2 runs were"
    it = "it" if name == "run" else "them"
    known = re.fullmatch(rf"{were} cut off after (\d+) pass(?:es)?; bring {it} in with", said)
    assert known, ended.stderr
    assert said.partition(";")[0] in " ".join(doctor.stdout.split())
    assert command.startswith("  perfci history import .perfci/unfinished/")
    before = {run.run_id for run in _recorded(root)}
    brought = scratch.call(root, *command.split()[1:])
    assert (brought.returncode, brought.stderr) == (0, "")
    assert not (root / ".perfci/unfinished").exists()
    runs = [run for run in _recorded(root) if run.run_id not in before]
    assert [_passes(run) for run in runs] == [{int(known[1])}] * (1 if name == "run" else 2)
    assert len({run.pair for run in runs}) == 1
    for run in runs:
        assert run.duration_s > 0
        assert f"run {run.run_id} " in scratch.call(root, "show", run.run_id).stdout


def test_worktrees_do_not_outlive_a_kill_for_long(root: Path) -> None:
    with _measuring(root, *_COMMANDS["gate"]) as program:
        alone = scratch.call(root, "run", "--commit", "HEAD", "--case", "one")
        beside = _count_worktrees(root)
        program.kill()
    after = scratch.call(root, "run", "--commit", "HEAD", "--case", "one")
    assert (alone.returncode, beside) == (0, 2), alone.stderr
    assert (after.returncode, _count_worktrees(root)) == (0, 1), after.stderr


def _count_worktrees(root: Path) -> int:
    return len(scratch.git(root, "worktree", "list").splitlines())


def test_all_passes_of_a_gate_outlive_a_kill_while_what_is_new_is_checked(root: Path) -> None:
    waits = _WAITS.replace("FOLDER", str(root.parent / "passes"))
    scratch.write_kernel(root, eager__py=_OTHERWISE, new__py=waits)
    with _measuring(root, "gate", "--base", "HEAD", "--out", "../files") as program:
        program.kill()
    passes = [_passes(read_run_file(path)) for path in _files(root, "../files")]
    assert passes[0] == passes[1]
    assert passes[0] <= {6, 12, 24, 48, 72}


def test_what_is_still_being_measured_is_not_said_to_be_cut_off(root: Path) -> None:
    with _measuring(root, *_COMMANDS["run"]) as program:
        assert len(_files(root, None)) == 1
        others = [scratch.call(root, "run", "--case", "one"), scratch.call(root, "doctor")]
        assert program.poll() is None
        program.kill()
    assert [each.returncode for each in others] == [0, 0]
    assert not any("cut off" in each.stdout + each.stderr for each in others)
    assert "cut off" in scratch.call(root, "doctor").stdout


@pytest.mark.parametrize("name", _COMMANDS)
def test_passes_outlive_a_kill_in_the_files_that_were_asked_for(root: Path, name: str) -> None:
    out = "../files/run.json.gz" if name == "run" else "../files"
    (root / "../files").mkdir()
    with _measuring(root, *_COMMANDS[name], "--out", out) as program:
        program.kill()
    assert not (root / ".perfci").exists()
    runs = [read_run_file(path) for path in _files(root, "../files")]
    assert len(runs) == (1 if name == "run" else 2)
    assert all(len(_passes(run)) == 1 and _passes(run) != {0} for run in runs)
    assert len({run.pair for run in runs}) == 1
    brought = scratch.call(root, "history", "import", out)
    assert brought.returncode == 0, brought.stderr
    for run in runs:
        shown = scratch.call(root, "show", run.run_id, "--json")
        assert json.loads(shown.stdout)["run_id"] == run.run_id


def test_the_files_that_were_asked_for_are_there_under_their_names_from_the_first_pass_on(
    root: Path,
) -> None:
    with _measuring(root, "noise", "--passes", "4", "--out", "files") as program:
        first = {path.name: read_run_file(path) for path in _files(root, "files")}
        _go_on(root)
    assert program.returncode == 0
    last = {path.name: read_run_file(path) for path in _files(root, "files")}
    assert sorted(path.name for path in (root / "files").iterdir()) == sorted(first)
    assert first.keys() == last.keys()
    assert {run.pair for run in first.values()} == {run.pair for run in last.values()}
    assert all(_passes(run) == {4} for run in last.values())
    assert all(first[name].duration_s < run.duration_s for name, run in last.items())


@pytest.mark.parametrize("by", [None, signal.SIGTERM])
def test_nothing_is_left_of_a_run_that_is_recorded(root: Path, by: signal.Signals | None) -> None:
    with _measuring(root, "run", "--passes", "4") as program:
        assert len(_files(root, None)) == 1
        if by is None:
            _go_on(root)
        else:
            program.send_signal(by)
    assert program.returncode == (0 if by is None else 130)
    assert not (root / ".perfci/unfinished").exists()
    assert len(_recorded(root)) == 1
    assert scratch.git(root, "status", "--porcelain") == "M kernels/axpb/eager.py"


def test_what_the_store_refuses_is_kept_where_its_passes_were(root: Path) -> None:
    store = root / ".perfci/history.db"
    scratch.write_kernel(root, eager__py=_SPOILS.replace("STORE", str(store)))
    ended = scratch.perfci(root, "run", "--passes", "2", "--case", "large")
    assert ended.returncode == 6
    (kept,) = _files(root, None)
    assert f"the run is kept in {kept}; bring it in with" in ended.stderr
    assert _passes(read_run_file(kept)) == {2}
    store.rmdir()
    brought = scratch.call(root, "history", "import", kept)
    assert brought.returncode == 0, brought.stderr
    assert not (root / ".perfci/unfinished").exists()


def test_where_passes_cannot_be_kept_it_goes_on_and_says_so_once(root: Path) -> None:
    scratch.write_kernel(root, eager__py=_OTHERWISE)
    (root / ".perfci").mkdir()
    (root / ".perfci/unfinished").write_text("")
    ended = scratch.call(root, "run", "--passes", "4", "--case", "large")
    assert ended.returncode == 0, ended.stderr
    folder = root / ".perfci/unfinished"
    warning = f"passes are not kept before the end: {folder}: cannot be made (not a directory)\n"
    assert ended.stderr.count(warning) == 1
    assert ended.stderr.count("not kept") == 1
    (run,) = _recorded(root)
    assert _passes(run) == {4}


def test_another_store_is_named_in_the_command(root: Path) -> None:
    store = "../elsewhere/other.db"
    with _measuring(root, "run", "--passes", "20", "--store", store) as program:
        program.kill()
    folder = root.parent / "elsewhere"
    assert (folder / ".gitignore").read_text() == "*\n"
    assert scratch.call(root, "run", "--case", "one").stderr.find("cut off") == -1
    ended = scratch.call(root, "run", "--case", "one", "--store", store)
    command = ended.stderr.splitlines()[1]
    assert command.endswith(f" --store sqlite:///{folder}/other.db")
    assert scratch.call(root, *command.split()[1:]).returncode == 0
    assert not (folder / "unfinished").exists()
