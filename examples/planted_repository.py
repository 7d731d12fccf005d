"""Make repositories with one bad commit, and see whether perfci names it.

Each has a small kernel of its own, of two variants. The other commits are what a project has: a
README, comments and names, which leave the code the same, and messages, which do not. Three are of
40 commits and need no GPU. The bad commit

* `slower`: takes 30 % longer everywhere;
* `one_case`: takes twice as long at one shape;
* `wrong`: is wrong at one shape.

One is of 12 commits and needs an NVIDIA GPU:

* `compensated`: compensates a carry for what rounding loses, which takes a few percent longer.

    python examples/planted_repository.py make slower /tmp/planted
    python examples/planted_repository.py gate slower /tmp/planted --harmless 20
    python examples/planted_repository.py bisect slower /tmp/planted

`gate` makes the repository where there is none, runs `perfci gate` over the bad commit and over so
many harmless ones, each against its first parent, and exits with 0 only if the bad one alone, and
in the right cells, was called. `bisect` runs `perfci bisect` over all commits for one of the
cells, and exits with 0 only if it finds the bad one.
"""

import argparse
import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

START = 1_767_268_800
RED = ("regression", "incorrect", "missing", "incomparable")

CPU_SETTINGS = """\
[tool.perfci]
testbed = "planted"
anchors = false
cell_budget_s = 0.1
"""
GPU_SETTINGS = """\
[tool.perfci]
testbed = "planted"
threshold = 0.005
"""
REFERENCE = '''\
"""Running sums along the last axis of x."""

import torch


def make_inputs(*, rows, columns, dtype, device, generator):
    return {"x": torch.randn(rows, columns, dtype=dtype, device=device, generator=generator)}


def reference(x):
    return x.cumsum(-1)


def magnitude(x):
    return x.abs().cumsum(-1)


def depth(*, columns):
    return columns


def bytes_moved(*, rows, columns, dtype):
    return 2 * rows * columns * dtype.itemsize


def flops(*, rows, columns):
    return rows * columns
'''
CPU_CASES = """\
[[bench]]
name = "wide"
tier = "smoke"
rows = 16
columns = 4096

[[bench]]
name = "tall"
tier = "smoke"
rows = 1024
columns = 64

[[bench]]
name = "square"
tier = "smoke"
rows = 256
columns = 256
"""
GPU_CASES = """\
[[bench]]
name = "wide"
tier = "smoke"
rows = 128
columns = 4096

[[bench]]
name = "many"
tier = "smoke"
rows = 1056
columns = 4096
"""
CPU_VARIANT = """\
#include <perfci.h>

// {comment}
static double {step}(double sum, float value) {{ return sum + value; }}

static void wait(int64_t turns) {{
  for (volatile int64_t turn = 0; turn < turns; turn = turn + 1) {{
  }}
}}

extern "C" int perfci_run(const perfci_call *call) {{
  const perfci_tensor *x = &call->inputs[0], *y = &call->outputs[0];
  if (x->dtype != PERFCI_FLOAT32) return perfci_fail(call, "{refusal}");
  const int64_t rows = x->shape[0], columns = x->shape[1];
  for (int64_t row = 0; row < rows; ++row) {{
    const float *in = (const float *)x->data + row * x->strides[0];
    float *out = (float *)y->data + row * columns;
    double sum = 0.0;
    for (int64_t column = 0; column < {bound}; ++column)
      out[column] = (float)(sum = {step}(sum, in[column * x->strides[1]]));
  }}
  wait({turns});
  return 0;
}}
"""
GPU_VARIANT = """\
#include <perfci_cuda.h>

constexpr int kThreads = 256, kWarps = kThreads / 32;

// {comment}
static __device__ float {step}(float sum) {{
  const int lane = threadIdx.x % 32;
  for (int reach = 1; reach < 32; reach *= 2) {{
    const float before = __shfl_up_sync(~0u, sum, reach);
    if (lane >= reach) sum += before;
  }}
  return sum;
}}

__global__ void __launch_bounds__(kThreads)
    running_sums(const float *x, float *y, int columns, int64_t row_stride, int64_t stride) {{
  __shared__ float totals[kWarps];
  const int warp = threadIdx.x / 32;
  const float *in = x + blockIdx.x * row_stride;
  float *out = y + (int64_t)blockIdx.x * columns;
  float carry = 0.0f;{kept}
  for (int start = 0; start < columns; start += kThreads) {{
    const int column = start + threadIdx.x;
    const float sum = {step}(column < columns ? in[column * stride] : 0.0f);
    if (threadIdx.x % 32 == 31) totals[warp] = sum;
    __syncthreads();
    float before = carry, total = 0.0f;
    for (int other = 0; other < kWarps; ++other) {{
      if (other < warp) before += totals[other];
      total += totals[other];
    }}
    {carry}
    if (column < columns) out[column] = before + sum;
    __syncthreads();
  }}
}}

extern "C" int perfci_run(const perfci_call *call) {{
  const perfci_tensor *x = &call->inputs[0], *y = &call->outputs[0];
  if (x->dtype != PERFCI_FLOAT32) return perfci_fail(call, "{refusal}");
  return perfci_launch(call, {{x->shape[0], kThreads}}, running_sums, (const float *)x->data,
                       (float *)y->data, (int)x->shape[1], x->strides[0], x->strides[1]);
}}
"""
COMPENSATED = """\
const float more = total - lost, next = carry + more;
    lost = (next - carry) - more;
    carry = next;"""
