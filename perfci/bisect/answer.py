"""What comes of a bisection, as records. Torch-free."""

from dataclasses import dataclass
from enum import StrEnum

from perfci.bisect.notebook import Finding, Proof, Question
from perfci.errors import ExitCode
from perfci.history.model import Commit, Comparison


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """What is known of two ends: the proof that they differ, or why there is none.

    ``comparisons`` are of their latencies, where these were measured, the primary timer's first.
    """

    proof: Proof | None = None
    reason: str = ""
    comparisons: tuple[Comparison, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    """The first bad commit beside one of its parents.

    It is confirmed unless the two were compared and do not differ so. ``comparison`` is of their
    latencies, ``differences`` are those in code and launches; ``reason`` is what else there is to
    say of the parent.
    """

    parent: Commit
    is_confirmed: bool
    comparison: Comparison | None = None
    differences: tuple[str, ...] = ()
    reason: str = ""


class Ending(StrEnum):
    """How a bisection ended."""

    FOUND = "found"
    UNCONFIRMED = "unconfirmed"
    RANGE = "range"
    NO_DIFFERENCE = "no_difference"
    OUT_OF_TIME = "out_of_time"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bisection:
    """What came of it.

    ``suspects`` are the commits of which one is the first bad one: it alone where it was found.
    ``count`` is how many there were to choose from, ``confidence`` the chance that every verdict on
    the way is right.
    """

    question: Question
    good: Commit
    bad: Commit
    count: int
    ending: Ending
    ends: Ends
    findings: tuple[tuple[Commit, Finding], ...]
    suspects: tuple[Commit, ...]
    confirmations: tuple[Confirmation, ...]
    confidence: float
    passes: int
    spent_s: float


def exit_code_of(ending: Ending) -> ExitCode:
    """Only a commit that was found, and confirmed, is an answer."""
    return ExitCode.FINE if ending is Ending.FOUND else ExitCode.INCONCLUSIVE
