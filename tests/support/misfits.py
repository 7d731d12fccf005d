"""Arguments that no variant of a shipped kernel may take, each with what ours say of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from perfci.checking.inputs import Arguments

Change = Callable[[Any], Any]

SHAPES = {
    "mla_kv_projection": {
        "batch": 2,
        "sequence": 3,
        "model": 5,
        "rank": 4,
        "kv_heads": 2,
        "head_dim": 3,
    },
    "mla_attention": {"batch": 2, "sequence": 5, "heads": 3, "head_dim": 4, "rank": 6},
}
"""Small, with no two sizes alike, so that nothing fits by chance."""

OUTPUT_AXES: Mapping[str, tuple[str | int, ...]] = {
    "mla_kv_projection": ("batch", "sequence", 2, "kv_heads", "head_dim"),
    "mla_attention": ("batch", "sequence", "heads", "head_dim"),
}
INPUTS = {
    "mla_kv_projection": ("hidden", "w_down", "w_up_k", "w_up_v"),
    "mla_attention": ("q", "kv_latent", "w_up_k", "w_up_v"),
}


@dataclass(frozen=True)
class Misfit:
    """Changes of good arguments by name, and what must be said of the bad ones."""

    message: str
    changes: Mapping[str, Change]

    def spoil(self, arguments: Arguments) -> dict[str, Any]:
        """The arguments with the changes made; tensors stay contiguous."""
        spoiled = {**arguments}
        for name, change in self.changes.items():
            value = change(spoiled[name])
            spoiled[name] = value.contiguous() if isinstance(value, Tensor) else value
        return spoiled

    def __str__(self) -> str:
        return self.message


def _misfit(message: str, **changes: Change) -> Misfit:
    return Misfit(message, changes)


def _to(dtype: torch.dtype) -> Change:
    return lambda value: value.to(dtype)


def _cut(dimension: int, size: int = 1) -> Change:
    return lambda value: value.narrow(dimension, 0, size)


def _grown(dimension: int) -> Change:
    return lambda value: torch.cat((value, value.narrow(dimension, 0, 1)), dimension)


def _dtypes(kernel: str) -> list[Misfit]:
    kinds = (torch.float64, torch.float16, torch.bfloat16, torch.int32)
    return [
        _misfit(f"{name} must be float32", **{name: _to(kind)})
        for name, kind in zip(INPUTS[kernel], kinds, strict=True)
    ] + [_misfit(f"{name} must be float32", **{name: Tensor.double}) for name in INPUTS[kernel][1:]]


WRONG_DTYPES = {kernel: _dtypes(kernel) for kernel in SHAPES}

WRONG_SIZES = {
    "mla_kv_projection": [
        _misfit("hidden has 2 dimensions, must have 3", hidden=lambda t: t.flatten(0, 1)),
        _misfit("hidden has 4 dimensions, must have 3", hidden=lambda t: t[None]),
        _misfit("hidden has 0 dimensions, must have 3", hidden=Tensor.sum),
        _misfit("w_down has 1 dimensions, must have 2", w_down=lambda t: t[:, 0]),
        _misfit("w_down has 3 dimensions, must have 2", w_down=lambda t: t[None]),
        _misfit("w_up_k has 3 dimensions, must have 2", w_up_k=lambda t: t[None]),
        _misfit(
            "w_up_k has 3 dimensions, must have 2",
            w_up_k=lambda t: t.view(2, 4, 3),
            w_up_v=lambda t: t.view(2, 4, 3),
        ),
        _misfit("w_up_v has 1 dimensions, must have 2", w_up_v=Tensor.flatten),
        _misfit("w_down has size 5 in dimension 0, must have 1", hidden=_cut(2)),
        _misfit("w_down has size 5 in dimension 0, must have 6", hidden=_grown(2)),
        _misfit("w_down has size 1 in dimension 0, must have 5", w_down=_cut(0)),
        _misfit("w_down has size 6 in dimension 0, must have 5", w_down=_grown(0)),
        _misfit("w_up_k has size 4 in dimension 0, must have 1", w_down=_cut(1)),
        _misfit("w_up_k has size 4 in dimension 0, must have 5", w_down=_grown(1)),
        _misfit("w_up_k has size 1 in dimension 0, must have 4", w_up_k=_cut(0)),
        _misfit("w_up_k has size 3 in dimension 0, must have 4", w_up_k=_cut(0, 3)),
        _misfit("w_up_k has size 1 in dimension 1, must have 6", w_up_k=_cut(1)),
        _misfit("w_up_k has size 7 in dimension 1, must have 6", w_up_k=_grown(1)),
        _misfit("w_up_v has size 1 in dimension 0, must have 4", w_up_v=_cut(0)),
        _misfit("w_up_v has size 5 in dimension 0, must have 4", w_up_v=_grown(0)),
        _misfit("w_up_v has size 5 in dimension 1, must have 6", w_up_v=_cut(1, 5)),
        # Both together have as many columns as they should.
        _misfit(
            "w_up_k has size 7 in dimension 1, must have 6", w_up_k=_grown(1), w_up_v=_cut(1, 5)
        ),
        _misfit("w_up_k has size 6 in dimension 1, must have 8", head_dim=lambda _: 4),
        _misfit("w_up_k has size 6 in dimension 1, must have 3", kv_heads=lambda _: 1),
        _misfit("kv_heads is -2, must not be negative", kv_heads=lambda _: -2),
        _misfit(
            "kv_heads is -2, must not be negative", kv_heads=lambda _: -2, head_dim=lambda _: -3
        ),
        _misfit("head_dim is -3, must not be negative", head_dim=lambda _: -3),
        _misfit("kv_heads is 2.5, must be an integer", kv_heads=lambda _: 2.5),
        _misfit("head_dim is inf, must be an integer", head_dim=lambda _: float("inf")),
    ],
    "mla_attention": [
        _misfit("q has 3 dimensions, must have 4", q=lambda t: t.flatten(0, 1)),
        _misfit("q has 5 dimensions, must have 4", q=lambda t: t[None]),
        _misfit("kv_latent has 2 dimensions, must have 3", kv_latent=lambda t: t.flatten(0, 1)),
        _misfit("kv_latent has 4 dimensions, must have 3", kv_latent=lambda t: t[..., None]),
        _misfit("kv_latent has 0 dimensions, must have 3", kv_latent=Tensor.sum),
        _misfit("w_up_k has 2 dimensions, must have 3", w_up_k=lambda t: t.flatten(1)),
        _misfit("w_up_v has 4 dimensions, must have 3", w_up_v=lambda t: t[None]),
        _misfit("kv_latent has size 2 in dimension 0, must have 1", q=_cut(0)),
        _misfit("kv_latent has size 5 in dimension 1, must have 1", q=_cut(1)),
        _misfit("kv_latent has size 5 in dimension 1, must have 6", q=_grown(1)),
        _misfit("w_up_k has size 3 in dimension 1, must have 1", q=_cut(2)),
        _misfit("w_up_k has size 4 in dimension 2, must have 1", q=_cut(3)),
        _misfit("w_up_k has size 4 in dimension 2, must have 5", q=_grown(3)),
        _misfit("kv_latent has size 1 in dimension 0, must have 2", kv_latent=_cut(0)),
        _misfit("kv_latent has size 3 in dimension 0, must have 2", kv_latent=_grown(0)),
        _misfit("kv_latent has size 1 in dimension 1, must have 5", kv_latent=_cut(1)),
        _misfit("kv_latent has size 4 in dimension 1, must have 5", kv_latent=_cut(1, 4)),
        _misfit("kv_latent has size 6 in dimension 1, must have 5", kv_latent=_grown(1)),
        _misfit(
            "kv_latent has size 5 in dimension 0, must have 2",
            kv_latent=lambda t: t.transpose(0, 1),
        ),
        _misfit("w_up_k has size 6 in dimension 0, must have 1", kv_latent=_cut(2)),
        _misfit("w_up_k has size 6 in dimension 0, must have 7", kv_latent=_grown(2)),
        _misfit("w_up_k has size 1 in dimension 0, must have 6", w_up_k=_cut(0)),
        _misfit("w_up_k has size 1 in dimension 1, must have 3", w_up_k=_cut(1)),
        _misfit("w_up_k has size 1 in dimension 2, must have 4", w_up_k=_cut(2)),
        _misfit("w_up_k has size 5 in dimension 2, must have 4", w_up_k=_grown(2)),
        _misfit(
            "w_up_k has size 4 in dimension 1, must have 3", w_up_k=lambda t: t.transpose(1, 2)
        ),
        _misfit("w_up_v has size 1 in dimension 0, must have 6", w_up_v=_cut(0)),
        _misfit("w_up_v has size 7 in dimension 0, must have 6", w_up_v=_grown(0)),
        _misfit("w_up_v has size 1 in dimension 1, must have 3", w_up_v=_cut(1)),
        _misfit("w_up_v has size 1 in dimension 2, must have 4", w_up_v=_cut(2)),
        _misfit("w_up_v has size 5 in dimension 2, must have 4", w_up_v=_grown(2)),
        _misfit(
            "w_up_v has size 4 in dimension 1, must have 3", w_up_v=lambda t: t.transpose(1, 2)
        ),
    ],
}

MISFITS = {kernel: WRONG_DTYPES[kernel] + WRONG_SIZES[kernel] for kernel in SHAPES}

WRONG_COUNTS = {
    "mla_kv_projection": "needs 1 output, 4 inputs and 2 scalars; has 1, 4 and ",
    "mla_attention": "needs 1 output, 4 inputs and no scalars; has 1, 4 and ",
}
"""How a C variant refuses another number of scalars."""

EMPTY_OUTPUTS = {
    kernel: [axis for axis in axes if isinstance(axis, str)] for kernel, axes in OUTPUT_AXES.items()
}
"""Sizes that leave nothing to compute where they are 0."""

EMPTY_SUMS = {"mla_kv_projection": ("model", "rank"), "mla_attention": ("rank",)}
"""Sizes that make every output 0 where they are 0."""

TOO_LARGE: dict[str, dict[str, dict[str, int]]] = {
    "mla_kv_projection": {
        "model is 16777217, at most 16777216": {"batch": 0, "model": 2**24 + 1, "rank": 0},
        "rank is 16777217, at most 16777216": {
            "batch": 0,
            "model": 0,
            "rank": 2**24 + 1,
            "kv_heads": 0,
        },
        "kv_heads x head_dim is 33554434, at most 16777216": {
            "batch": 0,
            "rank": 0,
            "head_dim": 2**24 + 1,
        },
    },
    "mla_attention": {
        "sequence is 1048577, at most 1048576": {"batch": 0, "sequence": 2**20 + 1},
        "heads is 1048577, at most 1048576": {"batch": 0, "heads": 2**20 + 1, "rank": 0},
        "head_dim is 1048577, at most 1048576": {"batch": 0, "head_dim": 2**20 + 1, "rank": 0},
        "heads x head_dim is 1572864, at most 1048576": {
            "batch": 0,
            "head_dim": 2**19,
            "rank": 0,
        },
        "rank is 1048577, at most 1048576": {"batch": 0, "heads": 0, "rank": 2**20 + 1},
    },
}
"""Sizes that no CUDA variant takes, by what it says; no tensor has elements."""


def views(value: Tensor) -> list[Tensor]:
    """Views of the same shape that are not contiguous: column by column, with gaps, expanded."""
    return [
        value.transpose(-1, -2).contiguous().transpose(-1, -2),
        value.repeat_interleave(2, dim=-1)[..., ::2],
        value.narrow(0, 0, 1).expand_as(value),
    ]


def offset(value: Tensor) -> Tensor:
    """The same values, contiguous, one element behind where memory is aligned."""
    return torch.cat((value.new_zeros(1), value.flatten()))[1:].view(value.shape)
