"""What tests of several folders share."""

import contextlib
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import scratch

from perfci import __main__ as program

# Tests in parallel have no more cores than there are: with as many threads each, an operation of
# PyTorch takes a time slice of the system, which is a thousand times what it costs.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Where the tests were started in the background, Ctrl-C is ignored, and so it would be by every
# program that they start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No test waits on a clock, and an example that a busy machine is slow with is no counter-example.
with contextlib.suppress(ImportError):  # a machine with a GPU may lack it
    import hypothesis

    hypothesis.settings.register_profile("perfci", deadline=None)
    hypothesis.settings.load_profile("perfci")


@dataclass(frozen=True)
class Ended:
    """How a command of perfci ended, run inside of this process."""

    code: int
    out: str
    err: str


_PIPELINE = ("ACTIONS_", "CI_", "GITHUB_", "GITLAB_")


@pytest.fixture(autouse=True)
def outside_of_a_pipeline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the pipeline that these tests may run in."""
    for name in [each for each in os.environ if each.startswith(_PIPELINE)]:
        monkeypatch.delenv(name)


@pytest.fixture
def call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Ended]:
    """Run the program in a root without a process of its own: for what starts no worker."""

    def ended(root: Path, *arguments: str | Path, **variables: str) -> Ended:
        for name, value in scratch.environment(root, variables).items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(root)
        monkeypatch.setattr(sys, "argv", ["perfci", *map(str, arguments)])
        capsys.readouterr()
        code = program._run()
        return Ended(code, *capsys.readouterr())

    return ended
