"""Whether the machine itself moved between two commits, as its anchors say. Pure."""

from collections.abc import Iterable
from dataclasses import replace

from perfci.decision.compare import Floors, Side, compare
from perfci.history.model import Comparison, Verdict, is_anchor

_MOVED = (Verdict.REGRESSION, Verdict.IMPROVEMENT)


def without_anchors(side: Side) -> Side:
    """The cells of a side that are the code's."""
    return replace(side, cells=[cell for cell in side.cells if not is_anchor(cell.kernel)])


def compare_anchors(
    baseline: Side, contender: Side, *, threshold: float = 0.05, floors: Floors | None = None
) -> list[Comparison]:
    """Compare the anchors that were timed on both sides, by themselves and by the same rules.

    Their verdicts are the machine's: none is a regression of the code.
    """
    sides = [
        replace(side, cells=[cell for cell in side.cells if is_anchor(cell.kernel)])
        for side in (baseline, contender)
    ]
    compared = compare(*sides, threshold=threshold, floors=floors)
    return [each for each in compared if each.ratio is not None or each.paired_passes]


def find_moved(anchors: Iterable[Comparison]) -> list[Comparison]:
    """The anchors that moved beyond the threshold, the one that moved furthest first."""
    moved = [each for each in anchors if each.verdict in _MOVED]
    return sorted(moved, key=lambda each: -max(each.ratio or 1.0, 1.0 / (each.ratio or 1.0)))
