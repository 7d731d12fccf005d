"""Calls of one variant in a process of their own: what is to be called, and what became of it.

The process is perfci.tools.caller. Tools that watch a process run it; it says on standard output
which case it is at, so that what a tool prints can be attributed. Torch-free.
"""

import json
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from perfci.build import Build
from perfci.kernel import Case, Kernel
from perfci.plan import Target

_SAYS = "perfci call: "
_SAID = re.compile(re.escape(_SAYS) + r"(\{.*\})\s*$", re.MULTILINE)
_END = {"end": True}
_TIMED_OUT = re.compile(r"^Timeout \(.*\)!$", re.MULTILINE)


class Ending(StrEnum):
    """How a call ended: ``REFUSED`` is an input of another layout than contiguous, as in check."""

    CALLED = "called"
    REFUSED = "refused"
    RAISED = "raised"


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """One variant and the cases to call it at, once each.

    ``kernels`` is the folder of kernels. A case may take ``limit_s``. With ``profiled`` some calls
    come first, and the one that counts is marked for a profiler.
    """

    kernels: str
    kernel: str
    variant: str
    digest: str
    library: str | None
    cases: tuple[str, ...]
    device: str
    limit_s: float
    profiled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """What became of one case's call; without an ``ending`` the process did not survive it."""

    case: str
    ending: Ending | None
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What the process said: its calls in order, and whether it came to its own end."""

    calls: tuple[Called, ...]
    ended: bool
    timed_out: bool

    def call(self, case: str) -> Called | None:
        """The call at a case, or None where the process did not come to it."""
        return next((each for each in self.calls if each.case == case), None)


def calls_of(
    build: Build,
    kernel: Kernel,
    cases: Sequence[Case],
    *,
    target: Target,
    limit_s: float,
    profiled: bool = False,
) -> Calls:
    """The calls of a variant that is built, at some cases of its kernel."""
    return Calls(
        kernels=str(kernel.folder.parent),
        kernel=kernel.name,
        variant=build.variant.name,
        digest=build.digest,
        library=str(build.library) if build.library else None,
        cases=tuple(case.name for case in cases),
        device=target.name,
        limit_s=limit_s,
        profiled=profiled,
    )


def write_calls(calls: Calls, path: Path) -> None:
    """Leave calls in a file for the process to read."""
    path.write_text(json.dumps(asdict(calls), indent=1), encoding="utf-8")


def read_calls(path: Path) -> Calls:
    """The calls in a file that write_calls has left."""
    values = json.loads(path.read_text(encoding="utf-8"))
    return Calls(**{**values, "cases": tuple(values["cases"])})


def command(path: Path) -> list[str]:
    """The command that makes the calls in a file."""
    return [sys.executable, "-m", "perfci.tools.caller", str(path)]


def variables(target: Target) -> dict[str, str]:
    """What the process must find in its environment, beside what is in ours."""
    own = {
        # Whatever this process imports from, the other one does.
        "PYTHONPATH": os.pathsep.join(each for each in sys.path if each),
        "PYTHONSAFEPATH": "1",
        "PYTHONDONTWRITEBYTECODE": "1",  # beside the kernels, where git would see it
        "LC_ALL": "C.UTF-8",  # tools write 1.024 for 1,024 where that is the custom
    }
    uuid = target.device.uuid
    return {**own, "CUDA_VISIBLE_DEVICES": uuid} if uuid is not None else own


def tell(case: str, ending: Ending | None = None, message: str = "") -> None:
    """Say in the process that a case begins or, with an ending, how its call ended."""
    _say({"case": case, "ending": ending, "message": message})


def tell_end() -> None:
    """Say that all has been called."""
    _say(_END)


def read_told(text: str) -> Told:
    """What the process said, from all that was printed; it may have been cut off anywhere.

    A variant may have printed what only looks like it: that says nothing.
    """
    calls: dict[str, Called] = {}
    ended = False
    for line in _SAID.findall(text):
        try:
            said = json.loads(line)
            if said == _END:
                ended = True
                continue
            ending = Ending(said["ending"]) if said["ending"] else None
            called = Called(case=str(said["case"]), ending=ending, message=str(said["message"]))
        except (ValueError, LookupError):
            continue
        calls[called.case] = called
    timed_out = not ended and _TIMED_OUT.search(text) is not None
    return Told(calls=tuple(calls.values()), ended=ended, timed_out=timed_out)


def is_told(line: str) -> bool:
    """Whether a line of what was printed is what the process says by itself."""
    return line.startswith(_SAYS)


def _say(said: object) -> None:
    print(_SAYS + json.dumps(said), flush=True)
