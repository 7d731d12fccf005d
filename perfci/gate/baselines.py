"""Baselines: commits that were pinned by hand, each with a reason, in a file of the repository.

The last one counts. A pin is only ever added, so that the file, reviewed and kept by git, says who
moved the baseline, when and why.
"""

import json
import tomllib
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from perfci.errors import ConfigurationError, UsageError
from perfci.history.text import one_line

FILE = "baselines.toml"
_HEAD = "# Written by `perfci baseline pin`; the last one counts.\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """A commit by its full SHA, when it was pinned, and why."""

    commit: str
    pinned_at: datetime
    reason: str


def read_baselines(root: Path) -> list[Baseline]:
    """The baselines of a project, oldest first. Raises ConfigurationError."""
    path = root / FILE
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8")).get("pinned", [])
        return [
            Baseline(
                commit=str(each["commit"]),
                pinned_at=_moment(each["pinned_at"]),
                reason=one_line(str(each["reason"])),
            )
            for each in tables
        ]
    except FileNotFoundError:
        return []
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: not valid TOML: {error}") from None
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigurationError(
            f"{path}: a [[pinned]] without commit, pinned_at or reason ({error}); "
            "let perfci baseline pin write it"
        ) from None


def pin(root: Path, sha: str, reason: str) -> Path:
    """Add a baseline and return the file. Raises UsageError without a reason."""
    reason = one_line(reason)
    if not reason:
        raise UsageError("a baseline is pinned for a reason: give one with --reason")
    read_baselines(root)
    path = root / FILE
    known = path.read_text(encoding="utf-8") if path.exists() else _HEAD
    entry = (
        f"\n[[pinned]]\ncommit = {json.dumps(sha)}\n"
        f"pinned_at = {datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}\n"
        f"reason = {json.dumps(reason, ensure_ascii=False)}\n"
    )
    path.write_text(known + entry, encoding="utf-8")
    return path


def _moment(value: object) -> datetime:
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise TypeError("pinned_at is no moment with a time zone")
    return value
