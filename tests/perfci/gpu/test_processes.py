"""Whose a process is: real processes, started and left behind."""

import os
import subprocess
import sys

from perfci.gpu.processes import Household, count_others

_STARTS_ANOTHER = """\
import subprocess, sys
child = subprocess.Popen(["sleep", "60"])
print(child.pid, flush=True)
sys.stdin.read()
child.kill()
"""


def test_ours_are_we_those_that_started_us_and_all_that_we_have_started() -> None:
    household = Household()
    assert household.is_ours(os.getpid())
    assert household.is_ours(os.getppid())
    command = [sys.executable, "-c", _STARTS_ANOTHER]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        grandchild = int(child.stdout.readline())
        assert household.is_ours(child.pid)
        assert household.is_ours(grandchild)
        child.communicate("")
    assert household.is_ours(grandchild)  # it is gone, and may still be listed


def test_others_are_not() -> None:
    with subprocess.Popen(["sleep", "60"]) as one:
        script = (
            f"from perfci.gpu.processes import Household\nprint(Household().is_ours({one.pid}))"
        )
        ended = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        )
        one.kill()
    assert ended.stdout == "False\n"
    assert not Household().is_ours(1 << 22)


def test_others_are_counted_where_one_of_ours_is_in_the_list() -> None:
    ours = {1, 2}.__contains__
    assert count_others([1, 7, 2, 8], ours) == 2
    assert count_others([1], ours) == 0
    assert count_others([7, 8], ours) is None
    assert count_others([], ours) is None
    assert count_others(None, ours) is None
