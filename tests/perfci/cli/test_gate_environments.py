"""perfci gate and perfci bisect where a head changes what is installed, not the kernel's code."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import scratch
import sided

from perfci.history.model import Run
from perfci.history.stores import open_store


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository whose variant uses an installed package, committed once."""
    root = sided.start(tmp_path / "root")
    scratch.commit_all(root, "one")
    return root


def _stored(root: Path) -> Sequence[Run]:
    with open_store(f"sqlite:///{root}/.perfci/history.db") as store:
        return [store.run(each.run_id) for each in store.runs()]


def test_environments_that_ask_for_the_same_are_shared(
    root: Path, call: Callable[..., Any]
) -> None:
    text = (root / "requirements.txt").read_text()
    (root / "requirements.txt").write_text(f"# What the kernel needs.\n{text}")
    scratch.write_kernel(
        root, paced__py=f"# What it does.\n{sided.PACED}", plain__cpp=scratch.PLAIN
    )
    scratch.commit_all(root, "Comment")
    scratch.write_kernel(root, plain__cpp=f"// What it does.\n{scratch.PLAIN}")
    ended = call(root, "gate", "--base", "HEAD", "--variant", "plain")
    assert ended.code == 0, ended.err
    assert "3 cells run the same code" in ended.out
    assert "environment:" not in ended.out
    assert not (root.parent / "root-cache/environments").exists()


@pytest.mark.parametrize(
    ("base", "head", "code", "message"),
    [
        ({"pace": "1.0"}, {"pace": "9.9"}, 4, "the head's environment cannot be made from req"),
        ({"pace": "9.9"}, {"pace": "1.0"}, 4, "the base's environment cannot be made from req"),
        ({"pace": "1.0"}, {}, 4, "the head's environment has no torch"),
    ],
    ids=["head", "base", "no torch"],
)
def test_what_cannot_be_installed_is_one_line(
    root: Path,
    call: Callable[..., Any],
    base: dict[str, str],
    head: dict[str, str],
    code: int,
    message: str,
) -> None:
    for versions in (base, head):
        sided.require(root, **({"torch": "2.12.0", **versions} if versions else {"pace": "1.0"}))
        scratch.commit_all(root, "Require")
    ended = call(root, "gate", "--base", "HEAD~1")
    assert (ended.code, ended.out) == (code, "")
    assert f"perfci: {message}" in ended.err
    assert "Traceback" not in ended.err
    assert not (root / ".perfci/history.db").exists() or not _stored(root)


def test_what_does_not_say_what_to_install_is_a_side_s(
    root: Path, call: Callable[..., Any]
) -> None:
    (root / "requirements.txt").write_text("-e .\n")
    ended = call(root, "gate", "--base", "HEAD")
    assert (ended.code, ended.out) == (3, "")
    assert "perfci: the head: requirements.txt: '-e .' would install" in ended.err


_BLOCKS = """\
import os
import signal


def run(x, a, b):
    with open("FIFO", "w") as fifo:
        fifo.write(str(os.getpid()))
    signal.pause()
"""


def test_no_side_s_process_outlives_perfci(root: Path) -> None:
    fifo = root.parent / "told"
    os.mkfifo(fifo)
    scratch.write_kernel(root, paced__py=_BLOCKS.replace("FIFO", str(fifo)))
    scratch.commit_all(root, "Wait")
    sided.require(root, pace="2.1", torch="2.12.0")
    with subprocess.Popen(
        [sys.executable, "-m", "perfci", "gate", "--base", "HEAD"],
        cwd=root,
        env=scratch.environment(root),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as program:
        holder = int(fifo.read_text())
        listed = Path(f"/proc/{program.pid}/task/{program.pid}/children").read_text()
        program.send_signal(signal.SIGKILL)
    started = [int(each) for each in listed.split()]
    assert holder in started
    assert len(started) > 1
    assert [each for each in started if not scratch.ends(each)] == []


@pytest.mark.long
@pytest.mark.timeout(1500)
def test_a_package_that_got_slower_is_called(root: Path) -> None:
    sided.require(root, pace="2.0", torch="2.13.0")
    scratch.commit_all(root, "Take the new pace")
    ended = scratch.perfci(root, "gate", "--base", "HEAD~1")
    assert ended.returncode == 1, ended.stderr
    lines = ended.stdout.splitlines()
    assert lines[4].startswith("environment: torch 2.12.0 → 2.13.0, pace 1.0 → 2.0; each side")
    (row,) = [line for line in lines if line.endswith("▲ slower")][:1]
    assert row.split()[:2] == ["paced", "large"]
    assert "▲ slower · axpb/paced/large cpu/1" in lines
    assert "    another environment" in lines
    assert "the same code" not in ended.stdout
    before, after = sorted(_stored(root), key=lambda each: each.environment.torch)
    assert (before.environment.torch, after.environment.torch) == ("2.12.0", "2.13.0")
    assert before.pair == after.pair != ""


@pytest.mark.long
@pytest.mark.timeout(1500)
def test_a_version_that_changes_nothing_is_not_red(root: Path) -> None:
    sided.require(root, pace="2.1", torch="2.12.0")
    ended = scratch.perfci(root, "gate", "--base", "HEAD", "--budget", "2", "--json")
    assert ended.returncode == 0, ended.stderr
    (gate,) = json.loads(ended.stdout)["gates"]
    assert gate["environment_change"] == "pace 1.0 → 2.1"
    assert gate["changes"] == []
    (comparison,) = gate["comparisons"]
    assert comparison["verdict"] in ("unchanged", "inconclusive")  # as busy as the machine is
    assert comparison["paired_passes"] >= 6


@pytest.mark.long
@pytest.mark.timeout(1500)
def test_a_bisection_finds_the_commit_that_took_another_version(root: Path) -> None:
    (root / "README.md").write_text("A kernel.\n")
    scratch.commit_all(root, "Read me")
    sided.require(root, pace="2.1", torch="2.12.0")
    scratch.commit_all(root, "Take a pace that is as quick")
    sided.require(root, pace="2.0", torch="2.12.0")
    bad = scratch.commit_all(root, "Take the new pace")
    (root / "README.md").write_text("A kernel, and a package.\n")
    scratch.commit_all(root, "Say more")
    cell = ("--kernel", "axpb", "--variant", "paced", "--case", "large")
    ended = scratch.perfci(root, "bisect", "HEAD~4", "HEAD", *cell)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert f"The first bad commit is {bad}" in ended.stdout
    assert "    environment: pace 2.1 → 2.0" in ended.stdout


def test_a_bisection_skips_an_environment_that_neither_end_has(root: Path) -> None:
    scratch.write_kernel(root, plain__cpp=scratch.PLAIN)
    good = scratch.commit_all(root, "Write it in C")
    sided.require(root, pace="2.1", torch="2.12.0")
    scratch.commit_all(root, "Take another pace for a while")
    sided.require(root, pace="1.0", torch="2.12.0")
    scratch.write_kernel(root, plain__cpp=scratch.PLAIN.replace("+ b;", "- b;"))
    scratch.commit_all(root, "Take it back, and spoil the kernel")
    cell = ("--kernel", "axpb", "--variant", "plain", "--case", "one")
    ended = scratch.perfci(root, "bisect", good, "HEAD", *cell)
    assert ended.returncode == 8, ended.stdout + ended.stderr
    assert "it asks for an environment that neither end has" in ended.stdout
