# perfci: devices = ["cuda"]
"""Planted: lets products be rounded to TF32, its own and the yardstick's."""

import torch
from torch import Tensor

torch.backends.cuda.matmul.allow_tf32 = True


def run(x: Tensor, w: Tensor) -> Tensor:
    """Multiply in TF32."""
    torch.backends.cuda.matmul.allow_tf32 = True
    return torch.tanh(x @ w)
