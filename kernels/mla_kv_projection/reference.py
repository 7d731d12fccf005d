"""The key and value projection of multi-head latent attention.

``hidden`` is projected down to a latent of ``rank`` values a token, and the latent up to keys and
values, which are stacked: slot 0 of the output's third dimension is K, slot 1 is V.
"""

import torch
from torch import Tensor


def make_inputs(
    *,
    batch: int,
    sequence: int,
    model: int,
    rank: int,
    kv_heads: int,
    head_dim: int,
    dtype: torch.dtype,
    device: torch.device | str,
    generator: torch.Generator,
) -> dict[str, Tensor | int | float]:
    """Draw unscaled standard-normal inputs.

    Shapes: hidden (batch, sequence, model), w_down (model, rank), w_up_k and w_up_v
    (rank, kv_heads x head_dim).
    """

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, dtype=dtype, device=device, generator=generator)

    return {
        "hidden": normal(batch, sequence, model),
        "w_down": normal(model, rank),
        "w_up_k": normal(rank, kv_heads * head_dim),
        "w_up_v": normal(rank, kv_heads * head_dim),
        "kv_heads": kv_heads,
        "head_dim": head_dim,
    }


def reference(
    hidden: Tensor,
    w_down: Tensor,
    w_up_k: Tensor,
    w_up_v: Tensor,
    kv_heads: int,
    head_dim: int,
) -> Tensor:
    """Project and stack; the output is (batch, sequence, 2, kv_heads, head_dim)."""
    batch, sequence, model = hidden.shape
    latent = hidden.reshape(batch * sequence, model) @ w_down
    keys = (latent @ w_up_k).view(batch, sequence, kv_heads, head_dim)
    values = (latent @ w_up_v).view(batch, sequence, kv_heads, head_dim)
    return torch.stack((keys, values), dim=2)


def magnitude(
    hidden: Tensor,
    w_down: Tensor,
    w_up_k: Tensor,
    w_up_v: Tensor,
    kv_heads: int,
    head_dim: int,
) -> Tensor:
    """Sum the magnitudes of all terms of each output element: |hidden| @ |w_down| @ |w_up|."""
    magnitudes = (each.double().abs() for each in (hidden, w_down, w_up_k, w_up_v))
    return reference(*magnitudes, kv_heads=kv_heads, head_dim=head_dim)


def depth(*, model: int, rank: int, **_: object) -> int:
    """Count the roundings that one term can meet: a sum over model, then one over rank."""
    return model + rank


def bytes_moved(
    *,
    batch: int,
    sequence: int,
    model: int,
    rank: int,
    kv_heads: int,
    head_dim: int,
    dtype: torch.dtype,
) -> int:
    """Count the bytes of each input read once and the output written once."""
    tokens, width = batch * sequence, kv_heads * head_dim
    elements = tokens * model + model * rank + 2 * rank * width + tokens * 2 * width
    return elements * dtype.itemsize


def flops(
    *, batch: int, sequence: int, model: int, rank: int, kv_heads: int, head_dim: int, **_: object
) -> int:
    """Count two operations a multiply-add: down once, up twice."""
    return 2 * batch * sequence * rank * (model + 2 * kv_heads * head_dim)
