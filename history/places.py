"""Where a run's file lies in the branches that runs are exchanged through. Pure.

A run lies in the branch of the year in which it began, in the folder of its month, both in UTC:
``perf-history-2026:2026-03/<run id>.json.gz``. It has this one place, whoever sends it.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Self

_PATH = re.compile(r"(\d{4})-(?:0[1-9]|1[0-2])/([A-Za-z0-9_-]{1,64})\.json\.gz", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Place:
    """The place of one run."""

    path: str
    run_id: str
    year: int

    @classmethod
    def of(cls, run_id: str, started_at: datetime) -> Self:
        """Where the run of that id belongs."""
        began = started_at.astimezone(UTC)
        path = f"{began.year:04d}-{began.month:02d}/{run_id}.json.gz"
        return cls(path=path, run_id=run_id, year=began.year)

    @classmethod
    def at(cls, path: str) -> Self | None:
        """The place with that path; None where no run can lie there."""
        found = _PATH.fullmatch(path)
        return cls(path=path, run_id=found[2], year=int(found[1])) if found else None

    @property
    def folder(self) -> str:
        """The folder of the month."""
        return self.path.partition("/")[0]


def branch_of(base: str, year: int) -> str:
    """The branch of a year; ``base`` is how the names of all of them begin."""
    return f"{base}-{year:04d}"


def pattern_of(base: str) -> str:
    """What the names of all years' branches match, and may be those of other branches too."""
    return f"{base}-*"


def year_of(base: str, branch: str) -> int | None:
    """The year that a branch is for; None where it is for none."""
    year = branch.removeprefix(f"{base}-")
    return int(year) if year != branch and re.fullmatch(r"\d{4}", year, re.ASCII) else None
