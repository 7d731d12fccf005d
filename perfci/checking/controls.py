"""Negative controls: what counts as the rejection of a variant that is wrong on purpose."""

from collections.abc import Iterable, Sequence

from perfci.history.model import Measurement, Status
from perfci.kernel import Variant

REJECTIONS = frozenset({*(status for status in Status if status.is_incorrect), Status.TIMEOUT})
"""A judgement. That a control does not build or cannot be called proves nothing of the cases."""


def find_rejections(
    rows: Iterable[Measurement], controls: Sequence[Variant]
) -> dict[str, list[str]]:
    """Control, as kernel/name → the cases that reject it; none where the cases are too weak.

    An error of the run itself counts only for a control that declares that it ``faults``.
    """
    faulting = {f"{each.kernel}/{each.name}" for each in controls if each.declaration.faults}
    found: dict[str, list[str]] = {}
    for row in rows:
        name = f"{row.kernel}/{row.variant}"
        cases = found.setdefault(name, [])
        faulted = row.status is Status.RUNTIME_ERROR and name in faulting
        if row.status in REJECTIONS or faulted:
            cases.append(row.case)
    return found
