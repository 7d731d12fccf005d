"""Where C variants write: outputs poisoned with NaN, between guard bands to be left alone."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

_GUARD_BYTES = 4096
_PATTERN = 0x5A


class GuardedOutputs:
    """Contiguous outputs of given shapes and dtypes, each inside a buffer larger than itself.

    The guards are so wide that an output keeps the alignment of a fresh allocation.
    """

    def __init__(self, templates: Sequence[Tensor]) -> None:
        self._buffers: list[Tensor] = []
        tensors = []
        for each in templates:
            size = each.numel() * each.element_size()
            buffer = torch.empty(size + 2 * _GUARD_BYTES, dtype=torch.uint8, device=each.device)
            inner = buffer[_GUARD_BYTES : _GUARD_BYTES + size]
            self._buffers.append(buffer)
            tensors.append(inner.view(each.dtype).view(each.shape))
        self.tensors: tuple[Tensor, ...] = tuple(tensors)
        self.poison()

    def poison(self) -> None:
        """Fill outputs with NaN, integers and guards with a pattern."""
        for buffer, output in zip(self._buffers, self.tensors, strict=True):
            buffer.fill_(_PATTERN)
            if output.is_floating_point():
                output.fill_(float("nan"))

    def is_overrun(self) -> bool:
        """Whether something was written before or behind an output."""
        return any(
            bool((band != _PATTERN).any())
            for buffer in self._buffers
            for band in (buffer[:_GUARD_BYTES], buffer[-_GUARD_BYTES:])
        )


def wipe(output: Tensor) -> None:
    """Fill a tensor with NaN, or with a pattern where there is none, so that nothing is right."""
    output.fill_(math.nan if output.is_floating_point() else _PATTERN)


def kept(returned: object) -> object:
    """A copy of what a call returned, as far as it is plain tensors, before it is overwritten."""
    if type(returned) is Tensor:
        return torch.clone(returned)
    if isinstance(returned, tuple | list):
        return tuple(kept(each) for each in returned)
    return returned
