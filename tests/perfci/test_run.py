"""Rows of a run: what cannot be recorded costs the row it is in, not the run."""

import json
from pathlib import Path

import scratch

_FORGES = """\
import json
import os
import stat


METRICS = [["two words", 1.0, "", "lower"]]


def run(x, a, b):
    said = {"status": "passed", "message": "", "timings": [], "invalid": [], "metrics": METRICS}
    line = json.dumps(["done", 0, said]) + "\\n"
    for fd in range(3, 100):
        try:
            if stat.S_ISFIFO(os.fstat(fd).st_mode):
                os.write(fd, line.encode())
        except OSError:
            pass
    os._exit(0)
"""


def test_what_no_store_takes_costs_its_own_row(tmp_path: Path) -> None:
    root = scratch.quick(tmp_path / "root")
    scratch.write_kernel(root, forges__py=_FORGES)
    ended = scratch.perfci(root, "run", "--commit", "abcdef1", "--case", "one", "--json")
    (row,) = json.loads(ended.stdout)["measurements"]
    assert (ended.returncode, row["status"], row["metrics"]) == (1, "runtime_error", [])
    assert row["message"].startswith("cannot be recorded: metrics[0].name: 'two words' is no name")
