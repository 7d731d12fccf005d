"""A command as a process of its own: its log, and the line that says why it failed."""

from pathlib import Path

import pytest
from stores import make_store

from perfci.ci import child
from perfci.ci.child import Ended, call, find_error


def test_what_a_command_says_is_kept_and_passed_on(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log"
    make_store(f"sqlite:///{tmp_path}/.perfci/history.db").close()
    ended = call(["history", "ls", "--json"], folder=tmp_path, log=log, trigger="t")
    assert (ended.code, log.read_text()) == (0, "[]\n")
    assert capfd.readouterr() == ("", "[]\n")
    ended = call(["nonsense"], folder=tmp_path, log=log, trigger="t")
    assert ended.code == 2
    assert "No such command 'nonsense'" in log.read_text()
    assert capfd.readouterr() == ("", log.read_text())


def test_a_folder_with_a_perfci_of_its_own_does_not_stand_in_for_it(tmp_path: Path) -> None:
    (tmp_path / "perfci.py").write_text("raise SystemExit(77)\n")
    log = tmp_path / "log"
    ended = call(["--version"], folder=tmp_path, log=log, trigger="t")
    assert (ended.code, "perfci, version" in log.read_text()) == (0, True)


@pytest.mark.parametrize(
    ("code", "text", "error"),
    [
        (0, "perfci: interrupted\n", ""),
        (1, "slower\n", ""),
        (3, "build: 1 of 1\nperfci: one\nperfci: two \x1b[31mred\n", "two �[31mred"),
        (9, "", ""),
        (137, "perfci: one\n", "ended by SIGKILL (out of memory?)"),
        (139, "", "ended by SIGSEGV"),
    ],
)
def test_the_line_that_says_why(tmp_path: Path, code: int, text: str, error: str) -> None:
    log = tmp_path / "log"
    log.write_text(text)
    assert find_error(log, Ended(code=code, duration_s=1.0)) == error


def test_of_a_log_that_was_filled_both_ends_are_kept(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("wb") as file:
        file.write(b"first\n")
        file.seek(3 * child._LARGEST_LOG_BYTES)
        file.write(b"perfci: last\n")
    child._cut(log)
    assert log.stat().st_size < child._LARGEST_LOG_BYTES + 1000
    kept = log.read_bytes()
    assert kept.startswith(b"first\n")
    assert b"cut here: the log was larger" in kept
    assert kept.endswith(b"perfci: last\n")
