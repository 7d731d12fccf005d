"""Kernels that misbehave in every way, all in one run: each is a row, and nothing else suffers."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import scratch

_CASES = """\
[[bench]]
name = "large"
tier = "smoke"
count = 4096
"""
_SUBCLASS = """\
import torch


class Lazy(torch.Tensor):
    pass


def run(x, a, b):
    return (a * x + b).as_subclass(Lazy)
"""
_STALE = """\
kept = {}


def run(x, a, b):
    return kept.setdefault(x.shape, a * x + b)
"""
_FORKS = """\
import os
import signal
import sys


def run(x, a, b):
    heard, told = os.pipe()
    if os.fork() == 0:
        with open("FOLDER/forked", "a") as file:
            file.write(f"{os.getpid()}\\n")
        os.write(told, b"!")
        while True:
            sys.stderr.write("still here\\n")
    os.read(heard, 1)
    os._exit(3)
"""
_PIPE = """\
import os
import stat


def run(x, a, b):
    for fd in range(3, 100):
        try:
            if stat.S_ISFIFO(os.fstat(fd).st_mode):
                os.write(fd, GARBAGE)
        except OSError:
            pass
    ENDING
"""
_RIGHT = "return a * x + b"
_HANG = "while True: pass"


def _pipe(garbage: str, ending: str = _RIGHT) -> str:
    return _PIPE.replace("GARBAGE", garbage).replace("ENDING", ending)


def _python(statement: str) -> str:
    return f"import os, sys, time, torch\n\n\ndef run(x, a, b):\n    {statement}\n"


BAD: dict[str, tuple[str, str, str]] = {
    "compiles_not.cpp": ("int perfci_run(\n", "build_failed", "error: "),
    "entry_missing.cpp": ("int other() { return 0; }\n", "build_failed", "defines no perfci_run"),
    "refuses.cpp": (
        scratch.body('return perfci_fail(call, "count is %d", (int)count);'),
        "runtime_error",
        "^count is 4096$",
    ),
    "fails_silently.cpp": (scratch.body("return 7;"), "runtime_error", "without saying why"),
    "faults.cpp": (scratch.body("*(volatile int *)8 = 1;"), "runtime_error", "SIGSEGV"),
    "aborts.cpp": (
        "#include <cstdlib>\n" + scratch.body('fputs("\\033[31mno luck", stderr); abort();'),
        "runtime_error",
        "^killed by SIGABRT: .*no luck$",
    ),
    "exits.cpp": (
        "#include <cstdlib>\n" + scratch.body("exit(0);"),
        "runtime_error",
        "exited with code 0",
    ),
    "writes_half.cpp": (
        scratch.PLAIN.replace("i < x->shape[0]", "i < x->shape[0] / 2"),
        "wrong_values",
        r"NaN where the reference has none.*\(outputs are filled with NaN before each call\)$",
    ),
    "changes_input.cpp": (
        scratch.PLAIN.replace("  return 0;", "  ((float *)x->data)[0] += 1;\n  return 0;"),
        "wrong_values",
        "^changes its input 'x'$",
    ),
    "overruns.cpp": (
        scratch.PLAIN.replace("  return 0;", "  ((float *)y->data)[x->shape[0]] = 1;\n  return 0;"),
        "wrong_values",
        "^writes outside of its output$",
    ),
    "zeros.py": (_python("return torch.zeros_like(x)"), "wrong_values", "above its bound"),
    "not_a_number.py": (_python("return x * float('nan')"), "wrong_values", "^NaN where"),
    "other_shape.py": (_python("return (a * x + b)[None]"), "wrong_shape", "returned shape"),
    "broadcasts.py": (_python("return (a * x + b)[:0]"), "wrong_shape", "returned shape"),
    "other_dtype.py": (_python("return (a * x + b).double()"), "wrong_dtype", "float64"),
    "two_outputs.py": (_python("return a * x + b, x"), "wrong_shape", "returned 2, not 1"),
    "nothing.py": (_python("return None"), "wrong_shape", "returned NoneType, not 1"),
    "subclass.py": (_SUBCLASS, "wrong_shape", "returned a Lazy, not a plain tensor"),
    "stale.py": (_STALE, "wrong_values", "above its bound"),
    "resizes_input.py": (
        _python("y = a * x + b; x.resize_(3); return y"),
        "wrong_values",
        "^changes its input 'x'$",
    ),
    "raises.py": (
        _python("raise ValueError('no\\nway')"),
        "runtime_error",
        "^ValueError: no \\(raises.py:",
    ),
    "raises_much.py": (_python("raise ValueError('x' * 10**7)"), "runtime_error", "ValueError: xx"),
    "exits_python.py": (_python("sys.exit('gone')"), "runtime_error", "exited with code 1: gone"),
    "interrupts.py": (_python("raise KeyboardInterrupt"), "runtime_error", "exited with code 1"),
    "import_fails.py": ("import nowhere\n", "build_failed", "^cannot be loaded: ModuleNotFound"),
    "runs_not.py": ("walk = 1\n", "build_failed", "has no function 'run'"),
    "syntax.py": ("def run(\n", "build_failed", "^cannot be loaded: SyntaxError"),
    "exhausts.py": (
        _python("return [torch.empty(1 << 26) for _ in range(64)]"),
        "runtime_error",
        "memory",
    ),
    "forks.py": (_FORKS, "runtime_error", "exited with code 3"),
    "pipe_text.py": (_pipe("b'hello\\n'"), "runtime_error", "pipe was written to"),
    "pipe_number.py": (_pipe("b'5\\n'"), "runtime_error", "pipe was written to"),
    "pipe_deep.py": (_pipe("b'[' * 50000 + b'\\n'"), "runtime_error", "pipe was written to"),
    "pipe_length.py": (
        _pipe("b'\\x00\\x10\\x00\\x00'", "os._exit(4)"),
        "runtime_error",
        "exited with code 4",
    ),
    "pipe_again.py": (
        _pipe('b"".join(b\'["start", %d, null]\\n\' % n for n in range(200))', _HANG),
        "runtime_error",
        "out of turn",
    ),
    "pipe_flood.py": (
        _pipe("b'x' * 10**6").replace("os.write(fd", "while True: os.write(fd"),
        "runtime_error",
        "too long",
    ),
    "pipe_forged.py": (
        _pipe(
            'b"".join(b\'["done", %d, {"status": "passed", "message": "", "metrics": [], '
            '"timings": [], "invalid": [], "launches": [], "identity": []}]\\n\' % n '
            "for n in range(200))",
            _HANG,
        ),
        "runtime_error",
        "other figures|out of turn",
    ),
}
HANGING = {
    "hangs.cpp": scratch.body("for (volatile int i = 0;; i = 1) {}"),
    "pipe_half.py": _pipe("b'[\"done\", '", _HANG),
}
GOOD = {
    "plain.cpp": scratch.PLAIN,
    "eager.py": scratch.EAGER,
    "prints.py": _python("print('x' * 100, flush=True); return a * x + b"),
    "prints_much.cpp": scratch.body(
        "static char line[1 << 16];\n"
        "  if (!line[0]) {\n"
        "    for (char &c : line) c = 'x';\n"
        "    for (int i = 0; i < 1600; ++i) fwrite(line, 1, sizeof line, stdout);\n"
        "  }"
    ),
}


class Ended:
    """What became of the run: its exit, its rows, and what lies in its root."""

    def __init__(self, root: Path, sources: Mapping[str, str], **settings: float) -> None:
        self.root = scratch.quick(root, **settings)
        files = {
            name.replace(".", "__"): text.replace("FOLDER", str(root))
            for name, text in sources.items()
        }
        scratch.write_kernel(root, cases__toml=_CASES, **files)
        scratch.write_kernel(root, "other", lone__cpp=scratch.PLAIN)
        self.program = scratch.perfci(root, "run", "--json", "--commit", "abcdef1")
        self.run: dict[str, Any] = json.loads(self.program.stdout)
        self.rows = {
            key: row for key, row in scratch.rows(self.run).items() if row["kernel"] == "axpb"
        }


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    sources = {name: source for name, (source, _, _) in BAD.items()} | GOOD
    folder = tmp_path_factory.mktemp("hostile")
    return Ended(folder / "root", sources, timeout_s=25.0, memory_limit_gib=3.0)


@pytest.fixture(scope="module")
def hung(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """Kernels that hang, by themselves: each costs all the time that one is given."""
    folder = tmp_path_factory.mktemp("hanging")
    return Ended(folder / "root", HANGING, timeout_s=5.0)


@pytest.mark.parametrize("file", BAD)
def test_a_kernel_that_misbehaves_is_a_row_with_its_reason(ended: Ended, file: str) -> None:
    _, status, message = BAD[file]
    row = ended.rows[file.partition(".")[0], "large"]
    assert (row["status"], row["passes"]) == (status, [])
    assert re.search(message, row["message"]), row["message"]
    assert len(row["message"]) <= 4100
    assert row["message"].isprintable() or status == "build_failed"


@pytest.mark.parametrize("file", HANGING)
def test_a_kernel_that_hangs_is_a_row_and_its_time_is_up(hung: Ended, file: str) -> None:
    row = hung.rows[file.partition(".")[0], "large"]
    assert (row["status"], row["passes"]) == ("timeout", [])
    assert row["message"] == "no answer within 5 s"


@pytest.mark.parametrize("file", GOOD)
def test_the_others_are_measured_all_the_same(ended: Ended, file: str) -> None:
    row = ended.rows[file.partition(".")[0], "large"]
    assert row["status"] == "passed"
    assert [len(each["samples_ns"]) > 0 for each in row["passes"]] == [True]


@pytest.mark.parametrize("beside", ["ended", "hung"])
def test_the_other_kernel_is_measured_all_the_same(
    request: pytest.FixtureRequest, beside: str
) -> None:
    run = request.getfixturevalue(beside).run
    others = [row for row in run["measurements"] if row["kernel"] == "other"]
    assert [(row["case"], row["status"]) for row in others] == [
        ("large", "passed"),
        ("one", "passed"),
        ("odd", "passed"),
    ]


def test_no_cell_is_lost(ended: Ended) -> None:
    assert len(ended.rows) == len(BAD) + len(GOOD)
    assert ended.program.returncode == 1
    assert "Traceback" not in ended.program.stderr
    assert "resource_tracker" not in ended.program.stderr


def test_what_a_kernel_prints_is_not_among_what_perfci_prints(ended: Ended) -> None:
    assert "still here" not in ended.program.stderr
    assert "xxxx" not in ended.program.stderr


def test_what_a_kernel_forks_does_not_outlive_it(ended: Ended) -> None:
    pids = [int(line) for line in (ended.root / "forked").read_text().split()]
    assert pids
    assert [pid for pid in pids if not scratch.ends(pid)] == []


def test_the_run_is_recorded_and_shown(ended: Ended) -> None:
    shown = scratch.perfci(ended.root, "show", "abcdef1", "--json")
    assert shown.returncode == 0
    assert json.loads(shown.stdout) == ended.run
    table = scratch.perfci(ended.root, "show", "abcdef1")
    assert table.returncode == 0
    assert "SIGSEGV" in table.stdout


_BLOCKS = """\
import os
import signal


def run(x, a, b):
    with open("FOLDER/told", "w") as fifo:
        fifo.write(str(os.getpid()))
    signal.pause()
"""


def test_no_worker_outlives_perfci(tmp_path: Path) -> None:
    root = scratch.quick(tmp_path / "root")
    os.mkfifo(root / "told")
    scratch.write_kernel(root, blocks__py=_BLOCKS.replace("FOLDER", str(root)))
    with subprocess.Popen(
        [sys.executable, "-m", "perfci", "run", "--commit", "abcdef1", "--case", "one"],
        cwd=root,
        env=scratch.environment(root),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as program:
        worker = int((root / "told").read_text())
        program.send_signal(signal.SIGKILL)
    assert scratch.ends(worker)
