"""A small elementwise kernel in a folder of its own: the least that a user has to write."""

import contextlib
import io
import json
import os
import select
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

from perfci import __main__ as program

REFERENCE = '''\
"""y = a * x + b, elementwise."""

import torch


def make_inputs(*, count, dtype, device, generator):
    x = torch.randn(count, dtype=dtype, device=device, generator=generator)
    return {"x": x, "a": 2.5, "b": -1.0}


def reference(x, a, b):
    return a * x + b


def bytes_moved(*, count, dtype):
    return 2 * count * dtype.itemsize


def flops(*, count):
    return 2 * count
'''
CASES = """\
[[bench]]
name = "large"
tier = "smoke"
count = 65536

[[check]]
name = "one"
tier = "smoke"
count = 1

[[check]]
name = "odd"
tier = "smoke"
count = 1001
"""
PLAIN = """\
#include <perfci.h>

extern "C" int perfci_run(const perfci_call *call) {
  const perfci_tensor *x = &call->inputs[0], *y = &call->outputs[0];
  if (x->dtype != PERFCI_FLOAT32) return perfci_fail(call, "x is not float32");
  const float a = (float)call->scalars[0].real, b = (float)call->scalars[1].real;
  for (int64_t i = 0; i < x->shape[0]; ++i)
    ((float *)y->data)[i] = a * ((const float *)x->data)[i * x->strides[0]] + b;
  return 0;
}
"""
CUDA = """\
#include <perfci_cuda.h>

__global__ void axpb(const float *x, float *y, float a, float b, int64_t count) {
  const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) y[i] = a * x[i] + b;
}

extern "C" int perfci_run(const perfci_call *call) {
  const perfci_tensor *x = &call->inputs[0];
  const int64_t count = x->shape[0];
  return perfci_launch(call, {(count + 255) / 256, 256, 0}, axpb, (const float *)x->data,
                       (float *)call->outputs[0].data, (float)call->scalars[0].real,
                       (float)call->scalars[1].real, count);
}
"""
EAGER = "def run(x, a, b):\n    return a * x + b\n"


def body(statement: str) -> str:
    """A C variant that does something else first; ``count``, ``x`` and ``y`` are at hand."""
    return PLAIN.replace(
        "  for (int64_t",
        "  const int64_t count = x->shape[0]; (void)count;\n" + statement + "\n  for (int64_t",
    )


def write_kernel(root: Path, name: str = "axpb", **files: str) -> Path:
    """Write ``kernels/<name>`` under a root; keyword ``plain__cpp="…"`` becomes plain.cpp."""
    folder = root / "kernels" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "reference.py").write_text(files.pop("reference__py", REFERENCE))
    (folder / "cases.toml").write_text(files.pop("cases__toml", CASES))
    for key, text in (files or {"plain__cpp": PLAIN}).items():
        path = folder / key.replace("__", ".").replace("wrong_", "wrong/", 1)
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return folder


def on_topic(root: Path) -> Path:
    """A repository with one kernel on main and a topic branch that is checked out."""
    write_kernel(quick(root))
    (root / ".gitignore").write_text(".perfci/\n")
    git(root, "init", "-q")
    commit_all(root, "one")
    git(root, "switch", "-q", "-c", "topic")
    return root


def quick(root: Path, **settings: object) -> Path:
    """Settings of a root that make a run quick, with more on top; returns the root."""
    quickest = {"cell_budget_s": 0.02, "passes": 1, "testbed": "scratch", "anchors": False}
    table = {**quickest, **settings}
    lines = [f"{key} = {json.dumps(value)}" for key, value in table.items()]
    root.mkdir(parents=True, exist_ok=True)
    (root / "pyproject.toml").write_text("\n".join(["[tool.perfci]", *lines, ""]))
    return root


def environment(root: Path, variables: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's variables without perfci's own, caches beside the root, and more on top."""
    own = ("PERFCI_", "PYTHONDONTWRITEBYTECODE")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(own)}
    return {**kept, "PERFCI_CACHE": str(root.parent / f"{root.name}-cache"), **(variables or {})}


def environment_with_perfci(
    root: Path, variables: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The same for a script that calls the program by its name, which is on the path."""
    program = put_program(root.parent / f"{root.name}-bin")
    path = f"{program.parent}:{os.environ['PATH']}"
    return {**environment(root, variables), "PATH": path}


def put_program(folder: Path) -> Path:
    """Put a program called perfci, which is the one under test, into a folder; where it is."""
    folder.mkdir()
    program = folder / "perfci"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m perfci "$@"\n')
    program.chmod(0o755)
    return program


def perfci(
    root: Path, *arguments: str | Path, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the program in a root, as a user would."""
    return subprocess.run(
        [sys.executable, "-m", "perfci", *map(str, arguments)],
        cwd=root,
        env=environment(root, variables),
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )


def call(
    root: Path, *arguments: str | Path, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """The same without a process of its own: for what is about neither it nor its variables.

    All workers are of one fork server, which imports torch once, with what was set then.
    """
    told, complained = io.StringIO(), io.StringIO()
    with (
        patch.dict(os.environ, environment(root, variables), clear=True),
        patch.object(sys, "argv", ["perfci", *map(str, arguments)]),
        contextlib.chdir(root),
        contextlib.redirect_stdout(told),
        contextlib.redirect_stderr(complained),
    ):
        code = program._run()
    return subprocess.CompletedProcess(sys.argv, code, told.getvalue(), complained.getvalue())


def ends(pid: int) -> bool:
    """Whether a process has ended, or does so soon."""
    try:
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([watched], [], [], 30)[0])
    finally:
        os.close(watched)


def rows(run: Mapping[str, Any]) -> dict[tuple[str, str], Any]:
    """The measurements of a run in JSON by variant and case."""
    return {(each["variant"], each["case"]): each for each in run["measurements"]}


def git(root: Path, *arguments: str) -> str:
    """Run git in a folder as a fixed author and return what it prints."""
    identity = ["-c", "user.name=Test", "-c", "user.email=test@example.org"]
    options = [*identity, "-c", "commit.gpgsign=false", "-c", "init.defaultBranch=main"]
    command = ["git", *options, *arguments]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def two_commits(root: Path) -> Path:
    """Make a repository of two commits with one kernel, quick to measure."""
    quick(root)
    write_kernel(root)
    git(root, "init", "-q")
    commit_all(root, "one")
    commit_all(root, "two")
    return root


def commit_all(root: Path, message: str) -> str:
    """Commit everything under a root and return the SHA."""
    git(root, "add", "-A")
    git(root, "commit", "-q", "--allow-empty", "-m", message)
    return git(root, "rev-parse", "HEAD")
