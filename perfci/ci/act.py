"""What continuous integration does about an event."""

from enum import StrEnum


class Act(StrEnum):
    """One way to measure; which commands of perfci that takes is ``perfci.ci.measurement``'s."""

    RUN = "run"
    GATE = "gate"
    NIGHTLY = "nightly"
    BACKFILL = "backfill"
    BISECT = "bisect"
    SELFTEST = "selftest"
    NOTHING = "nothing"