NAMES = ("add", "accumulate", "step", "advance", "onward")
COMMENTS = (
    "Sums are kept in float64.",
    "One row after the other.",
    "The sum so far, and one value more.",
    "Rows do not depend on each other.",
)


@dataclass(frozen=True, kw_only=True)
class Source:
    """What a variant is written from; each template takes what it has a place for."""

    comment: str = COMMENTS[0]
    step: str = NAMES[0]
    bound: str = "columns"
    turns: str = "rows * columns"
    kept: str = ""
    carry: str = "carry += total;"
    refusal: str = "x is not float32"


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A repository: how many commits, which of them is bad (the first is 1), and in what.

    ``verdict`` is the one on the bad commit, at ``cases``.
    """

    planted: Mapping[str, str]
    verdict: str
    cases: Sequence[str]
    commits: int = 40
    bad: int = 27
    device: str = "cpu"
    suffix: str = ".cpp"
    settings: str = CPU_SETTINGS
    all_cases: str = CPU_CASES
    template: str = CPU_VARIANT

    def write(self, source: Source) -> str:
        """The text of a variant."""
        return self.template.format(**asdict(source))


KINDS: Mapping[str, Kind] = {
    "slower": Kind(
        planted={"turns": "rows * columns * 11 / 5"},
        verdict="regression",
        cases=("square", "tall", "wide"),
    ),
    "one_case": Kind(
        planted={"turns": "rows == 1024 ? rows * columns * 5 : rows * columns"},
        verdict="regression",
        cases=("tall",),
    ),
    "wrong": Kind(
        planted={"bound": "columns - (rows == columns)"}, verdict="incorrect", cases=("square",)
    ),
    "compensated": Kind(
        planted={"kept": "\n  float lost = 0.0f;", "carry": COMPENSATED},
        verdict="regression",
        cases=("many", "wide"),
        commits=12,
        bad=8,
        device="0",
        suffix=".cu",
        settings=GPU_SETTINGS,
        all_cases=GPU_CASES,
        template=GPU_VARIANT,
    ),
}


def main() -> None:
    """Do what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("act", choices=("make", "gate", "bisect"))
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--harmless", type=int, default=20, metavar="N")
    parser.add_argument("--budget", type=float, default=10.0, metavar="MINUTES")
    asked = parser.parse_args()
    kind = KINDS[asked.kind]
    if asked.act == "make" or not asked.folder.exists():
        make(kind, asked.folder)
    if asked.act == "gate":
        sys.exit(int(not gate_all(kind, asked.folder, asked.harmless, asked.budget)))
    if asked.act == "bisect":
        sys.exit(int(not bisect(kind, asked.folder)))


def make(kind: Kind, folder: Path) -> None:
    """Make the repository of a kind in a new folder."""
    kernel = folder / "kernels/running_sum"
    kernel.mkdir(parents=True)
    _git(folder, 0, "init", "--quiet", "--initial-branch=main")
    for path, text in (
        (folder / "pyproject.toml", kind.settings),
        (folder / ".gitignore", ".perfci/\n"),
        (kernel / "reference.py", REFERENCE),
        (kernel / "cases.toml", kind.all_cases),
        (kernel / f"other{kind.suffix}", kind.write(Source(comment="Kept as it is."))),
    ):
        path.write_text(text, encoding="utf-8")
    for number, (message, text, source) in enumerate(_history(kind), 1):
        (folder / "README.md").write_text(text, encoding="utf-8")
        (kernel / f"plain{kind.suffix}").write_text(kind.write(source), encoding="utf-8")
        _git(folder, number, "add", "--all")
        _git(folder, number, "commit", "--quiet", "--message", message)


