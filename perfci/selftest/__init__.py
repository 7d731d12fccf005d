"""Planted kernels: ways in which a measurement has gone wrong elsewhere, and what must catch each.

The kernels lie in ``kernels`` beside this module, in the layout of docs/adding-a-kernel.md: honest
ones, and in ``wrong`` the planted.
"""

from pathlib import Path

KERNELS = Path(__file__).parent / "kernels"
