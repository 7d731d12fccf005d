# perfci: dtypes = ["float32", "bfloat16"]
"""Honest: the library's own way."""

from torch import Tensor


def run(x: Tensor) -> Tensor:
    """Negate."""
    return -x
