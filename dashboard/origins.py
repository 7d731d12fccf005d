"""What a run was measured for: by itself, or as one of two sides that were measured together."""

from collections.abc import Sequence
from dataclasses import dataclass

from perfci.history.model import RunSummary
from perfci.history.order import find_sides


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """A run and the other side that it was measured with, if any, of which it is the head's."""

    run: RunSummary
    other: RunSummary | None = None
    is_head: bool = False


def find_origins(runs: Sequence[RunSummary]) -> list[Origin]:
    """Find what each run was measured for, in the order given."""
    sides = find_sides(runs)
    origins = []
    for run in runs:
        if run.pair not in sides:
            origins.append(Origin(run=run))
            continue
        base, head = sides[run.pair]
        is_head = run.run_id == head.run_id
        origins.append(Origin(run=run, other=base if is_head else head, is_head=is_head))
    return origins
