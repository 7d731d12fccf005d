"""Doubles of NVIDIA's tools, which need a GPU: small programs that print what the real ones do.

Each reads from a table what the variant that it is to watch would do at a case. What they print is
taken from the tools' documentation and, where they say nothing of a GPU, from compute-sanitizer
2025.3.1 itself.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from perfci.build import Build, build
from perfci.config import Config, load_config
from perfci.device import cpu
from perfci.kernel import Kernel, discover
from perfci.plan import Target
from perfci.selection import Cell, Selection, select, variants_of

CPU = Target(name="cpu", device=cpu())
MEMCHECK = """\
========= Invalid __global__ read of size 4 bytes
=========     at axpb(const float *, float *)+0x100 in axpb.cu:39
=========     by thread (0,0,0) in block (1,0,0)
=========     Address 0x7cc43a800400 is out of bounds
=========     and is 1 bytes after the nearest allocation at 0x7cc43a800000 of size 1,024 bytes
=========         Device Frame: axpb(const float *, float *)+0x30 in axpb.cu:44
=========
"""
NOT_SUPPORTED = (
    'Device not supported. Please refer to the "Supported Devices" section of the sanitizer '
    "documentation"
)
RAW_CSV = """\
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size",\
"Grid Size","Device","CC","dram__throughput.avg.pct_of_peak_sustained_elapsed",\
"gpu__time_duration.sum","launch__registers_per_thread",\
"lts__throughput.avg.pct_of_peak_sustained_elapsed",\
"sm__throughput.avg.pct_of_peak_sustained_elapsed",\
"sm__warps_active.avg.pct_of_peak_sustained_active",\
"smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio",\
"smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio",\
"smsp__average_warps_issue_stalled_selected_per_issue_active.ratio"
"","","","","","","","","","","","%","ns","register/thread","%","%","%","inst","inst","inst"
"0","108","python3","127.0.0.1","axpb","1","7","(256, 1, 1)","(4, 1, 1)","0","9.0","12.34",\
"3,712.00","40","0.52","3.1","24.8","0.50","2.50","1.00"
"1","108","python3","127.0.0.1","finish","1","7","(256, 1, 1)","(4, 1, 1)","0","9.0","n/a",\
"1,024.00","16","0.1","","","","",""
"""

_PRELUDE = """\
#!{python}
import json, os, pathlib, signal, subprocess, sys, time

TABLE = json.loads({table!r})
words = sys.argv[1:]
program = words[words.index({python!r}):] if {python!r} in words else []
plan = json.loads(pathlib.Path(program[-1]).read_text()) if program else {{}}
acts = TABLE["acts"].get(plan.get("variant"), {{}})


def say(line):
    print(line, flush=True)


def tell(**said):
    say("perfci call: " + json.dumps(said))


def act_out(case):
    tell(case=case, ending=None, message="")
    act = acts.get(case, "called")
    if act == "exits":
        say("Killed")
        sys.exit(finish(1))
    if act == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    if act == "claims":
        say("========= ERROR SUMMARY: 0 errors")
    if act == "hangs":
        say("Timeout (0:00:01)!")
        sys.exit(finish(1))
    ending = act if act in ("refused", "raised") else "called"
    tell(case=case, ending=ending, message="" if ending == "called" else "x must be contiguous")

"""
_SANITIZER = (
    _PRELUDE
    + """\
tool = words[words.index("--tool") + 1]
say("========= COMPUTE-SANITIZER")
if TABLE["unusable"]:
    say("========= Error: " + TABLE["unusable"])
    say("========= ")
    say("========= ERROR SUMMARY: 2 errors")
    sys.exit(86)
count = 0


def finish(code):
    if code:
        say("========= Error: process didn't terminate successfully")
        say("========= Target application returned an error")
    if TABLE["silent"] or ("unsummed" in acts.values() and len(plan["cases"]) > 1):
        return 255
    if tool == "racecheck":
        sums = f"{{count}} hazards displayed ({{count}} errors, 0 warnings)"
        say("========= RACECHECK SUMMARY: " + sums)
    else:
        say(f"========= ERROR SUMMARY: {{count}} error{{'' if count == 1 else 's'}}")
    return code or (86 if count else 0)


if TABLE["real"]:
    sys.exit(finish(subprocess.run(program).returncode))
for case in plan["cases"]:
    found = acts.get(case) == tool or (acts.get(case) == "together" and len(plan["cases"]) > 1)
    if found:
        print(TABLE["finding"], end="", flush=True)
        count += 2
    act_out(case)
    if found:
        sys.exit(finish(0))
tell(end=True)
sys.exit(finish(0) or TABLE["code"])
"""
)
_PROFILER = (
    _PRELUDE
    + """\
def finish(code):
    say(f"==ERROR== The application returned an error code ({{code}}).")
    return code


if "--import" in words:
    print(TABLE["csv"], end="")
    sys.exit(0)
say("==PROF== Connected to process 108 (/usr/bin/python3)")
if TABLE["unusable"]:
    say("")
    for line in TABLE["unusable"]:
        say("==ERROR== " + line)
    sys.exit(9)
if TABLE["complaint"]:
    say("==ERROR== " + TABLE["complaint"])
for case in plan["cases"]:
    act_out(case)
    if acts.get(case, "called") == "called":
        report = words[words.index("--export") + 1].replace("%%", "%")
        pathlib.Path(report).write_bytes(b"report")
        say("==PROF== Disconnected from process 108")
    else:
        say("==WARNING== No kernels were profiled.")
tell(end=True)
"""
)

Acts = Mapping[str, Mapping[str, str]]
"""Variant → case → what happens there: called, refused, raised, exits, hangs, a tool's name.

What is ``idle`` launches nothing. What ``dies`` is the tool, what ``claims`` prints a clean sum
that is not the tool's, what is ``unsummed`` has no sum where it is called with other cases.
"""


@dataclass(frozen=True)
class Workplace:
    """A root with a kernel, built for the CPU."""

    config: Config
    kernel: Kernel
    cells: list[Cell]
    builds: list[Build]


def workplace(root: Path, *cases: str) -> Workplace:
    """Build all variants of a root's only kernel, to be called at some of its cases."""
    config = load_config(root, environment={"PERFCI_CACHE": str(root.parent / "cache")})
    (kernel,) = discover(config.kernels)
    cells = select([kernel], Selection(cases=cases), "cpu")
    return Workplace(config, kernel, cells, build(variants_of(cells), config))


def write_sanitizer(
    folder: Path,
    acts: Acts | None = None,
    *,
    unusable: str = "",
    silent: bool = False,
    finding: str = MEMCHECK,
    code: int = 0,
) -> str:
    """Write a double of compute-sanitizer; without acts it runs the program that it is given.

    It ends with ``code`` where it would end with 0.
    """
    table = {
        "acts": acts or {},
        "real": acts is None,
        "unusable": unusable,
        "silent": silent,
        "finding": finding,
        "code": code,
    }
    return _write(folder / "compute-sanitizer", _SANITIZER, table)


def write_profiler(
    folder: Path,
    acts: Acts | None = None,
    *,
    unusable: Sequence[str] = (),
    complaint: str = "",
    csv: str = RAW_CSV,
) -> str:
    """Write a double of ncu, which runs nothing; with a ``complaint`` it goes on."""
    table = {"acts": acts or {}, "unusable": unusable, "complaint": complaint, "csv": csv}
    return _write(folder / "ncu", _PROFILER, table)


def _write(path: Path, script: str, table: object) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(script.format(python=sys.executable, table=json.dumps(table)))
    path.chmod(0o755)
    return str(path)
