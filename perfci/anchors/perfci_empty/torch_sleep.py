# perfci: devices = ["cuda"]
"""A kernel of one thread that is told to wait for no time at all.

It needs no compiler: torch has it.
"""

import torch
from torch import Tensor


def run(x: Tensor) -> Tensor:
    """Launch a kernel that ends at once, and return no elements."""
    torch.cuda._sleep(0)  # noqa: SLF001
    return torch.empty_like(x)
