# perfci: max = { rows = 1 }
"""Planted: prints a gigabyte, then ends its process."""

import os

from torch import Tensor

_MEBIBYTE = b"perfci " * (1 << 17)


def run(x: Tensor, w: Tensor) -> Tensor:
    """Print and leave."""
    printed = 0
    while printed < 1 << 30:
        printed += os.write(1, _MEBIBYTE)
    os._exit(3)
