"""Anchors: what the machine itself can do, measured in every pass beside the user's kernels.

An anchor is a kernel in the layout of docs/adding-a-kernel.md, in a folder beside this module: a
copy, a product and a launch of nothing. Where an anchor moves, it is the machine that has moved.
"""

from pathlib import Path

from perfci.kernel import read_kernels
from perfci.selection import Cell, Selection, select

ANCHOR_BUDGET_S = 0.1
"""What each timer may take of an anchor in a pass: a fifth of what it may take of a kernel."""

COPY = "perfci_copy"
PRODUCT = "perfci_product"
EMPTY = "perfci_empty"
MEMORY_CASE = "memory"
CACHE_CASE = "cache"
LAUNCH_CASE = "launch"
SMALL = "_small"
"""How a case ends that stands on a CPU for a larger one on a GPU. Cases of the product are named
by their dtype."""


def anchor_cells(device_kind: str) -> list[Cell]:
    """The cells by which a run measures a device of that kind."""
    return select(read_kernels(Path(__file__).parent), Selection(), device_kind)
