"""How far long work is: lines in a log, a bar on a terminal."""

import contextlib
import os
import pty
import re
import sys

import pytest

from perfci.progress import progress


def _on_terminal(monkeypatch: pytest.MonkeyPatch, *steps: tuple[str, int, int, str]) -> str:
    """What these steps write to standard error where that is a terminal."""
    screen, stderr = pty.openpty()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    with os.fdopen(stderr, "w") as terminal, monkeypatch.context() as patched:
        patched.setattr(sys, "stderr", terminal)
        with progress() as observer:
            for step in steps:
                observer.step(*step)
    written = b""
    with os.fdopen(screen, "rb", buffering=0) as reading, contextlib.suppress(OSError):
        while chunk := reading.read(1 << 16):  # an error once all has been read
            written += chunk
    return written.decode()


def test_a_log_has_a_line_for_each_quarter(capsys: pytest.CaptureFixture[str]) -> None:
    with progress() as observer:
        for done in range(1, 10):
            observer.step("build", done, 9, f"axpb/v{done}")
        observer.step("pass 1", 1, 1, "axpb/plain/one")
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.splitlines() == [
        "build: 3 of 9 (axpb/v3)",
        "build: 5 of 9 (axpb/v5)",
        "build: 7 of 9 (axpb/v7)",
        "build: 9 of 9 (axpb/v9)",
        "pass 1: 1 of 1 (axpb/plain/one)",
    ]


def test_a_phase_that_begins_again_is_told_again(capsys: pytest.CaptureFixture[str]) -> None:
    with progress() as observer:
        for _ in range(2):
            observer.step("pass 1", 1, 1, "axpb")
    assert capsys.readouterr().err == "pass 1: 1 of 1 (axpb)\n" * 2


def test_work_of_few_steps_has_a_line_for_each(capsys: pytest.CaptureFixture[str]) -> None:
    with progress() as observer:
        for done in (1, 2):
            observer.step("check", done, 2, "axpb")
    assert capsys.readouterr().err == "check: 1 of 2 (axpb)\ncheck: 2 of 2 (axpb)\n"


def test_a_terminal_has_a_bar_for_each_phase(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    screen = _on_terminal(
        monkeypatch,
        ("build", 2, 9, "axpb/plain"),
        ("pass 1", 1, 4, "axpb/plain/one"),
        ("build", 9, 9, "axpb/other"),
    )
    assert capsys.readouterr() == ("", "")
    lines = [re.sub(r"\x1b\[[\d;?]*\w", "", each).strip() for each in screen.splitlines()]
    bars = [each for each in lines if "━" in each]
    assert re.fullmatch(r"build +━{24} 9/9 0:00:\d\d axpb/other", bars[-2])
    assert re.fullmatch(r"pass 1 +[━╸╺ ]{24} 1/4 0:00:\d\d axpb/plain/one", bars[-1])


def test_a_label_is_shown_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "[/red]axpb[0]" in _on_terminal(monkeypatch, ("build", 1, 1, "[/red]axpb[0]"))
