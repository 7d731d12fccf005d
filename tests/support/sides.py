"""Sides of a comparison, made of the cells of their runs."""

from records import summary

from perfci.decision.compare import Side, compare
from perfci.history.model import Cell, Comparison

STEADY = (1000.0, 1001.0, 999.0)


def side_of(*cells: Cell, testbed: str = "bench") -> Side:
    """The runs that cells are of, with these."""
    return Side([summary(each, testbed=testbed) for each in {cell.run_id for cell in cells}], cells)


def only(baseline: Side, contender: Side) -> Comparison:
    """What is said of the only cell."""
    (comparison,) = compare(baseline, contender)
    return comparison
