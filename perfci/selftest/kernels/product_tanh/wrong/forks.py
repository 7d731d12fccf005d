# perfci: max = { rows = 1 }
"""Planted: forks, and both live on for ever."""

import os
import time

from torch import Tensor


def run(x: Tensor, w: Tensor) -> Tensor:
    """Fork; the parent leaves, the child stays."""
    if os.fork() == 0:
        while True:
            time.sleep(1.0)
    os._exit(5)
