"""A gate as another machine decided it: what `perfci gate --json` says, read back as records."""

from dataclasses import dataclass

from perfci.gate.past import Best, Failed, Since
from perfci.gate.rungs import Ending
from perfci.history.model import Commit, Comparison, Environment
from perfci.reports.gate import Mean


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedCell(Comparison):
    """One cell between base and head, whether its slow-down is accepted, and what else differs."""

    accepted: bool
    differences: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What one device said of a head by its base.

    The fields are those of `perfci gate --json`; ``perfci.gate.verdicts.Gate`` explains them.
    ``load`` is the sentence that says how busy others kept a CPU, empty where that was not much.
    """

    base: Commit
    head: Commit
    found: str
    environment_change: str
    changes: tuple[str, ...]
    environment: Environment
    exit_code: int
    passes: int
    ending: Ending | None
    budget_s: float
    spent_s: float
    needed_s: float | None
    comparisons: tuple[JudgedCell, ...]
    checked: int
    means: tuple[Mean, ...]
    load: str
    anchors: tuple[Comparison, ...]
    since: tuple[Since, ...]
    best: tuple[Best, ...]
    failed_at_base: tuple[Failed, ...]
    runs: tuple[str, ...]
