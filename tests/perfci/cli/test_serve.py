"""perfci serve: a process that answers where it says, and one line where it cannot."""

import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
import scratch
from stores import make_store


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with a store without runs."""
    root = scratch.quick(tmp_path / "root")
    make_store(f"sqlite:///{root}/.perfci/history.db").close()
    return root


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_it_answers_at_the_address_it_prints_until_it_is_told_to_end(
    root: Path, by: signal.Signals
) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "perfci", "serve", "--port", "0"],
        cwd=root,
        env=scratch.environment(root),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as program:
        try:
            assert program.stdout is not None
            store = f"sqlite:///{root}/.perfci/history.db"
            said = program.stdout.readline()
            found = re.fullmatch(
                rf"dashboard of {store} at (http://\S+/) \(Ctrl-C ends it\)\n", said
            )
            assert found, said
            with urlopen(found[1]) as answer:
                assert "<title>perfci</title>" in answer.read().decode()
            program.send_signal(by)
            out, err = program.communicate()
        finally:
            program.kill()
    assert (program.returncode, out, err) == (0, "", "")


def test_a_port_that_is_taken_is_one_line(root: Path, call: Callable[..., Any]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        ended = call(root, "serve", "--port", str(number))
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == (
        f"perfci: cannot listen at 127.0.0.1:{number}: Address already in use; "
        "choose another with --port\n"
    )


def test_a_host_that_is_none_is_one_line(root: Path, call: Callable[..., Any]) -> None:
    ended = call(root, "serve", "--host", "192.0.2.1")
    assert (ended.code, ended.err.count("\n")) == (2, 1)
    assert "cannot listen at 192.0.2.1:8050: " in ended.err


def test_a_store_that_cannot_be_opened_is_told_before_anything_is_served(
    root: Path, call: Callable[..., Any]
) -> None:
    ended = call(root, "serve", "--store", "/proc/nowhere/history.db")
    assert (ended.code, ended.out) == (6, "")
    assert ended.err.startswith("perfci: ")
    assert ended.err.count("\n") == 1
