"""Ctrl-C and a lost terminal: one line, whatever perfci is at, and what is complete is kept."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import scratch
from stores import make_store

_TELLS = """\
import os

with open("FOLDER/told", "w") as fifo:
    fifo.write(str(os.getpid()))


def run(x, a, b):
    return a * x + b
"""
_SLOW_TORCH = """\
import os

with open("FOLDER/told", "w") as fifo:
    fifo.write("importing")
open("FOLDER/go").read()
os._exit(0)
"""


def _started(root: Path, *arguments: str, **variables: str) -> "subprocess.Popen[str]":
    """The program in a session of its own, as at a terminal."""
    return subprocess.Popen(
        [sys.executable, "-m", "perfci", "run", "--commit", "abcdef1", "--case", "one", *arguments],
        cwd=root,
        env=scratch.environment(root, variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def test_ctrl_c_while_torch_is_imported_is_one_line(tmp_path: Path) -> None:
    root = scratch.quick(tmp_path / "root")
    make_store(f"sqlite:///{root}/.perfci/history.db").close()
    os.mkfifo(root / "told")
    os.mkfifo(root / "go")
    scratch.write_kernel(root, eager__py=scratch.EAGER)
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch/__init__.py").write_text(_SLOW_TORCH.replace("FOLDER", str(root)))
    with _started(root, PYTHONPATH=str(tmp_path)) as program:
        assert (root / "told").read_text() == "importing"
        os.killpg(program.pid, signal.SIGINT)
        program.wait()
        (root / "go").write_text("")
        _, err = program.communicate()
    assert program.returncode == 130
    assert err.strip().splitlines() == ["perfci: interrupted; nothing that was recorded is lost"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_what_is_complete_is_kept_when_told_to_end(tmp_path: Path, number: signal.Signals) -> None:
    root = scratch.quick(tmp_path / "root")
    os.mkfifo(root / "told")
    cases = scratch.CASES.replace('name = "one"', 'name = "one"\n').replace(
        "[[check]]", "[[bench]]"
    )
    scratch.write_kernel(root, cases__toml=cases, tells__py=_TELLS.replace("FOLDER", str(root)))
    with _started(root, "--passes", "1000", "--json") as program:
        for _ in range(3):
            (root / "told").read_text()
        program.send_signal(number)
        # Whoever writes to the pipe now waits for no reader.
        reader = os.open(root / "told", os.O_RDONLY | os.O_NONBLOCK)
        out, err = program.communicate()
        os.close(reader)
    assert program.returncode == 130
    assert re.search(r"of 1,000 passes (was complete and is|were complete and are) kept", err)
    (row,) = json.loads(out)["measurements"]
    assert row["status"] == "passed"
    assert len(row["passes"]) >= 1


def test_under_nohup_a_lost_terminal_is_nothing(tmp_path: Path) -> None:
    program = "import signal\nfrom perfci import __main__ as program\n"
    program += "signal.signal(signal.SIGHUP, signal.SIG_IGN)\nimport sys\nsys.argv = ['perfci']\n"
    program += "try:\n    program.main()\nexcept SystemExit:\n    pass\n"
    program += "print(signal.getsignal(signal.SIGHUP) is signal.SIG_IGN)"
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ended.stdout.endswith("True\n")
