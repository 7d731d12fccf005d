"""What a check run says at a glance. GitHub lets success, neutral and skipped pass, the others not.

Neutral is for a head of which nothing bad is known and not all is known: a cell is inconclusive.
It is not green, and it passes, as the exit code 0 does; where an inconclusive cell is to fail, the
exit code is 8, and so is this a failure.
"""

from collections.abc import Mapping
from enum import StrEnum

from perfci.ci.act import Act
from perfci.ci.merging import Ruling
from perfci.errors import ExitCode


class Conclusion(StrEnum):
    """GitHub's words for how a check run ends."""

    SUCCESS = "success"
    FAILURE = "failure"
    NEUTRAL = "neutral"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"
    ACTION_REQUIRED = "action_required"


SYMBOLS: Mapping[Conclusion, str] = {
    Conclusion.SUCCESS: "✓",
    Conclusion.FAILURE: "✗",
    Conclusion.NEUTRAL: "?",
    Conclusion.SKIPPED: "–",
    Conclusion.CANCELLED: "–",
    Conclusion.ACTION_REQUIRED: "!",
}


def conclude(ruling: Ruling) -> Conclusion:
    """How the check run of a ruling ends."""
    if ruling.act is Act.NOTHING:
        return Conclusion.SKIPPED if ruling.is_admitted else Conclusion.ACTION_REQUIRED
    if ruling.exit_code != ExitCode.FINE:
        return Conclusion.FAILURE
    return Conclusion.NEUTRAL if ruling.is_open else Conclusion.SUCCESS