def _history(kind: Kind) -> Iterator[tuple[str, str, Source]]:
    """The message, the README and the variant of each commit."""
    source = Source()
    readme = "# Running sums\n"
    yield "Add running sums", readme, source
    for number in range(2, kind.commits + 1):
        if number == kind.bad:
            source = replace(source, **kind.planted)
            yield "Tidy the loop", readme, source
            continue
        turn = number % 4
        if turn == 0:
            readme += f"\nNote {number}.\n"
            yield "Say more in the README", readme, source
        elif turn == 1:
            comment = f"{COMMENTS[number % len(COMMENTS)]} ({number})"
            source = replace(source, comment=comment)
            yield "Reword a comment", readme, source
        elif turn == 2:
            source = replace(source, step=NAMES[number % len(NAMES)])
            yield "Rename the step", readme, source
        else:
            source = replace(source, refusal=f"x is not float32 but something else ({number})")
            yield "Reword a refusal", readme, source


def gate_all(kind: Kind, folder: Path, harmless: int, budget_min: float) -> bool:
    """Gate the bad commit and some others; whether the bad one alone was called, and rightly."""
    shas = _git(folder, 0, "rev-list", "--reverse", "main").split()
    others = [number for number in range(2, kind.commits + 1) if number != kind.bad]
    chosen = random.Random(0).sample(others, min(harmless, len(others)))  # noqa: S311
    mistakes = 0
    for number in (kind.bad, *sorted(chosen)):
        start_s = time.monotonic()
        gate = _gate(kind, folder, (shas[number - 2], shas[number - 1]), budget_min)
        called = sorted(_called(gate))
        is_right = called == (_expected(kind) if number == kind.bad else [])
        mistakes += not is_right
        print(
            f"{'right' if is_right else 'WRONG'}  commit {number:2}  {gate['passes']:2} passes  "
            f"{time.monotonic() - start_s:6.1f} s  {', '.join(map('/'.join, called)) or '-'}",
            flush=True,
        )
    print(f"{mistakes} mistakes in {len(chosen) + 1} gates")
    return mistakes == 0


def bisect(kind: Kind, folder: Path) -> bool:
    """Look for the bad commit among all; whether it was found."""
    shas = _git(folder, 0, "rev-list", "--reverse", "main").split()
    cell = ["--kernel", "running_sum", "--variant", "plain", "--case", kind.cases[0]]
    command = [sys.executable, "-m", "perfci", "bisect", shas[0], shas[-1], "--json"]
    done = subprocess.run(
        [*command, *cell, "--device", kind.device],
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    told: dict[str, Any] = json.loads(done.stdout)
    found = [shas.index(each["sha"]) + 1 for each in told["suspects"]]
    is_right = (done.returncode, found) == (0, [kind.bad])
    print(
        f"{'right' if is_right else 'WRONG'}  {told['ending']}, commit "
        f"{', '.join(map(str, found))} of {told['count'] + 1}, {len(told['steps'])} steps, "
        f"{told['passes']} passes, {told['spent_s']:.0f} s, confidence {told['confidence']:.4f}"
    )
    return is_right


def _expected(kind: Kind) -> list[tuple[str, str, str]]:
    return sorted((kind.verdict, "plain", case) for case in kind.cases)


def _called(gate: Mapping[str, Any]) -> set[tuple[str, str, str]]:
    return {
        (each["verdict"], each["key"]["variant"], each["key"]["case"])
        for each in gate["comparisons"]
        if each["verdict"] in RED
    }


def _gate(kind: Kind, folder: Path, ends: tuple[str, str], budget_min: float) -> dict[str, Any]:
    base, head = ends
    command = [sys.executable, "-m", "perfci", "gate", "--base", base, "--head", head, "--json"]
    options = ["--device", kind.device, "--budget", f"{budget_min:g}"]
    done = subprocess.run(
        [*command, *options], cwd=folder, stdout=subprocess.PIPE, text=True, check=False
    )
    gates: list[dict[str, Any]] = json.loads(done.stdout)["gates"]
    return gates[0]


def _git(folder: Path, number: int, *arguments: str) -> str:
    """Run git with nothing of the user's in it, so that the SHAs are always the same."""
    settings = ("user.name=perfci", "user.email=perfci@example.org", "commit.gpgsign=false")
    options = [word for setting in settings for word in ("-c", setting)]
    date = f"{START + 3600 * number} +0000"
    command = ["env", f"GIT_AUTHOR_DATE={date}", f"GIT_COMMITTER_DATE={date}", "git", *options]
    done = subprocess.run(
        [*command, *arguments], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


if __name__ == "__main__":
    main()
