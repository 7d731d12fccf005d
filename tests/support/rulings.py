"""What runners hand over, and rulings over it, at the commits of ``parcels`` and ``records``."""

from collections.abc import Sequence
from typing import Any

import gates
import parcels
import records

from perfci.ci.act import Act
from perfci.ci.merging import Expected, Found, Ruling, merge
from perfci.ci.parcel import Parcel
from perfci.errors import ExitCode
from perfci.gate.verdicts import Gate
from perfci.history.model import Comparison, Verdict

RUNNERS = ("h200", "a100")


def expected(**fields: Any) -> Expected:
    """A gate at the head of ``parcels``, by two runners."""
    known: dict[str, Any] = {
        "act": Act.GATE,
        "head": parcels.HEAD,
        "run_id": "4711",
        "attempt": 1,
        "runners": RUNNERS,
    }
    return Expected(**{**known, **fields})


def gated(runner: str, comparisons: Sequence[Comparison], **fields: Any) -> Parcel:
    """A parcel of one gate of these cells, with the exit code that they have."""
    return of_gate(runner, gates.gate(comparisons, **fields))


def of_gate(runner: str, gate: Gate) -> Parcel:
    """A parcel of a gate, with its exit code."""
    judged = parcels.judgement(gate)
    code = judged.exit_code
    return parcels.parcel(
        runner=runner,
        base=records.SHA,
        exit_code=code,
        gates=(judged,),
        steps=(parcels.step(exit_code=code),),
    )


def green(runner: str) -> Parcel:
    """A parcel of one cell that is unchanged."""
    return gated(runner, [gates.comparison(Verdict.UNCHANGED)])


def red(runner: str) -> Parcel:
    """A parcel of one cell that is slower."""
    return gated(runner, [gates.comparison(Verdict.REGRESSION)])


def failed(runner: str, error: str = "nvcc is not there") -> Parcel:
    """A parcel of a runner that could not even begin."""
    code = int(ExitCode.BUILD_ENVIRONMENT)
    return parcels.parcel(
        runner=runner, base=records.SHA, exit_code=code, error=error, gates=(), steps=()
    )


def ruling(*handed: Parcel, notes: Sequence[str] = (), **fields: Any) -> Ruling:
    """The ruling over parcels."""
    found = Found(parcels=tuple(handed), unreadable=tuple(notes))
    return merge(expected(**fields), found, reason="kernels/rope is touched")
