"""What a bisection has found so far, in a file, so that an interruption costs no verdict."""

import json
import os
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path

from perfci import __version__
from perfci.binary.canonical import digest
from perfci.bisect.bisection import Likeness
from perfci.config import Config
from perfci.decision.stats import Estimate
from perfci.errors import ConfigurationError
from perfci.history.model import Environment
from perfci.history.plain import PlainError, plain, record

FORM = 1
"""Counts what a file is made of."""

_PLACES = {"root", "kernels", "store", "cache"}


class Symptom(StrEnum):
    """What is the matter with the cell at the bad end."""

    SLOWER = "slower"
    INCORRECT = "incorrect"
    UNBUILT = "build_failed"
    FAILING = "failing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is searched, where, and by whose rules: verdicts of another question are none here."""

    good: str
    bad: str
    kernel: str
    variant: str
    case: str
    timer: str
    environment: Environment
    settings: str
    perfci_version: str = __version__


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """In what the ends differ.

    ``change`` is the logarithm of the ratio of their latencies under ``timer``; where the symptom
    is another one, the bad end had it in ``wrong`` of so many ``checks``, and says ``message``.
    ``error`` is the chance that they do not differ, ``codes`` are the digests of good and bad.
    """

    symptom: Symptom
    timer: str = ""
    change: Estimate | None = None
    wrong: int = 0
    checks: int = 0
    message: str = ""
    error: float = 0.0
    codes: tuple[str, str] = ("", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What was found out about one commit.

    ``change`` is against the good end, ``error`` the chance that the likeness is wrong. ``same_as``
    is a commit that runs the same code, whose likeness this one has.
    """

    likeness: Likeness
    sha: str = ""
    reason: str = ""
    change: Estimate | None = None
    error: float = 0.0
    passes: int = 0
    code: str = ""
    same_as: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notes:
    """All that is in a file."""

    form: int
    question: Question
    proof: Proof | None
    findings: tuple[Finding, ...]


def settings_of(config: Config) -> str:
    """A digest of what measurements go by, places aside."""
    names = sorted({each.name for each in fields(Config)} - _PLACES)
    return digest([(name, str(getattr(config, name))) for name in names])


class Notebook:
    """The notes of one question, read where there are any and written with every finding.

    Raises ConfigurationError where the file is none of this question's, or cannot be written.
    """

    def __init__(self, cache: Path, question: Question) -> None:
        self.path = cache / "bisect" / f"{digest(plain(question))}.json"
        self._notes = Notes(form=FORM, question=question, proof=None, findings=())
        try:
            text = self.path.read_bytes()
        except FileNotFoundError:
            return
        except OSError as error:
            raise self._unusable(error.strerror or "cannot be read") from None
        self._notes = self._read(text)

    @property
    def proof(self) -> Proof | None:
        """In what the ends differ, where that is known."""
        return self._notes.proof

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was found, in order."""
        return self._notes.findings

    def prove(self, proof: Proof) -> None:
        """Note in what the ends differ."""
        self._write(proof, self.findings)

    def add(self, finding: Finding) -> None:
        """Note what was found."""
        self._write(self.proof, (*self.findings, finding))

    def close(self) -> None:
        """Throw the notes away: the question is answered."""
        self.path.unlink(missing_ok=True)

    def _read(self, text: bytes) -> Notes:
        try:
            notes = record(Notes, json.loads(text))
        except (PlainError, ValueError, RecursionError) as error:
            raise self._unusable(f"no notes of a bisection ({error})") from None
        if notes.form != FORM or notes.question != self._notes.question:
            raise self._unusable("the notes of another question")
        return notes

    def _unusable(self, why: str) -> ConfigurationError:
        return ConfigurationError(f"{self.path}: {why}; remove it to begin anew")

    def _write(self, proof: Proof | None, findings: tuple[Finding, ...]) -> None:
        self._notes = Notes(
            form=FORM, question=self._notes.question, proof=proof, findings=findings
        )
        draft = self.path.with_suffix(f".{os.getpid()}")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            draft.write_text(json.dumps(plain(self._notes), ensure_ascii=False) + "\n")
            draft.replace(self.path)
        except OSError as error:
            raise self._unusable(error.strerror or "cannot be written") from None
