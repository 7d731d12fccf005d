"""``verdict.json``: what all runners together say, for scripts and for the workflow that reports.

The history of the format:

1   ``{"format": "perfci-verdict", "version": 1, "verdict": {…}}``: the record below with every
    field by its name.
"""

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from perfci.ci.act import Act
from perfci.ci.comment import write_title
from perfci.ci.conclusion import Conclusion, conclude
from perfci.ci.entries import is_plain_file
from perfci.ci.event import require_sha
from perfci.ci.merging import Report, Ruling
from perfci.errors import ParcelError, UsageError
from perfci.history.model import Verdict
from perfci.history.plain import PlainError, plain, record
from perfci.history.strict import JsonError, read_json
from perfci.history.text import one_line

FILE = "verdict.json"
FORMAT = "perfci-verdict"
VERSION = 1
_LARGEST_BYTES = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerVerdict:
    """What one runner said; ``problem`` is why it counts as missing, and empty where it does not.

    ``counts`` are how many cells have which verdict.
    """

    runner: str
    exit_code: int
    problem: str
    counts: tuple[tuple[Verdict, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictFile:
    """One verdict over all runners; ``perfci.ci.merging.Ruling`` explains the fields."""

    act: Act
    reason: str
    is_admitted: bool
    head: str | None
    run_id: str
    attempt: int
    exit_code: int
    conclusion: Conclusion
    title: str
    runners: tuple[RunnerVerdict, ...]
    notes: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.head is not None:
            require_sha(self.head)


def write_verdict_file(folder: Path, ruling: Ruling) -> Path:
    """Write ``verdict.json`` into a folder. Raises UsageError where that cannot be."""
    verdict = VerdictFile(
        act=ruling.act,
        reason=ruling.reason,
        is_admitted=ruling.is_admitted,
        head=ruling.head,
        run_id=ruling.run_id,
        attempt=ruling.attempt,
        exit_code=ruling.exit_code,
        conclusion=conclude(ruling),
        title=write_title(ruling),
        runners=tuple(_runner_verdict(each) for each in ruling.reports),
        notes=ruling.notes,
    )
    document = {"format": FORMAT, "version": VERSION, "verdict": plain(verdict)}
    path = folder / FILE
    try:
        path.write_text(json.dumps(document, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from None
    return path


def read_verdict_file(path: Path) -> VerdictFile:
    """The verdict in a file, which may come from anywhere. Raises ParcelError."""
    where = one_line(path.name)
    try:
        if not is_plain_file(path) or path.stat().st_size > _LARGEST_BYTES:
            raise ParcelError(f"{where}: not there, no plain file, or too large: not read")
        document = read_json(path.read_bytes())
        if not isinstance(document, dict) or document.keys() != {"format", "version", "verdict"}:
            raise ParcelError(f"{where}: no verdict")
        if document["format"] != FORMAT or document["version"] != VERSION:
            raise ParcelError(f"{where}: no verdict of version {VERSION}")
        return record(VerdictFile, document["verdict"])
    except OSError as error:
        raise ParcelError(f"{where}: cannot be read: {error.strerror}") from None
    except (JsonError, PlainError) as error:
        raise ParcelError(f"{where}: no verdict: {one_line(str(error))}") from None


def _runner_verdict(report: Report) -> RunnerVerdict:
    counts = Counter(cell.verdict for cell in report.cells)
    return RunnerVerdict(
        runner=report.runner,
        exit_code=report.exit_code,
        problem=report.problem,
        counts=tuple(sorted(counts.items())),
    )
